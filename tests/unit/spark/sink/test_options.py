"""Options of a write: what is taken, what is refused and by which name."""

import pytest

from anabranch.errors import BadRequest
from anabranch_spark.sink.options import FORK_TTL_S, Mode, batch_options, stream_options


def test_a_log_is_enough() -> None:
    options = stream_options({"log": "orders"})
    assert (options.log, options.mode, options.writer) == ("orders", Mode.DIRECT, None)
    assert (options.service, options.fork_ttl_s) == (None, FORK_TTL_S)
    assert (options.run, options.version) == (None, None)


def test_names_are_read_as_spark_gives_them() -> None:
    given = {
        "log": "orders--try",
        "SERVICE": "anabranch://here",
        "mode": "fork",
        "writer": "query 7",
        "forkttl": "90",
        "checkpointLocation": "/tmp/here",
    }
    options = stream_options(given)
    assert (options.service, options.writer) == ("anabranch://here", "query 7")
    assert (options.mode, options.fork_ttl_s) == (Mode.FORK, 90)


def test_a_batch_write_is_identified_by_a_run_or_by_a_writers_version() -> None:
    assert batch_options({"log": "a", "runid": "2026-11-20"}).run == "2026-11-20"
    numbered = batch_options({"log": "a", "writer": "nightly", "version": "20261120"})
    assert (numbered.writer, numbered.version) == ("nightly", 20_261_120)
    assert batch_options({"log": "a"}).run is None


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({}, "option log: .* missing"),
        ({"log": ""}, "option log: .* missing"),
        ({"log": "a", "mod": "fork"}, "option mod: .*did you mean mode"),
        (
            {"log": "a", "numPartitions": "3"},
            "option numPartitions: .*there are service, log, mode",
        ),
        ({"log": "a", "from": "7"}, "option from: it is for reading, and this is writing"),
        ({"log": "a", "path": "/data"}, "option path: .*option log"),
        ({"log": "a", "mode": "Direct"}, "option mode=Direct: .*direct or fork"),
        ({"log": "a", "writer": ""}, "option writer="),
        ({"log": "a", "writer": "a\nb"}, "printable"),
        ({"log": "a", "writer": "a" * 151}, "150"),
        ({"log": "a", "mode": "fork", "forkTtl": "0"}, "1 second at least"),
        ({"log": "a", "mode": "fork", "forkTtl": "1h"}, "whole number"),
        ({"log": "a", "mode": "fork", "forkTtl": str(366 * 86_400)}, "whole number"),
        ({"log": "a", "forkTtl": "60"}, "for mode=fork only"),
    ],
)
def test_what_no_write_can_mean_is_refused_by_name(given: dict[str, str], says: str) -> None:
    with pytest.raises(BadRequest, match=says):
        stream_options(given)
    with pytest.raises(BadRequest, match=says):
        batch_options(given)


@pytest.mark.parametrize("option", ["runId", "version"])
def test_a_stream_has_no_options_of_batches(option: str) -> None:
    with pytest.raises(
        BadRequest, match=f"option {option}: it is for a batch only, and this is a stream"
    ):
        stream_options({"log": "a", option: "1"})


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"writer": "a"}, "version is missing"),
        ({"version": "1"}, "writer is missing"),
        ({"runId": "x", "writer": "a", "version": "1"}, "options runId and writer: both"),
        ({"writer": "a", "version": "-1"}, "whole number"),
        ({"writer": "a", "version": str(1 << 53)}, "whole number"),
        ({"writer": "a", "version": "9" * 5_000}, "whole number"),
        ({"runId": ""}, "option runId="),
    ],
)
def test_what_identifies_no_batch_is_refused(given: dict[str, str], says: str) -> None:
    with pytest.raises(BadRequest, match=says):
        batch_options({"log": "a", **given})
