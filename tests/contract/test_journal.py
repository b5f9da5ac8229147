"""What every journal promises (`ports.Journal`), and the file journal of its files."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.etcd_groups import Group, bridged, client_of

from anabranch.apps.processes.servers import EtcdGroup, EtcdServer
from anabranch.core.errors import JournalCorrupt, WrongCluster
from anabranch.core.storage import journal as layout
from anabranch.ports import Journal, Recovered, Snapshot
from anabranch.shell.etcd.api.client import EtcdClient
from anabranch.shell.etcd.archive.snapshots import BridgedBlobs
from anabranch.shell.journal.disk import RealDisk
from anabranch.shell.journal.file_journal import FileJournal
from anabranch.shell.journal.memory import MemoryJournal

Open = Callable[[], Journal]


def file_journal(path: Path, cluster: str = "c1") -> FileJournal:
    """Small segments, so that a few appends go through several."""
    return FileJournal(RealDisk(str(path)), cluster, segment_bytes=2_000, ahead_bytes=1_024)


@pytest.fixture(scope="module")
def etcd_one(etcd: EtcdServer) -> Iterator[EtcdClient]:
    client = client_of([etcd.address])
    yield client
    client.close()


@pytest.fixture(scope="module")
def etcd_group(etcd_three: EtcdGroup) -> Iterator[EtcdClient]:
    client = client_of(etcd_three.addresses)
    yield client
    client.close()


@pytest.fixture(scope="module")
def blobs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BridgedBlobs]:
    with bridged(tmp_path_factory.mktemp("snapshots")) as blobs:
        yield blobs


def opener(kind: str, request: pytest.FixtureRequest, path: Path) -> Open:
    """Opens one journal of this kind, again and again."""
    match kind:
        case "file":
            return lambda: file_journal(path / "journal")
        case "memory":
            journal = MemoryJournal()
            return lambda: journal
        case _:
            client = request.getfixturevalue(kind)
            return Group(client, request.getfixturevalue("blobs")).sole


@pytest.fixture(params=["memory", "file", "etcd_one", "etcd_group"])
def reopen(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    """Opens the journal of this test, again and again."""
    return opener(request.param, request, tmp_path)


def written(path: Path, *groups: list[bytes]) -> None:
    journal = file_journal(path)
    journal.recover()
    for group in groups:
        journal.append(group)
    journal.close()


def only_segment(path: Path) -> Path:
    (segment,) = path.glob("*.segment")
    return segment


def test_a_new_journal_is_empty(reopen: Open) -> None:
    journal = reopen()
    assert journal.recover() == Recovered(None, 1, [])
    journal.close()
    assert reopen().recover().last == 0


def test_append_says_the_index_of_the_last_entry(reopen: Open) -> None:
    journal = reopen()
    journal.recover()
    assert journal.append([b"a"]) == 1
    assert journal.append([b"b", b"", b"c"]) == 4
    assert journal.append([b"d"]) == 5


def test_entries_come_back_in_order_after_each_of_many_reopenings(reopen: Open) -> None:
    expected: list[bytes] = []
    for life in range(8):
        journal = reopen()
        recovered = journal.recover()
        assert recovered.entries == expected
        assert recovered.first == 1
        for group in range(life):
            entries = [f"{life} {group} {entry}".encode() * 20 for entry in range(group + 1)]
            expected += entries
            assert journal.append(entries) == len(expected)
        journal.close()


def test_a_snapshot_takes_the_place_of_the_entries_it_contains(reopen: Open) -> None:
    journal = reopen()
    journal.recover()
    for n in range(10):
        journal.append([b"%d" % n] * 3)
    journal.save_snapshot(14, b"state at 14")
    journal.append([b"last"])
    journal.close()
    recovered = reopen().recover()
    assert recovered.snapshot == Snapshot(14, b"state at 14")
    assert recovered.first == 15
    assert recovered.entries == [b"%d" % (n // 3) for n in range(14, 30)] + [b"last"]
    assert recovered.last == 31


def test_a_journal_whose_snapshot_contains_everything_goes_on_behind_it(reopen: Open) -> None:
    journal = reopen()
    journal.recover()
    journal.append([b"a", b"b"])
    journal.save_snapshot(2, b"ab")
    journal.close()
    journal = reopen()
    assert journal.recover() == Recovered(Snapshot(2, b"ab"), 3, [])
    assert journal.append([b"c"]) == 3
    journal.close()
    assert reopen().recover() == Recovered(Snapshot(2, b"ab"), 3, [b"c"])


def test_a_snapshot_no_newer_than_the_last_changes_nothing(reopen: Open) -> None:
    journal = reopen()
    journal.recover()
    journal.append([b"a", b"b", b"c"])
    journal.save_snapshot(2, b"ab")
    journal.save_snapshot(2, b"other")
    journal.save_snapshot(1, b"older")
    journal.close()
    assert reopen().recover() == Recovered(Snapshot(2, b"ab"), 3, [b"c"])


@given(
    steps=st.lists(
        st.one_of(
            st.lists(st.binary(max_size=300), min_size=1, max_size=4),
            st.sampled_from(["snapshot", "reopen", "kill"]),
        ),
        max_size=40,
    )
)
@pytest.mark.parametrize("kind", ["memory", "file", "etcd_one", "etcd_group"])
def test_a_journal_is_a_list_whatever_is_done_to_it(
    kind: str,
    steps: list[list[bytes] | str],
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    open_again = opener(kind, request, tmp_path_factory.mktemp("journal"))
    journal = open_again()
    journal.recover()
    model: list[bytes] = []
    snapshot: Snapshot | None = None
    for step in steps:
        if isinstance(step, list):
            model += step
            assert journal.append(step) == len(model)
        elif step == "snapshot":
            if model:
                snapshot = Snapshot(len(model), b"".join(model))
                journal.save_snapshot(snapshot.index, snapshot.content)
        else:
            if kind == "memory" or step == "reopen":
                journal.close()
            journal = open_again()
            base = snapshot.index if snapshot else 0
            assert journal.recover() == Recovered(snapshot, base + 1, model[base:])


def test_a_journal_that_was_never_closed_has_all_that_was_appended(tmp_path: Path) -> None:
    first = file_journal(tmp_path)
    first.recover()
    first.append([b"a"])
    first.append([b"b", b"c"])
    assert file_journal(tmp_path).recover() == Recovered(None, 1, [b"a", b"b", b"c"])


def test_segments_below_the_older_of_two_snapshots_are_removed(tmp_path: Path) -> None:
    journal = file_journal(tmp_path)
    journal.recover()
    for n in range(60):
        journal.append([b"x" * 500])
        if n % 20 == 19:
            journal.save_snapshot(n + 1, b"state at %d" % (n + 1))
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names[-2:] != names[:2]
    assert [name for name in names if name.endswith(".snapshot")] == [
        layout.snapshot_name(40),
        layout.snapshot_name(60),
    ]
    firsts = sorted(
        header.extent
        for path in tmp_path.glob("*.segment")
        if (header := layout.read_header(path.read_bytes(), path.name, "c1"))
    )
    assert firsts[0] <= 41 < firsts[1]


def test_an_unreadable_snapshot_is_replaced_by_the_older_one_and_the_entries(
    tmp_path: Path,
) -> None:
    journal = file_journal(tmp_path)
    journal.recover()
    for n in range(30):
        journal.append([b"%d" % n + b"x" * 300])
        if n in {9, 19}:
            journal.save_snapshot(n + 1, b"state at %d" % (n + 1))
    journal.close()
    newest = tmp_path / layout.snapshot_name(20)
    newest.write_bytes(newest.read_bytes()[:-1] + b"?")
    journal = file_journal(tmp_path)
    recovered = journal.recover()
    assert recovered.snapshot == Snapshot(10, b"state at 10")
    assert recovered.entries == [b"%d" % n + b"x" * 300 for n in range(10, 30)]
    assert len(recovered.repairs) == 1
    assert str(newest) in recovered.repairs[0]
    journal.save_snapshot(30, b"state at 30")
    journal.close()
    assert file_journal(tmp_path).recover() == Recovered(Snapshot(30, b"state at 30"), 31, [])


def test_a_journal_of_which_no_snapshot_is_readable_is_refused_by_name(tmp_path: Path) -> None:
    journal = file_journal(tmp_path)
    journal.recover()
    for n in range(30):
        journal.append([b"x" * 300])
        if n % 10 == 9:
            journal.save_snapshot(n + 1, b"state")
    journal.close()
    for path in tmp_path.glob("*.snapshot"):
        path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(JournalCorrupt) as refused:
        file_journal(tmp_path).recover()
    assert refused.value.facts["path"] == str(tmp_path / layout.snapshot_name(30))


def test_a_tail_torn_at_any_byte_costs_only_the_unfinished_group(tmp_path: Path) -> None:
    written(tmp_path, [b"first"])
    whole = only_segment(tmp_path).stat().st_size - layout.SEAL_BYTES
    only_segment(tmp_path).unlink()
    written(tmp_path, [b"first"], [b"second", b"x" * 100])
    segment = only_segment(tmp_path)
    content = segment.read_bytes()
    for cut in range(whole, len(content) - layout.SEAL_BYTES):
        segment.write_bytes(content[:cut])
        recovered = file_journal(tmp_path).recover()
        assert recovered.entries == [b"first"]
        assert len(recovered.repairs) == (cut > whole)
        assert segment.read_bytes()[:whole] == content[:whole]
        assert file_journal(tmp_path).recover() == Recovered(None, 1, [b"first"])
        for later in sorted(tmp_path.glob("*.segment"))[1:]:
            later.unlink()


def test_damage_is_refused_with_file_and_offset_and_nothing_is_changed(tmp_path: Path) -> None:
    written(tmp_path, [b"first"], [b"second", b"third"], [b"fourth"])
    segment = only_segment(tmp_path)
    content = segment.read_bytes()
    second = layout.HEADER_BYTES + layout.GROUP_HEADER_BYTES + 4 + len(b"first")
    third = second + layout.GROUP_HEADER_BYTES + 8 + len(b"secondthird")
    fourth = third + layout.GROUP_HEADER_BYTES + 4 + len(b"fourth")
    starts = [0, layout.HEADER_BYTES, second, third]
    for place in range(fourth):
        damaged = bytearray(content)
        damaged[place] ^= 1 << place % 8
        segment.write_bytes(damaged)
        with pytest.raises(JournalCorrupt) as refused:
            file_journal(tmp_path).recover()
        assert refused.value.facts["path"] == str(segment)
        assert refused.value.facts["offset"] == max(s for s in starts if s <= place)
        assert segment.read_bytes() == damaged
    segment.write_bytes(content)
    assert file_journal(tmp_path).recover().last == 4


def test_damage_to_the_last_group_is_refused_also_if_the_process_was_killed(tmp_path: Path) -> None:
    journal = file_journal(tmp_path)
    journal.recover()
    journal.append([b"first"])
    journal.append([b"second"])
    content = only_segment(tmp_path).read_bytes()
    second = layout.HEADER_BYTES + layout.GROUP_HEADER_BYTES + 4 + len(b"first")
    for place in range(second, second + layout.GROUP_HEADER_BYTES + 4 + len(b"second")):
        damaged = bytearray(content)
        damaged[place] ^= 1 << place % 8
        only_segment(tmp_path).write_bytes(damaged)
        with pytest.raises(JournalCorrupt) as refused:
            file_journal(tmp_path).recover()
        assert refused.value.facts["offset"] == second


def test_a_snapshot_proves_its_entries_by_its_name_even_if_it_is_unreadable(tmp_path: Path) -> None:
    """Or else a damaged snapshot and a torn tail together would quietly lose what they held."""
    written(tmp_path, [b"a"])
    journal = file_journal(tmp_path)
    journal.recover()
    journal.append([b"b"])
    journal.save_snapshot(1, b"a")
    journal.save_snapshot(2, b"ab")
    (tmp_path / layout.snapshot_name(2)).write_bytes(b"")
    segment = max(tmp_path.glob("*.segment"))
    segment.write_bytes(segment.read_bytes()[: layout.HEADER_BYTES + 10])
    with pytest.raises(JournalCorrupt) as refused:
        file_journal(tmp_path).recover()
    assert refused.value.facts["path"] == str(segment)
    assert refused.value.facts["offset"] == layout.HEADER_BYTES


def test_a_removed_segment_that_power_loss_brings_back_does_no_harm(tmp_path: Path) -> None:
    journal = file_journal(tmp_path)
    journal.recover()
    for _ in range(12):
        journal.append([b"x" * 900])
    oldest = min(tmp_path.glob("*.segment"))
    content = oldest.read_bytes()
    journal.save_snapshot(10, b"state at 10")
    journal.save_snapshot(11, b"state at 11")
    journal.close()
    assert not oldest.exists()
    oldest.write_bytes(content)
    recovered = file_journal(tmp_path).recover()
    assert recovered == Recovered(Snapshot(11, b"state at 11"), 12, [b"x" * 900])


def test_a_missing_or_exchanged_segment_is_refused_by_name(tmp_path: Path) -> None:
    groups = [[b"%d" % n * 600] for n in range(20)]
    written(tmp_path / "a", *groups)
    written(tmp_path / "b", *[[b"x" * len(group[0])] for group in groups])
    segments = sorted((tmp_path / "a").glob("*.segment"))
    assert len(segments) > 4
    content = segments[2].read_bytes()
    segments[2].unlink()
    with pytest.raises(JournalCorrupt) as refused:
        file_journal(tmp_path / "a").recover()
    assert refused.value.facts["path"] == str(segments[1])
    segments[2].write_bytes((tmp_path / "b" / segments[2].name).read_bytes())
    with pytest.raises(JournalCorrupt, match="doesn't continue"):
        file_journal(tmp_path / "a").recover()
    segments[2].write_bytes(segments[3].read_bytes())
    with pytest.raises(JournalCorrupt, match="by its header"):
        file_journal(tmp_path / "a").recover()
    segments[2].write_bytes(content)
    assert file_journal(tmp_path / "a").recover().last == 20
    segments[0].unlink()
    with pytest.raises(JournalCorrupt, match="entry 1 is nowhere"):
        file_journal(tmp_path / "a").recover()


def test_the_journal_of_another_cluster_is_refused(tmp_path: Path) -> None:
    written(tmp_path, [b"a"])
    with pytest.raises(WrongCluster):
        file_journal(tmp_path, cluster="c2").recover()


def test_files_that_were_never_finished_are_removed_and_said(tmp_path: Path) -> None:
    written(tmp_path, [b"a"])
    (tmp_path / (layout.snapshot_name(1) + ".part")).write_bytes(b"half a snapsh")
    (tmp_path / layout.segment_name(2)).write_bytes(bytes(1024))
    recovered = file_journal(tmp_path).recover()
    assert recovered.entries == [b"a"]
    assert len(recovered.repairs) == 2
    assert file_journal(tmp_path).recover() == Recovered(None, 1, [b"a"])


def test_a_snapshot_may_be_saved_by_another_thread_while_appends_go_on(tmp_path: Path) -> None:

    journal = file_journal(tmp_path)
    journal.recover()
    last = journal.append([b"0"])

    def snapshots() -> None:
        for _ in range(30):
            journal.save_snapshot(last, b"%d" % last)

    with ThreadPoolExecutor(1) as other:
        saved = other.submit(snapshots)
        for n in range(1, 300):
            last = journal.append([b"%d" % n])
        saved.result()
    journal.save_snapshot(last, b"%d" % last)
    last = journal.append([b"behind"])
    journal.close()
    recovered = file_journal(tmp_path).recover()
    assert recovered == Recovered(Snapshot(300, b"300"), 301, [b"behind"])
