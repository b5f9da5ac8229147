"""Records in each of their forms, for a log of either engine."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.cli.render.output import Output
from anabranch.cli.render.records import Printer, RecordFormat
from anabranch.client.session.records import LogRecord
from anabranch.core.types import LogId

OF_BOLT = LogRecord(12, b"v\n", b"k", (), 5, LogId(1), 2)
OF_BELFAST = LogRecord(7, b"v", None, (), 5, LogId(1), 2, "shard-1")


def printer(names: dict[LogId, str] | None = None, *, shards: bool = False) -> Printer:
    return Printer(Output(), RecordFormat.TEXT, names=names, shards=shards)


@pytest.mark.parametrize(
    ("record", "names", "shards", "text"),
    [
        (OF_BOLT, None, False, "      12  [k]  v\\n"),
        (OF_BOLT, {LogId(1): "orders"}, False, "      12  orders:2  [k]  v\\n"),
        (OF_BOLT, {}, False, "      12  1:2  [k]  v\\n"),
        (OF_BELFAST, None, False, "       7  v"),
        (OF_BELFAST, None, True, "       7  shard-1  v"),
        (OF_BELFAST, {LogId(1): "ticks"}, False, "       7  v"),
    ],
)
def test_text_shows_where_a_record_came_from_if_that_is_asked_for(
    record: LogRecord, names: dict[LogId, str] | None, shards: bool, text: str
) -> None:
    assert printer(names, shards=shards).text(record) == text


def test_json_names_the_log_or_its_number_or_the_shard() -> None:
    assert printer({LogId(1): "orders"}).document(OF_BOLT)["origin"] == {
        "log": "orders",
        "position": 2,
    }
    assert printer({}).document(OF_BOLT)["origin"]["log"] == 1
    document = printer().document(OF_BELFAST)
    assert document["shard"] == "shard-1"
    assert not {"origin", "id"} & document.keys()


@given(
    st.lists(st.tuples(st.none() | st.binary(max_size=5), st.none() | st.binary(max_size=5))),
    st.none() | st.sampled_from([b":", b"\t", b"=>"]),
)
def test_raw_output_is_the_bytes_and_a_newline(
    pairs: list[tuple[bytes | None, bytes | None]], delimiter: bytes | None
) -> None:
    records = [LogRecord(0, value, key, (), 0, LogId(1), 0) for key, value in pairs]
    with pytest.MonkeyPatch.context() as patched:
        written = io.BytesIO()
        patched.setattr("sys.stdout", io.TextIOWrapper(written))
        Printer(Output(), RecordFormat.RAW, delimiter=delimiter).records(records)
        expected = b""
        for key, value in pairs:
            if delimiter is not None and key is not None:
                expected += key + delimiter
            expected += (value or b"") + b"\n"
        assert written.getvalue() == expected
