"""Rights of a deployment that is one log."""

import pytest

from anabranch.core.rights.claims import LOGS, Claim, Subject, Verb
from anabranch.core.rights.one_log import OneLogRights, log_of


class Ask:
    """A request that anybody may make."""


class Change:
    """A request that needs a right."""


@pytest.mark.parametrize(
    ("cluster", "name"), [("shop.ticks", "ticks"), ("ticks", "ticks"), ("other.t", "other.t")]
)
def test_the_log_is_the_one_that_the_operator_calls_so(cluster: str, name: str) -> None:
    """A name never leads into a namespace that isn't the service's own."""
    assert log_of(cluster, "shop") == Subject(LOGS, name, "shop")


def test_any_of_a_requests_verbs_on_the_log_is_enough() -> None:
    log = Subject(LOGS, "ticks")
    rights = OneLogRights(log, {Ask: (), Change: (Verb.UPDATE, Verb.TRIM)})
    assert rights.needs(Ask()) == ()
    assert rights.needs(Change()) == (Claim(log, (Verb.UPDATE, Verb.TRIM)),)
    assert rights.kept(Change()) is Change


def test_a_request_that_nobody_thought_of_is_not_let_through() -> None:
    with pytest.raises(KeyError):
        OneLogRights(Subject(LOGS), {Ask: ()}).needs(Change())
