"""The pool of a service that is one process: a broker that is this server itself."""

from tests.commands import Command

from anabranch.cli.failure import Exit


def test_the_one_broker_of_a_process_is_listed(ask: Command, log: str) -> None:
    (row,) = ask("brokers", "-o", "json").json["brokers"]
    assert row["roots"] >= 1
    assert ask("brokers", "list", "-o", "json").json["brokers"][0]["name"] == row["name"]
    head, line = ask("brokers").out.splitlines()
    assert head.split("  ")[0] == "BROKER"
    assert "this server" in line
    assert row["state"] in line


def test_options_are_those_of_the_list(ask: Command) -> None:
    assert "Usage: anabranch brokers [OPTIONS] COMMAND" in ask("brokers", "-h").out
    assert "no-such-option" in ask("brokers", "--no-such-option", code=Exit.USAGE).err
    assert "Did you mean 'drain'" in ask("brokers", "drian", code=Exit.USAGE).err


def test_a_broker_that_is_not_there_is_named(ask: Command) -> None:
    for verb in ("drain", "forget"):
        said = ask("brokers", verb, "nobody", code=Exit.REFUSED).err
        assert "there is no broker nobody: `anabranch brokers` shows the pool" in said
