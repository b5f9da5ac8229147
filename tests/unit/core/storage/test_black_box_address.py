"""Addresses of black boxes."""

import pytest

from anabranch.core.errors import BadRequest
from anabranch.core.storage.black_box_address import NAME_CHARS_MAX, BlackBoxAddress, BlackBoxKind


def test_kafka_has_several_brokers_and_a_topic_a_shard() -> None:
    found = BlackBoxAddress.parse("kafka://a:9092,[::1]:9093/clicks")
    assert found == BlackBoxAddress(BlackBoxKind.KAFKA, ("a:9092", "[::1]:9093"), "clicks")
    assert str(found.of_shard(2)) == "kafka://a:9092,[::1]:9093/clicks-2"
    assert BlackBoxAddress.parse(str(found)) == found


def test_an_address_that_a_log_may_have_is_one_for_each_of_its_shards() -> None:
    url = f"kafka://{'h' * 60}:1/"
    longest = BlackBoxAddress.of_log(url + "t" * NAME_CHARS_MAX)
    shard = longest.of_shard(999_999_999)
    assert BlackBoxAddress.parse(str(shard)) == shard
    with pytest.raises(BadRequest, match="characters"):
        BlackBoxAddress.of_log(url + "t" * (NAME_CHARS_MAX + 1))


def test_a_bolt_log_has_one_server() -> None:
    found = BlackBoxAddress.parse("anabranch://host:7420/votes")
    assert found == BlackBoxAddress(BlackBoxKind.BOLT, ("host:7420",), "votes")
    with pytest.raises(BadRequest, match="one server"):
        BlackBoxAddress.parse("anabranch://a:1,b:2/votes")


@pytest.mark.parametrize(
    "text",
    ["", "kafka://host/topic", "kafka://host:1", "s3://host:1/x", "kafka://host:1/a/b"],
)
def test_anything_else_is_refused_with_the_forms_there_are(text: str) -> None:
    with pytest.raises(BadRequest, match="kafka://HOST:PORT/TOPIC"):
        BlackBoxAddress.parse(text)


@pytest.mark.parametrize(
    "server",
    ["h:0", "h:65536", "h:99999", "a..b:1", ".:1", "[:::::]:1", "[1.2.3.4]:1", "x" * 64 + ":1"],
)
def test_a_server_that_nobody_could_dial_is_refused(server: str) -> None:
    for form in ("kafka://{}/t", "kafka://good:9092,{}/t", "anabranch://{}/t"):
        with pytest.raises(BadRequest):
            BlackBoxAddress.parse(form.format(server))


def test_a_password_is_refused_and_not_repeated() -> None:
    with pytest.raises(BadRequest) as refused:
        BlackBoxAddress.parse("kafka://me:secret@host:1/topic")
    assert "secret" not in refused.value.message
