"""Which nodes are there, by what they say of themselves."""

from anabranch.core.lateness import Delays
from anabranch.core.limits import Limits
from anabranch.core.sequencing.controller.contacts import Contacts
from anabranch.core.types import MS, Nanoseconds

LIMITS = Limits()
SILENT: Nanoseconds = LIMITS.silent_ms * MS


def heard(contacts: Contacts[str], life: int, now: Nanoseconds) -> bool:
    return contacts.heard("a", f"life {life}", life=life, sent=now, now=now)


def test_a_node_that_says_nothing_for_long_is_silent() -> None:
    contacts = Contacts[str](LIMITS, Delays())
    assert heard(contacts, 1, 0)
    assert contacts.present("a", SILENT - 1) == "life 1"
    assert contacts.silent("a", contacts.patience(SILENT) + 1)
    assert contacts.sign("a") == "life 1"


def test_the_time_in_which_the_controller_did_not_run_is_nobodys_silence() -> None:
    contacts = Contacts[str](LIMITS, Delays())
    assert heard(contacts, 1, 0)
    contacts.was_away(10 * SILENT, 10 * SILENT)
    assert contacts.present("a", 10 * SILENT) == "life 1"


def test_a_letter_of_an_earlier_life_says_nothing_new() -> None:
    contacts = Contacts[str](LIMITS, Delays())
    assert heard(contacts, 2, 10)
    assert not contacts.heard("a", "late", life=1, sent=5, now=20)
    assert contacts.replaced("a", 1, 20)
