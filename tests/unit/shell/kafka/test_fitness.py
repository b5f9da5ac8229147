"""Which topics may keep a log's records."""

from anabranch.shell.kafka.fitness import WANTED, unfit

FIT = {**WANTED, "max.message.bytes": "1048588"}


def test_a_topic_as_it_is_created_is_fit() -> None:
    assert unfit(FIT) is None


def test_a_topic_that_deletes_by_itself_is_not() -> None:
    for name, value in (
        ("retention.ms", "604800000"),
        ("retention.bytes", "1"),
        ("cleanup.policy", "compact"),
    ):
        reason = unfit({**FIT, name: value})
        assert reason is not None
        assert f"its {name} is {value}" in reason


def test_a_topic_that_takes_small_messages_only_is_not() -> None:
    reason = unfit({**FIT, "max.message.bytes": "1000"})
    assert reason is not None
    assert "max.message.bytes" in reason
