"""What all shards of a log hold together."""

import pytest
from msgspec.structs import replace

from anabranch.core.erwin.controller.counters import ControllerCounters
from anabranch.core.erwin.controller.epochs import Epochs
from anabranch.core.erwin.controller.plan import Plan
from anabranch.core.erwin.controller.shards import Shards
from anabranch.core.erwin.protocol.letters import Configuration, ShardPresent, ShardSetup
from anabranch.core.erwin.protocol.rows import Fence, Mode
from anabranch.core.lateness import Delays
from anabranch.core.limits import Limits
from anabranch.core.replication.replica import Role
from anabranch.core.sequencing.controller.contacts import Contacts
from anabranch.core.sequencing.protocol.ids import Member
from anabranch.core.sequencing.protocol.letters import Present
from anabranch.core.sequencing.view import Ballot, View

NOW = 1


def primary(shard: str, *, fence: Fence, base: int, held: int, stable: int) -> ShardPresent:
    return ShardPresent(
        shard=shard,
        node=shard,
        disk=1,
        epoch=1,
        role=Role.PRIMARY,
        durable=1,
        held=held,
        stable=stable,
        version=1,
        fence=fence.number,
        base=base,
        established=True,
    )


def held(*primaries: ShardPresent, view: View | None = None) -> int | None:
    limits, delays = Limits(), Delays()
    setups = tuple(
        ShardSetup(
            number=number,
            name=each.shard,
            nodes=(each.node,),
            epoch=1,
            primary=each.node,
            replicas=(each.node,),
            disks=(1,),
        )
        for number, each in enumerate(primaries)
    )
    configuration = Configuration(
        version=1, term=1, mode=Mode.M, fsync=False, view=view, shards=setups, sequencers=()
    )
    plan = Plan(configuration, 1, limits, ControllerCounters())
    contacts = Contacts[ShardPresent](limits, delays)
    for each in primaries:
        contacts.heard(each.node, each, life=1, sent=NOW, now=NOW)
    epochs = Epochs(plan, contacts, now=NOW, accept_loss=True, send=lambda to, letter: None)
    return Shards(plan, epochs, contacts, Contacts[Present](limits, delays)).hold(NOW)


OLD, NEW = Fence(1, 1), Fence(2, 1)


def test_shards_of_different_fences_agree_below_the_last_base() -> None:
    behind = primary("a", fence=OLD, base=0, held=8, stable=5)
    ahead = primary("b", fence=NEW, base=6, held=18, stable=5)
    assert held(behind, ahead) == 6


def test_a_primary_that_has_forgotten_the_base_holds_what_is_stable() -> None:
    """It was restarted, and no leader has pushed to it since."""
    behind = primary("a", fence=OLD, base=0, held=8, stable=5)
    restarted = primary("b", fence=NEW, base=0, held=18, stable=5)
    assert held(behind, restarted) == 5


def test_shards_agree_below_the_base_of_the_last_view() -> None:
    """All primaries were restarted, and none has written down how much was stable by then."""
    view = View(ballot=Ballot(2, 1), members=(Member("s", 1),), leader="s", base=5)
    behind = primary("a", fence=OLD, base=0, held=5, stable=2)
    restarted = primary("b", fence=NEW, base=0, held=7, stable=1)
    assert held(behind, restarted, view=view) == 5


@pytest.mark.parametrize("waiting", [0, 1])
def test_a_closed_shard_lasts_while_records_that_wait_for_room_may_name_it(waiting: int) -> None:
    limits, delays = Limits(), Delays()
    view = View(ballot=Ballot(1, 1), members=(Member("s", 1),), leader="s", base=0)
    setups = tuple(
        ShardSetup(
            number=number,
            name=name,
            nodes=(name,),
            epoch=1,
            primary=name,
            replicas=(name,),
            disks=(1,),
            open=name == "a",
        )
        for number, name in enumerate("ab")
    )
    configuration = Configuration(
        version=1, term=1, mode=Mode.ST, fsync=True, view=view, shards=setups, sequencers=("s",)
    )
    plan = Plan(configuration, 1, limits, ControllerCounters())
    contacts, sequencers = Contacts[ShardPresent](limits, delays), Contacts[Present](limits, delays)
    for name in "ab":
        letter = primary(name, fence=OLD, base=0, held=5, stable=5)
        contacts.heard(name, replace(letter, trimmed=5), life=1, sent=NOW, now=NOW)
    member = Present(
        node="s", life=1, view=1, started=True, ordered=5, version=1, tail=5, waiting=waiting
    )
    sequencers.heard("s", member, life=1, sent=NOW, now=NOW)
    epochs = Epochs(plan, contacts, now=NOW, accept_loss=False, send=lambda to, letter: None)
    Shards(plan, epochs, contacts, sequencers).watch(NOW, None)
    assert [setup.name for setup in plan.shards] == (["a", "b"] if waiting else ["a"])
