"""Logs that other engines serve, as Bolt's catalogue keeps them (decision 48)."""

from typing import Any

import pytest

from anabranch.core.bolt.protocol.commands import (
    FORMAT,
    Batch,
    CommitCursor,
    CommitObject,
    Committed,
    CreateLog,
    DeleteLog,
    Description,
    EngineSettings,
    Entry,
    ForkLog,
    RaiseFormat,
    RegisterBroker,
    Row,
    SetQuota,
    SetSettings,
    Trim,
)
from anabranch.core.bolt.protocol.queries import (
    Compare,
    Describe,
    Listing,
    ListLogs,
    PositionAt,
    ReadCursors,
    Resolve,
)
from anabranch.core.bolt.state import snapshot
from anabranch.core.bolt.state.catalogue import (
    ADDRESS_CHARS_MAX,
    ADDRESSES_MAX,
    CLUSTER_CHARS_MAX,
    REPLICAS_MAX,
    SEQUENCERS_MAX,
    SHARDS_MAX,
)
from anabranch.core.bolt.state.invariants import broken
from anabranch.core.bolt.state.state import State
from anabranch.core.errors.refused import Refused
from anabranch.core.limits import Limits
from anabranch.core.quota import Quota
from anabranch.core.records.objects import object_id
from anabranch.core.types import Kind, LogId

HERE = EngineSettings(shards=2, embedded=True)
THERE = EngineSettings(shards=2, addresses=("a:1", "b:2"), cluster="there")


class Stage:
    """A state machine of this format; every outcome is checked against the invariants."""

    def __init__(self, knows: int = FORMAT, **limits: int) -> None:
        self.state = State("c", Limits(**limits))
        self.do(RaiseFormat(knows))
        self.do(RegisterBroker("b"))

    def do(self, command: Any, request: bytes = b"") -> Any:
        outcome = self.state.apply(Entry(1_000, request, command))
        assert broken(self.state.replica) == []
        return outcome

    def create(self, settings: EngineSettings | None = HERE, **more: Any) -> Any:
        return self.do(CreateLog("ticks", engine="belfast", settings=settings, **more))

    def ask(self, query: Any) -> Any:
        return self.state.answer(query)


def code(outcome: object) -> str:
    assert isinstance(outcome, Refused), outcome
    return outcome.code


def test_a_log_of_another_engine_is_listed_beside_bolts_own() -> None:
    stage = Stage()
    orders = stage.do(CreateLog("orders"))
    ticks = stage.create()
    assert (orders.engine, orders.settings) == ("bolt", None)
    assert isinstance(ticks, Description)
    assert (ticks.name, ticks.kind, ticks.engine, ticks.tail) == ("ticks", Kind.ROOT, "belfast", 0)
    listing = stage.ask(ListLogs())
    assert isinstance(listing, Listing)
    assert listing.logs == [orders, stage.ask(Describe("ticks"))]


@pytest.mark.parametrize("owner", ["", "k8s/"])
@pytest.mark.parametrize(
    ("engine", "names"),
    [
        ("", ["orders", "ticks"]),
        ("bolt", ["orders"]),
        ("belfast", ["ticks"]),
        ("erwin", []),
        ("other", []),
    ],
)
def test_a_listing_can_be_confined_to_one_engine(owner: str, engine: str, names: list[str]) -> None:
    stage = Stage()
    stage.do(CreateLog("orders", owner="k8s/orders"))
    stage.create(owner="k8s/ticks")
    listing = stage.ask(ListLogs(owner=owner, engine=engine))
    assert [log.name for log in listing.logs] == names


@pytest.mark.parametrize("settings", [HERE, THERE])
def test_a_log_of_another_engine_has_a_quota_for_its_appends(settings: EngineSettings) -> None:
    stage = Stage()
    id, quota = stage.create(settings).id, Quota(append_bytes_per_s=2_000, append_records_per_s=5)
    assert stage.do(SetQuota(id, quota)).quota == quota
    image = snapshot.save(stage.state.replica)
    stage.state.replica = snapshot.load(image, Limits())
    assert stage.ask(Describe("ticks")).quota == quota
    assert stage.do(SetQuota(id, Quota())).quota is None


def test_reads_of_a_log_of_another_engine_have_no_quota() -> None:
    stage = Stage()
    id = stage.create().id
    kept = Quota(append_records_per_s=5)
    stage.do(SetQuota(id, kept))
    refused = stage.do(SetQuota(id, Quota(append_records_per_s=9, read_bytes_per_s=1)))
    assert code(refused) == "bad-request"
    assert "reads of logs of the belfast engine aren't limited" in refused.message
    assert stage.ask(Describe(id)).quota == kept, "what is refused changes nothing"


def test_an_erwin_log_has_a_mode_and_a_durability() -> None:
    stage = Stage()
    stage.do(CreateLog("plain", engine="erwin"))
    stage.do(CreateLog("fast", engine="erwin", settings=EngineSettings(3, 2, 2, **FAST)))
    image = snapshot.save(stage.state.replica)
    stage.state.replica = snapshot.load(image, Limits())
    kept = {log.name: log.settings for log in stage.ask(ListLogs(engine="erwin")).logs}
    assert kept == {
        "plain": EngineSettings(cluster="c", mode="m", durability="fsync"),
        "fast": EngineSettings(3, 2, 2, cluster="c", **FAST),
    }


FAST: Any = {"mode": "st", "durability": "memory"}


@pytest.mark.parametrize(
    ("engine", "settings"),
    [
        ("erwin", EngineSettings(mode="x")),
        ("erwin", EngineSettings(durability="disk")),
        ("belfast", EngineSettings(mode="m")),
        ("belfast", EngineSettings(durability="fsync")),
    ],
)
def test_a_mode_and_a_durability_are_erwins_and_known(
    engine: str, settings: EngineSettings
) -> None:
    assert code(Stage().do(CreateLog("a", engine=engine, settings=settings))) == "bad-request"


def test_what_an_erwin_log_has_promised_stays_when_it_moves() -> None:
    stage = Stage()
    created = CreateLog("a", owner="o", engine="erwin", settings=EngineSettings(**FAST))
    id = stage.do(created).id
    moved = EngineSettings(2, addresses=("a:1",), cluster="there")
    assert stage.do(SetSettings(id, moved)).settings == EngineSettings(
        2, addresses=("a:1",), cluster="there", **FAST
    )
    for other in (EngineSettings(mode="m"), EngineSettings(durability="fsync")):
        assert code(stage.do(SetSettings(id, other))) == "bad-request"
        again = CreateLog("a", owner="o", engine="erwin", settings=other)
        assert code(stage.do(again)) == "bad-request"


def test_before_its_format_the_catalogue_keeps_no_erwin_log() -> None:
    """A member that knows no such log would take its settings for nothing."""
    stage = Stage(5)
    assert stage.create().engine == "belfast"
    assert code(stage.do(CreateLog("a", engine="erwin"))) == "unavailable"
    stage.do(RaiseFormat(6))
    assert stage.do(CreateLog("a", engine="erwin")).engine == "erwin"


def test_the_controller_of_an_embedded_erwin_log_takes_a_place_as_well() -> None:
    stage = Stage(embedded_nodes_max=5)
    first = CreateLog("a", engine="erwin", settings=EngineSettings(embedded=True))
    assert stage.do(first).engine == "erwin", "a sequencer, a replica, a controller"
    for name, expected in (("b", "erwin"), ("c", "belfast")):
        settings = EngineSettings(embedded=True)
        made = stage.do(CreateLog(name, engine=expected, settings=settings))
        assert isinstance(made, Refused) == (expected == "erwin")


def test_an_embedded_logs_addresses_are_relative_to_the_services() -> None:
    stage = Stage()
    ticks = stage.create(EngineSettings(shards=2, sequencers=3, embedded=True))
    assert ticks.settings.addresses == tuple(f"/{ticks.id}/sequencer-{n}" for n in range(3))
    assert ticks.settings.cluster == "c"
    kept = stage.state.replica.forest.logs[ticks.id].settings
    assert kept is not None
    assert kept.addresses == ()


def test_a_log_that_runs_elsewhere_keeps_the_addresses_that_it_was_given() -> None:
    stage = Stage()
    assert stage.create(THERE).settings == THERE
    waiting = stage.do(CreateLog("new", engine="belfast"))
    assert waiting.settings == EngineSettings(cluster="c")


def test_bolt_does_nothing_to_a_log_of_another_engine() -> None:
    stage = Stage()
    id = stage.create().id
    refused = [
        stage.do(ForkLog(id, Kind.CONTINUOUS)),
        stage.do(Trim(id, 0)),
        stage.do(CommitCursor(id, "me", 0)),
        stage.ask(Resolve(id, 0, 1, 1)),
        stage.ask(ReadCursors(id)),
        stage.ask(PositionAt(id, 0)),
        stage.ask(Compare(id, id)),
    ]
    assert {code(outcome) for outcome in refused} == {"wrong-engine"}
    committed = stage.do(CommitObject("b", object_id(1, 1), [Row(id, 0, [Batch(9, 1)])], 0))
    assert isinstance(committed, Committed)
    assert [code(row) for row in committed.rows] == ["wrong-engine"]


def test_a_deleted_log_is_gone_as_any_other() -> None:
    stage = Stage()
    id = stage.create().id
    stage.do(DeleteLog(id))
    assert code(stage.ask(Describe("ticks"))) == "squashed"
    assert stage.state.replica.forest.foreign == {}
    assert stage.create().id > id, "a name may be used again, a number never"


def test_its_owner_declares_other_settings() -> None:
    stage = Stage()
    first = stage.create(THERE, owner="k8s/ticks")
    moved = EngineSettings(shards=3, addresses=("c:3",), cluster="there")
    again = stage.create(moved, owner="k8s/ticks")
    assert (again.id, again.settings) == (first.id, moved)
    assert stage.create(None, owner="k8s/ticks").settings == moved
    assert code(stage.create(EngineSettings(shards=0), owner="k8s/ticks")) == "bad-request"
    bolts = stage.do(CreateLog("other", owner="k8s/ticks"))
    assert bolts.settings == moved


def test_settings_of_a_log_that_runs_elsewhere_are_replaced() -> None:
    stage = Stage()
    id = stage.create(EngineSettings()).id
    assert stage.do(SetSettings(id, THERE)).settings == THERE
    assert stage.ask(Describe(id)).settings == THERE


@pytest.mark.parametrize("settings", [THERE, HERE])
def test_what_this_service_runs_isnt_found_elsewhere(settings: EngineSettings) -> None:
    stage = Stage()
    assert code(stage.do(SetSettings(stage.create(HERE).id, settings))) == "bad-request"
    bolts = stage.do(CreateLog("orders")).id
    assert code(stage.do(SetSettings(bolts, settings))) == "bad-request"
    assert code(stage.do(SetSettings(LogId(99), settings))) == "unknown-log"


@pytest.mark.parametrize(
    "settings",
    [
        EngineSettings(shards=0),
        EngineSettings(shards=SHARDS_MAX + 1),
        EngineSettings(replicas=REPLICAS_MAX + 1),
        EngineSettings(sequencers=SEQUENCERS_MAX + 1),
        EngineSettings(addresses=("a:1",) * (ADDRESSES_MAX + 1)),
        EngineSettings(addresses=("",)),
        EngineSettings(addresses=("a",)),
        EngineSettings(addresses=("a:1", "/7/sequencer-0")),
        EngineSettings(addresses=("a:123456",)),
        EngineSettings(addresses=("\x1b[31ma:1",)),
        EngineSettings(addresses=("a:1\n",)),
        EngineSettings(addresses=("unix:/a",)),
        EngineSettings(addresses=("a" * (ADDRESS_CHARS_MAX + 1),)),
        EngineSettings(cluster="c" * (CLUSTER_CHARS_MAX + 1)),
    ],
)
def test_settings_past_a_bound_are_refused(settings: EngineSettings) -> None:
    assert code(Stage().create(settings)) == "bad-request"


def test_a_bolt_log_takes_no_settings_and_an_unknown_engine_no_log() -> None:
    stage = Stage()
    assert code(stage.do(CreateLog("a", settings=HERE))) == "bad-request"
    assert code(stage.do(CreateLog("a", engine="other"))) == "bad-request"
    assert stage.do(CreateLog("a", engine="bolt")).engine == "bolt"


def test_this_process_runs_so_many_machines_and_no_more() -> None:
    stage = Stage(embedded_nodes_max=4)
    first = stage.create(EngineSettings(shards=3, embedded=True))
    more = CreateLog("more", engine="belfast", settings=EngineSettings(embedded=True))
    refused = stage.do(more)
    assert code(refused) == "too-many"
    assert refused.message == (
        "more takes 2 sequencers and shard replicas in this process, where other logs have 4 "
        "(`up --processes` runs each in its own, without a limit): the limit is 4 "
        "(embedded_nodes_max); remove some, or raise it"
    )
    assert stage.do(CreateLog("far", engine="belfast", settings=THERE)).engine == "belfast"
    stage.do(DeleteLog(first.id))
    assert stage.do(more).engine == "belfast"


def test_members_that_couldnt_read_it_are_never_given_such_a_log() -> None:
    stage = Stage(knows=4)
    assert code(stage.create()) == "unavailable"
    stage.do(RaiseFormat(5))
    assert stage.create().engine == "belfast"


def test_a_snapshot_keeps_whose_log_it_is() -> None:
    stage = Stage()
    made = [stage.create(), stage.do(CreateLog("far", engine="belfast", settings=THERE))]
    image = snapshot.save(stage.state.replica)
    stage.state.replica = snapshot.load(image, Limits())
    assert snapshot.save(stage.state.replica) == image
    assert broken(stage.state.replica) == []
    assert [stage.ask(Describe(log.id)) for log in made] == made
