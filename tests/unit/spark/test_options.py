"""Options of reading: all are checked, and none is ignored."""

from contextlib import suppress
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.errors import BadRequest
from anabranch_spark.option_table import READING, Kind
from anabranch_spark.options import read_options

LOG = {"log": "orders"}


def test_only_the_log_has_to_be_named() -> None:
    options = read_options(LOG, "batch")
    assert options.logs == ("orders",)
    assert (options.start, options.end) == ("earliest", None)
    assert options.columns[0] == "position"
    assert options.ask_broker
    assert not options.ignore_loss
    with pytest.raises(BadRequest, match=r"option log: .* missing"):
        read_options({}, "batch")


def test_names_are_taken_in_any_case() -> None:
    given = {**LOG, "PARTITIONBYTES": "1k", "minpartitions": "7"}
    options = read_options(given, "batch")
    assert (options.partition_bytes, options.min_partitions) == (1024, 7)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("partitonBytes", "did you mean partitionBytes"),
        ("maxbytespertriger", "did you mean maxBytesPerTrigger"),
        ("path", "with the option log"),
        ("runId", "for writing"),
        ("forkTtl", "for writing"),
        ("version", "for writing"),
        ("zzz", "there are service, log, from"),
    ],
)
def test_an_unknown_option_is_refused_with_advice(name: str, hint: str) -> None:
    with pytest.raises(BadRequest, match=name) as refused:
        read_options({**LOG, name: "1"}, "batch")
    assert hint in refused.value.message


@pytest.mark.parametrize(
    ("kind", "name"),
    [("stream", "speculative"), ("stream", "pushdown"), ("batch", "maxRecordsPerTrigger")],
)
def test_an_option_of_the_other_kind_is_refused(kind: Kind, name: str) -> None:
    with pytest.raises(BadRequest, match=f"option {name}: it is for a"):
        read_options({**LOG, name: "true"}, kind)


@pytest.mark.parametrize(
    ("text", "bound"),
    [
        ("0", 0),
        ("17", 17),
        ("earliest", "earliest"),
        ("latest", "latest"),
        ("2026-11-20T10:00:00Z", datetime(2026, 11, 20, 10, tzinfo=UTC)),
        ("2026-11-20T12:00:00+02:00", datetime(2026, 11, 20, 10, tzinfo=UTC)),
    ],
)
def test_an_end_is_a_position_a_time_or_a_word(text: str, bound: object) -> None:
    assert read_options({**LOG, "from": text}, "batch").start == bound
    assert read_options({**LOG, "to": text}, "stream").end == bound


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("from", "yesterday", "a position, a time, earliest or latest"),
        ("from", "-1", "a position, a time"),
        ("from", "2026-11-20T10:00:00", "needs its zone"),
        ("to", "1969-01-01T00:00:00Z", "begin in 1970"),
        ("from", "9" * 30, "whole number"),
        ("partitionBytes", "0", "1 byte"),
        ("partitionBytes", "1.5m", "number of bytes"),
        ("minPartitions", "0", "between 1 and"),
        ("minPartitions", "many", "whole number"),
        ("planLease", "0s", "between 1 and"),
        ("planLease", "soon", "length of time"),
        ("speculative", "yes", "true or false"),
        ("onDataLoss", "shrug", "ignore or fail"),
        ("onDamage", "", "ask or fail"),
        ("store", "direct", "signed URLs only"),
        ("store", "s3", "presigned"),
        ("columns", "position,valeu", "no column 'valeu'; there are position"),
        ("columns", "key,key", "named twice"),
        ("columns", "log", "no column 'log'"),
        ("log", "a,,b", "empty"),
        ("log", "a,a", "named twice"),
    ],
)
def test_a_value_that_cannot_be_is_refused_by_its_option(name: str, value: str, says: str) -> None:
    with pytest.raises(BadRequest, match=f"option {name}=") as refused:
        read_options({**LOG, name: value}, "batch")
    assert says in refused.value.message


def test_ends_in_the_wrong_order_are_refused() -> None:
    with pytest.raises(BadRequest, match="from and to: 7 comes after 3"):
        read_options({**LOG, "from": "7", "to": "3"}, "batch")
    times = {"from": "2026-01-02T00:00:00Z", "to": "2026-01-01T00:00:00Z"}
    with pytest.raises(BadRequest, match="from and to"):
        read_options({**LOG, **times}, "batch")


def test_several_logs_give_their_column_to_a_batch_only() -> None:
    options = read_options({"log": "a, b"}, "batch")
    assert options.logs == ("a", "b")
    assert options.columns[0] == "log"
    with pytest.raises(BadRequest, match="a stream reads one log"):
        read_options({"log": "a,b"}, "stream")


def test_a_micro_batch_is_not_asked_for_more_than_it_may_have() -> None:
    given = {**LOG, "minRecordsPerTrigger": "10", "maxRecordsPerTrigger": "9"}
    with pytest.raises(BadRequest, match="minRecordsPerTrigger and maxRecordsPerTrigger"):
        read_options(given, "stream")


@pytest.mark.parametrize(
    ("text", "seconds"), [("500ms", 0.5), ("30s", 30), ("30", 30), ("5 m", 300), ("1h", 3600)]
)
def test_lengths_of_time_have_units(text: str, seconds: float) -> None:
    assert read_options({**LOG, "maxTriggerDelay": text}, "stream").delay == seconds


@given(
    st.sampled_from([option.name for option in READING]),
    st.text(max_size=60),
    st.sampled_from(["batch", "stream", None]),
)
def test_whatever_is_given_is_granted_or_refused(name: str, value: str, kind: Kind | None) -> None:
    with suppress(BadRequest):
        read_options({**LOG, name: value}, kind)
