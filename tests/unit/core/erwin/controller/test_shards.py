"""What all shards of a log hold together."""

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
from anabranch.core.sequencing.letters import Present

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


def held(*primaries: ShardPresent) -> int | None:
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
        version=1, term=1, mode=Mode.M, fsync=False, view=None, shards=setups, sequencers=()
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
