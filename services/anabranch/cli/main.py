"""The `anabranch` command: finds the command asked for, runs it, and says in its exit code how it
went.
"""

import sys
from importlib import import_module
from importlib.metadata import version

import click

from anabranch.cli.failure import EPILOGUE, run, unread

PROGRAM = "anabranch"

COMMANDS = {
    "up": ("commands.up:up", "Run the whole log service in this process, until Ctrl-C."),
    "log": ("commands.logs:log", "Create, list, show and delete logs."),
    "append": ("commands.append:append", "Append records to a log."),
    "read": ("commands.read:read", "Print the records of a log."),
    "tail": ("commands.read:tail", "Print the last records of a log, and follow it."),
    "fork": ("commands.forks:fork", "Fork a log: in milliseconds, whatever its length."),
    "promote": ("commands.forks:promote", "Make a promotable fork its parent."),
    "squash": ("commands.forks:squash", "Delete a fork and all that inherits from it."),
    "tree": ("commands.tree:tree", "Show roots and their forks."),
    "diff": ("commands.diff:diff", "Show where two logs part, and what only one of them has."),
    "trim": ("commands.logs:trim", "Give up the records of a log before a position."),
    "cursor": ("commands.cursors:cursor", "Keep a reader's position in a log."),
    "brokers": (
        "commands.brokers:brokers",
        "List the brokers of the pool, and take some out of it.",
    ),
    "bench": ("bench.bench:bench", "Measure this installation's throughput and latency."),
    "fsck": ("commands.fsck:fsck", "Prove that everything in a data directory can be read."),
    "recover": (
        "commands.recover:recover",
        "Bring back a cluster whose etcd is lost, or a data directory whose journal is.",
    ),
    "metadata": ("commands.pods:metadata", "Run one metadata member of a cluster."),
    "broker": ("commands.pods:broker", "Run one broker of a cluster."),
    "gateway": ("commands.pods:gateway", "Serve HTTP before the brokers of a cluster."),
    "belfast": (
        "commands.belfast:belfast",
        "Look at a Belfast log, append to it and read ahead of its order.",
    ),
    "sequencer": ("commands.pods:sequencer", "Run one sequencer of a Belfast log."),
    "shard": ("commands.pods:shard", "Run one replica of a shard of a Belfast log."),
    "doctor": (
        "commands.doctor:doctor",
        "Look at an installation on Kubernetes, and collect what a bug report needs.",
    ),
    "demo": ("demo.demo:demo", "Play fork, promote and squash on a log of its own, narrated."),
    "completion": ("commands.completion:completion", "Print the completion script of a shell."),
}
"""Where each is, and what the list of commands says of it; none is imported before it is used."""


class Commands(click.Group):
    """The commands by name, each loaded on first use: `anabranch --help` takes no moment."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, attribute = COMMANDS[cmd_name][0].split(":")
        found = getattr(import_module(f"anabranch.cli.{module}"), attribute)
        assert isinstance(found, click.Command)
        return found

    def invoke(self, ctx: click.Context) -> object:
        """Click would leave with 1, which says that something was refused."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise click.exceptions.Exit(unread()) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, says) for name, (_, says) in COMMANDS.items()])


@click.command(cls=Commands, epilog=EPILOGUE, context_settings={"max_content_width": 100})
@click.version_option(version(PROGRAM), prog_name=PROGRAM)
def cli() -> None:
    """Anabranch: a shared log that can be forked.

    Start a server with `anabranch up`, then talk to it from another terminal.
    """


def main() -> None:
    sys.exit(run(cli, PROGRAM, sys.argv[1:]))


if __name__ == "__main__":
    main()
