"""`anabranch up`: the only part of the command line that knows the server."""

import os
from typing import TYPE_CHECKING, Any

import click

from anabranch.cli.service.choice import DEFAULT_URL

if TYPE_CHECKING:
    from pathlib import Path

    from anabranch.apps.settings import Settings
    from anabranch.apps.up import Endpoint
    from anabranch.shell.telemetry.log import Log

_CONFIG = click.option(
    "--config",
    type=click.Path(exists=True, dir_okay=False),
    envvar="ANABRANCH_CONFIG",
    help="A TOML file with settings and limits; flags and ANABRANCH_... variables win over it.",
)


@click.command()
@click.option("--data", type=click.Path(file_okay=False), help="Keep everything in this directory.")
@click.option(
    "--memory", is_flag=True, default=None, help="Keep everything in memory, until the end."
)
@click.option("--host", help="The address to listen at; any but loopback's needs a token.")
@click.option("--port", type=int, help="Of the binary protocol; 0 takes any free one.")
@click.option("--http-port", type=int, help="Of HTTP; 0 takes any free one.")
@click.option("--no-http", is_flag=True, help="Serve no HTTP.")
@click.option("--token", help="What clients must show.")
@click.option("--cluster", help="The name of a new data directory's cluster.")
@click.option("--log-format", type=click.Choice(["human", "json"]), help="How log lines look.")
@click.option(
    "--accept-loss",
    is_flag=True,
    help="Start on a journal that is older than its objects, and begin Belfast and Erwin logs anew "
    "whose journals are gone; what isn't known any more is given up. With --processes, the latter "
    "alone.",
)
@click.option(
    "--processes",
    is_flag=True,
    help="A cluster instead: etcd, an S3 server, metadata, brokers and a gateway, each a process. "
    "It takes free ports and prints its addresses; of the options above it takes --data, "
    "--no-http, --log-format and --accept-loss.",
)
@click.option(
    "--engine",
    type=click.Choice(["bolt", "belfast"]),
    default="bolt",
    show_default=True,
    help="belfast: serve one Belfast log and nothing else, each replica a process, at a belfast:// "
    "address. A server without this option has logs of all engines: `anabranch log create "
    "--engine belfast`.",
)
@click.option(
    "--sequencers", type=click.IntRange(1, 7), help="Sequencers of a new belfast log (default 3)."
)
@click.option(
    "--shards",
    type=click.IntRange(1, 40),
    help="Shards of a belfast log (default: as many as it has, 2 in a new one).",
)
@click.option(
    "--copies",
    type=click.IntRange(1, 5),
    help="Replicas of each shard of a new belfast log (default 2).",
)
@click.option(
    "--namespaces",
    is_flag=True,
    help="Each process of a belfast log in a network namespace of its own, as machines; as root.",
)
@click.option(
    "--metadata",
    type=click.IntRange(1, 9),
    help="Metadata members, with --processes (default: as many as there are, 3 at first).",
)
@click.option(
    "--brokers",
    type=click.IntRange(1, 64),
    help="Brokers, with --processes (default: as many as there are, 4 at first).",
)
@click.option(
    "--etcd",
    type=click.IntRange(1, 5),
    help="Members of etcd of a new cluster, with --processes (default 1).",
)
@click.option(
    "--kafka-file",
    type=click.Path(exists=True, dir_okay=False),
    help="A TOML file that says how Kafka clusters are reached which ask for TLS or a user, where "
    "Erwin logs keep their records in Kafka.",
)
@_CONFIG
def up(
    no_http: bool,
    accept_loss: bool,
    processes: bool,
    engine: str,
    namespaces: bool,
    **flags: Any,
) -> None:
    """Run the whole log service in this process, until Ctrl-C.

    What is acknowledged survives whatever happens to the process, unless it runs with --memory.
    Settings come from flags, ANABRANCH_... variables and the --config file, in this order.

    Exits with 6 if the journal is older than the objects beside it.
    """
    from anabranch.apps import settings, up
    from anabranch.shell.telemetry.log import LogFormat

    of_bolt, of_belfast = _counts(flags, _OF_BOLT), _counts(flags, _OF_BELFAST)
    if accept_loss and engine == "belfast":
        raise click.UsageError("--accept-loss is for a server of logs of all engines")
    if engine == "belfast":
        _refuse(of_bolt, "--engine bolt")
        _run_belfast(flags, of_belfast, namespaces=namespaces)
        return
    _refuse(of_belfast | {"namespaces": 1} if namespaces else of_belfast, "--engine belfast")
    if processes:
        kafka_file = os.path.abspath(file) if (file := flags.pop("kafka_file")) else ""
        _run_cluster(
            flags,
            of_bolt,
            with_gateway=not no_http,
            accept_loss=accept_loss,
            kafka_file=kafka_file,
        )
        return
    _refuse(of_bolt, "--processes")
    if no_http:
        flags["http_port"] = -1
    chosen = settings.load(flags, os.environ)
    builder = None
    if chosen.http_port >= 0:
        from anabranch.apps.http import build as builder

    def say(endpoint: "Endpoint") -> None:
        print(next_steps(chosen, endpoint), flush=True)

    ready = say if chosen.log_format is LogFormat.HUMAN else None
    up.main(chosen, builder, accept_loss=accept_loss, ready=ready)


def next_steps(settings: "Settings", endpoint: "Endpoint") -> str:
    """What to print for somebody who has started a server for the first time."""
    if settings.memory:
        kept = "Everything is kept in memory, until this process ends."
    else:
        kept = f"Everything is kept in {os.path.abspath(settings.data)}."
    url = f"anabranch://{endpoint.frames}"
    served = f"{url} and http://{endpoint.http}" if endpoint.http else url
    steps = [] if url == DEFAULT_URL else [f"anabranch profile add local --use --url {url}"]
    if settings.token:
        steps.append("export ANABRANCH_TOKEN=...")
    steps += ["anabranch log create orders", 'anabranch append orders "3 apples"']
    steps.append("anabranch read orders")
    shown = "".join(f"\n  {step}" for step in steps)
    # Terminals make a link of an address together with the full stop behind it.
    return f"Serving {served}\n{kept}\nNext, in another terminal:{shown}"


_OF_BOLT = ("etcd", "metadata", "brokers")
_OF_BELFAST = ("sequencers", "shards", "copies")
_CLUSTERS_OWN = ("data", "log_format")


def _counts(flags: dict[str, Any], names: tuple[str, ...]) -> dict[str, int]:
    """Take the counts of processes that were given out of the flags."""
    counts = {name: flags.pop(name) for name in names}
    return {name: count for name, count in counts.items() if count is not None}


def _refuse(given: dict[str, int], belongs: str) -> None:
    if given:
        raise click.UsageError(f"--{next(iter(given))} is for {belongs}")


def _run_cluster(
    flags: dict[str, Any],
    counts: dict[str, int],
    *,
    with_gateway: bool,
    accept_loss: bool,
    kafka_file: str,
) -> None:
    from anabranch.apps.processes.cluster import run
    from anabranch.apps.processes.layout import Shape

    folder, log = _supervised(flags, "anabranch-cluster")
    run(
        folder,
        Shape(**counts),
        log,
        with_gateway=with_gateway,
        accept_loss=accept_loss,
        kafka_file=kafka_file,
    )


def _run_belfast(flags: dict[str, Any], counts: dict[str, int], *, namespaces: bool) -> None:
    from anabranch.apps.processes.belfast import run
    from anabranch.apps.processes.local_log import T_ORD, LogShape

    config = flags.pop("config")
    settings = {T_ORD: os.environ[T_ORD]} if T_ORD in os.environ else {}
    if config:
        # Each process has a working directory of its own.
        settings = {"ANABRANCH_CONFIG": os.path.abspath(config)}
    folder, log = _supervised(flags, "anabranch-belfast")
    run(folder, LogShape(**counts), log, settings, namespaces=namespaces)


def _supervised(flags: dict[str, Any], folder: str) -> "tuple[Path, Log]":
    """The folder in which the processes keep their data, and the log that they share."""
    from pathlib import Path

    from anabranch.shell.runtime.clock import Clock
    from anabranch.shell.telemetry.log import Log, LogFormat

    for name, value in flags.items():
        if value is not None and name not in _CLUSTERS_OWN:
            shown = name.replace("_", "-")
            raise click.UsageError(
                f"--{shown} is for a server of one process: with --processes or --engine belfast, "
                "each process has its own"
            )
    log = Log(Clock().now, LogFormat(flags["log_format"] or "human"))
    return Path(flags["data"] or folder).absolute(), log
