"""A local cluster comes back as it was, and grows and shrinks without moving what stays."""

import stat
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anabranch.apps.processes.layout import FILE, Counts, Layout, Pair, Shape, asked, pairs, settle
from anabranch.core.errors import BadRequest

SMALL = Shape(etcd=1, metadata=1, brokers=1)
SHAPES = st.builds(
    Shape,
    st.just(None),
    st.none() | st.integers(1, 4),
    st.none() | st.integers(1, 4),
)


def ports(layout: Layout) -> list[int]:
    pods = [*layout.metadata, *layout.brokers, layout.gateway]
    return [
        *layout.etcd,
        layout.s3_port,
        *(each for pod in pods for each in (pod.port, pod.probes)),
    ]


@settings(max_examples=15)
@given(st.lists(SHAPES, max_size=5))
def test_what_was_there_keeps_its_ports_and_names(shapes: list[Shape]) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        before = settle(folder, SMALL)
        counts = Counts(1, 1, 1)
        for shape in shapes:
            counts = asked(shape, counts)
            now = settle(folder, shape)
            assert (len(now.metadata), len(now.brokers)) == (counts.metadata, counts.brokers)
            for kept, after in (
                (before.metadata, now.metadata),
                (before.brokers, now.brokers),
            ):
                shared = min(len(kept), len(after))
                assert kept[:shared] == after[:shared]
            assert (now.cluster, now.etcd, now.s3_secret, now.gateway) == (
                before.cluster,
                before.etcd,
                before.s3_secret,
                before.gateway,
            )
            assert settle(folder, Shape()) == now, "it comes back as it was"
            before = now


def test_a_new_cluster_has_ports_and_secrets_of_its_own(tmp_path: Path) -> None:
    made = settle(tmp_path / "new" / "folder", Shape(etcd=3, metadata=2, brokers=2))
    assert len(made.etcd) == 9
    assert len(set(ports(made))) == len(ports(made))
    other = settle(tmp_path / "other", SMALL)
    assert made.cluster != other.cluster
    assert made.s3_secret != other.s3_secret
    assert made.url == f"anabranch://{made.brokers[0].address},{made.brokers[1].address}"
    assert made.members == ",".join(each.address for each in made.metadata)


def test_a_file_with_a_secret_is_nobody_elses(tmp_path: Path) -> None:
    settle(tmp_path, SMALL)
    assert stat.S_IMODE((tmp_path / FILE).stat().st_mode) == 0o600
    assert [each.name for each in tmp_path.iterdir()] == [FILE]


def test_etcd_can_not_grow_here(tmp_path: Path) -> None:
    settle(tmp_path, SMALL)
    with pytest.raises(BadRequest, match="it has 1 members of etcd, which can't become 3 here"):
        settle(tmp_path, Shape(etcd=3))
    assert len(settle(tmp_path, Shape(etcd=1)).etcd) == 3


def test_pairs_are_of_ports_that_are_free_and_different() -> None:
    found = pairs(5)
    assert len({port for each in found for port in (each.port, each.probes)}) == 10
    assert pairs(0) == []
    assert Pair(7, 8).address == "127.0.0.1:7"


@given(st.none() | st.integers(0, 9), st.none() | st.integers(0, 9))
def test_what_is_not_asked_for_stays(metadata: int | None, brokers: int | None) -> None:
    found = asked(Shape(None, metadata, brokers), Counts(3, 4, 5))
    assert found.etcd == 3
    assert found.metadata == (4 if metadata is None else metadata)
    assert found.brokers == (5 if brokers is None else brokers)
