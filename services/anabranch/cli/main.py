"""The `anabranch` command: finds the command asked for, runs it, and says in its exit code how it
went.
"""

import gc
import sys
from typing import Any

import click

from anabranch.cli.failure import EPILOGUE, run
from anabranch.cli.grammar import Commands, Section

PROGRAM = "anabranch"

SECTIONS: dict[str, Section] = {
    "Start": {
        "up": ("servers.up:up", "Run the whole log service in this process, until Ctrl-C."),
        "demo": (
            "demo.demo:demo",
            "Play fork, promote and squash on a log of its own, narrated.",
        ),
        "profile": (
            "commands.profile:profile",
            "Name services, so that nobody types their addresses.",
        ),
        "completion": (
            "commands.completion:completion",
            "Print the completion script of a shell.",
        ),
    },
    "Logs": {
        "log": ("commands.logs:log", "Create, list, show and delete logs."),
        "status": (
            "commands.status:status",
            "Show what a log or fork is, and how the shards of a Belfast or Erwin log do.",
        ),
        "top": ("commands.status:top", "Show how fast logs grow, live, until Ctrl-C."),
        "tree": ("commands.tree:tree", "Show roots and their forks."),
    },
    "Records": {
        "append": ("commands.append:append", "Append records to a log."),
        "read": ("commands.read:read", "Print the records of a log."),
        "tail": (
            "commands.tail:tail",
            "Print the last records of a log; with -f, go on with what comes.",
        ),
        "receipt": (
            "commands.receipt:receipt",
            "Redeem receipts of appends whose positions were withheld.",
        ),
        "cursor": ("commands.cursors:cursor", "Keep a reader's position in a log."),
        "writer": (
            "commands.writers:writer",
            "List and release the writers that a log remembers.",
        ),
        "sum": (
            "commands.diff:set_sum",
            "Print the sum that the service keeps of a range's batches.",
        ),
        "trim": ("commands.logs:trim", "Give up the records of a log before a position."),
    },
    "Forks": {
        "fork": ("commands.forks:fork", "Fork a log: in milliseconds, whatever its length."),
        "promote": ("commands.forks:promote", "Make a promotable fork its parent."),
        "squash": ("commands.forks:squash", "Delete a fork and all that inherits from it."),
        "diff": (
            "commands.diff:diff",
            "Show where two logs part, and what only one of them has.",
        ),
    },
    "Logs with shards": {
        "belfast": (
            "commands.belfast:belfast",
            "Look at the shards and windows of a Belfast log, and let shards join and leave.",
        ),
        "erwin": (
            "commands.erwin:erwin",
            "Look at the nodes of an Erwin log, and open and close its shards.",
        ),
    },
    "Jobs": {
        "spark": (
            "spark:spark",
            "Run the jobs that read and write logs on Spark.",
        ),
    },
    "Operation": {
        "brokers": (
            "commands.brokers:brokers",
            "List the brokers of the pool, and take some out of it.",
        ),
        "compactors": (
            "jobs.compactors:compactors",
            "List compactors, and end those that nobody needs.",
        ),
        "plans": (
            "jobs.plans:plans",
            "List scan plans, and end those that hold too much.",
        ),
        "bench": ("bench.bench:bench", "Measure this installation's throughput and latency."),
        "doctor": (
            "servers.doctor:doctor",
            "Look at an installation on Kubernetes, and collect what a bug report needs.",
        ),
        "fsck": (
            "servers.fsck:fsck",
            "Prove that everything in a data directory can be read.",
        ),
        "recover": (
            "servers.recover:recover",
            "Bring back a cluster whose etcd is lost, or a data directory whose journal is.",
        ),
    },
    "Processes of a cluster": {
        "metadata": ("servers.pods:metadata", "Run one metadata member of a cluster."),
        "broker": ("servers.pods:broker", "Run one broker of a cluster."),
        "gateway": ("servers.pods:gateway", "Serve HTTP before the brokers of a cluster."),
        "sequencer": ("servers.pods:sequencer", "Run one sequencer of a Belfast or Erwin log."),
        "shard": ("servers.pods:shard", "Run one replica of a shard of a Belfast or Erwin log."),
    },
}
"""The commands by purpose: where each is, and what the list of commands says of it."""

_YOUNG_OBJECTS = 50_000
"""Objects made before the collector looks for cycles among them. With Python's 700 it looked at
what commands import again and again, an eighth of the time in which a server starts.
"""

CONTEXT: dict[str, Any] = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
"""How all commands are read and shown."""


class Program(Commands):
    sections = SECTIONS


@click.command(cls=Program, epilog=EPILOGUE, context_settings=CONTEXT)
@click.version_option(package_name=PROGRAM, prog_name=PROGRAM)
def cli() -> None:
    """Anabranch: a shared log that can be forked.

    Start a server with `anabranch up`, then talk to it from another terminal.
    """


def main() -> None:
    gc.set_threshold(_YOUNG_OBJECTS, *gc.get_threshold()[1:])
    sys.exit(run(cli, PROGRAM, sys.argv[1:]))


if __name__ == "__main__":
    main()
