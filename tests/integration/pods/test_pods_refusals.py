"""What can't be right is refused at the start, with a sentence that says what to change."""

import re
import socket
from typing import Any

import msgspec
import pytest
from tests.integration.pods.crew import Crew, Pod, start, until
from tests.servers import bucket_of

from anabranch.apps.processes.servers import EtcdServer, S3Server
from anabranch.cli.failure import Exit
from anabranch.shell.etcd.group.marker import fresh

AT_ONCE = {"patience_ms": 0}


def refusal(pod: Pod) -> str:
    """It ends with a sentence, and not with a trace."""
    pod.launch()
    assert pod.ended() in {Exit.REFUSED, Exit.BLOCKED, Exit.DAMAGE}
    assert "Traceback" not in pod.said
    said = pod.said.splitlines()[-1]
    assert said.startswith("error: ")
    return said


def test_a_member_without_its_surroundings_does_not_start(crew: Crew) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert re.search(r"127.0.0.1:\d+ .*: choose another port", refusal(crew.member(port=port)))
        dead = f"127.0.0.1:{_unheard()}"
        assert dead in refusal(crew.member(etcd_endpoints=dead, **AT_ONCE))
        assert "s3_endpoint" in refusal(crew.member(s3_endpoint=f"http://{dead}", **AT_ONCE))
    assert "s3_create_bucket" in refusal(crew.member(s3_bucket="nowhere-at-all", **AT_ONCE))
    assert "s3_secret_key" in refusal(crew.member(s3_secret_key="wrong", **AT_ONCE))
    assert "s3_access_key" in refusal(crew.member(s3_access_key="nobody", **AT_ONCE))
    assert "there is no such failpoint" in refusal(crew.member(failpoints="no=exit"))


def test_one_that_waits_at_the_start_ends_when_it_is_told_to(crew: Crew) -> None:
    dead = f"127.0.0.1:{_unheard()}"
    waiting = crew.member(etcd_endpoints=dead, patience_ms=600_000)
    waiting.launch()
    until(lambda: waiting.logged("waiting"))
    assert waiting.end() == Exit.BLOCKED
    assert "etcd is not available now: this process was told to end" in waiting.said


def _unheard() -> int:
    """A port at which nobody listens; the system gives such a low one to nobody else."""
    return 1


def test_a_bucket_and_an_etcd_of_two_clusters_do_not_go_together(crew: Crew, s3: S3Server) -> None:
    start([crew.member()])
    (member,) = crew.members
    another = bucket_of(s3).bucket
    assert f"the bucket has nothing of cluster {crew.cluster}" in refusal(
        crew.member(s3_bucket=another, **AT_ONCE)
    )
    unused = refusal(crew.broker(s3_bucket=another, **AT_ONCE))
    assert "start its metadata members first, or name another with s3_bucket" in unused
    marker = s3.buckets / another / crew.cluster / "cluster"
    marker.parent.mkdir()
    marker.write_bytes(msgspec.json.encode(fresh(crew.cluster)))
    assert "of the bucket" in refusal(crew.member(s3_bucket=another, **AT_ONCE))
    assert "of its bucket" in refusal(crew.broker(s3_bucket=another, **AT_ONCE))
    newer = msgspec.json.encode(msgspec.structs.replace(fresh(crew.cluster), format=99))
    marker.write_bytes(newer)
    assert "newer version (format 99)" in refusal(crew.member(s3_bucket=another, **AT_ONCE))
    assert member.running


def test_a_stranger_among_brokers_is_refused_by_the_members(crew: Crew, s3: S3Server) -> None:
    member = crew.member(peer_token="secret")
    start([member])
    marker = s3.buckets / crew.bucket.bucket / "another" / "cluster"
    marker.parent.mkdir()
    marker.write_bytes(msgspec.json.encode(fresh("another")))
    told: list[tuple[dict[str, Any], str]] = [
        ({"cluster": "another", "peer_token": "secret"}, "belongs to cluster"),
        ({"peer_token": "wrong"}, "peer_token"),
        ({}, "peer_token"),
    ]
    for flags, sentence in told:
        broker = crew.broker(**flags)
        assert sentence in refusal(broker)
        until(lambda sentence=sentence: sentence in member.said)
    right = crew.broker(peer_token="secret")
    start([right])


def test_settings_come_from_flags_environment_and_file_alike(crew: Crew, etcd: EtcdServer) -> None:
    file = crew.folder / "cluster.toml"
    bucket = crew.bucket
    file.write_text(
        f"""cluster = "{crew.cluster}"
        [etcd]
        endpoints = ["{etcd.address}"]
        [limits]
        drain_ms = 5000
        """
    )
    environment = {
        "ANABRANCH_CONFIG": str(file),
        "ANABRANCH_S3_BUCKET": bucket.bucket,
        "ANABRANCH_S3_ENDPOINT": str(bucket.endpoint),
        "ANABRANCH_S3_ACCESS_KEY": str(bucket.access_key),
        "ANABRANCH_S3_SECRET_KEY": str(bucket.secret_key),
        "ANABRANCH_METADATA": "127.0.0.1:1",
    }
    pod = Pod("metadata", "metadata-9", {}, crew.folder / "pod", **environment)
    try:
        start([pod])
        line = next(line for line in pod.lines if line["event"] == "serving")
        assert (line["cluster"], line["name"]) == (crew.cluster, "metadata-9")
        crew.members.append(pod)
        start([crew.broker()])
        assert pod.end() == 0
    finally:
        pod.kill()


@pytest.mark.parametrize("kind", ["metadata", "broker"])
def test_what_must_be_given_is_asked_for(crew: Crew, kind: str) -> None:
    pod = Pod(kind, "nobody", {}, crew.folder / "pod")
    assert "cluster: it must be given: by --cluster, ANABRANCH_CLUSTER" in refusal(pod)
