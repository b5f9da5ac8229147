"""`anabranch up` and `anabranch fsck`: what works on a data directory itself, in this process.

The only part of the command line that knows the server.
"""

import os
import sys
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import asdict

from anabranch.cli.failure import Exit
from anabranch.cli.options import prints
from anabranch.cli.output import Output, counted, number, printable, size

if TYPE_CHECKING:
    from pathlib import Path

    from anabranch.apps.cut import Cut
    from anabranch.apps.fsck import Report
    from anabranch.core.bolt.audit import Fault
    from anabranch.shell.log import Log

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
    help="Start on a journal that is older than its objects; what it doesn't know is given up.",
)
@click.option(
    "--processes",
    is_flag=True,
    help="A cluster instead: etcd, an S3 server, metadata, brokers and a gateway, each a process.",
)
@click.option(
    "--engine",
    type=click.Choice(["bolt", "belfast"]),
    default="bolt",
    show_default=True,
    help="belfast: a log that is read ahead of its order instead, each replica a process.",
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

    of_bolt, of_belfast = _counts(flags, _OF_BOLT), _counts(flags, _OF_BELFAST)
    if accept_loss and (processes or engine == "belfast"):
        raise click.UsageError("--accept-loss is for one process with a data directory")
    if engine == "belfast":
        _refuse(of_bolt, "--engine bolt")
        _run_belfast(flags, of_belfast, namespaces=namespaces)
        return
    _refuse(of_belfast | {"namespaces": 1} if namespaces else of_belfast, "--engine belfast")
    if processes:
        _run_cluster(flags, of_bolt, with_gateway=not no_http)
        return
    _refuse(of_bolt, "--processes")
    if no_http:
        flags["http_port"] = -1
    chosen = settings.load(flags, os.environ)
    builder = None
    if chosen.http_port >= 0:
        from anabranch.apps.http import build as builder
    up.main(chosen, builder, accept_loss=accept_loss)


_OF_BOLT = ("etcd", "metadata", "brokers")
_OF_BELFAST = ("sequencers", "shards", "copies")
_CLUSTERS_OWN = ("data", "log_format")


def _counts(flags: dict[str, Any], names: tuple[str, ...]) -> dict[str, int]:
    """Those that were given, of how many processes there are; taken out of the flags."""
    counts = {name: flags.pop(name) for name in names}
    return {name: count for name, count in counts.items() if count is not None}


def _refuse(given: dict[str, int], belongs: str) -> None:
    if given:
        raise click.UsageError(f"--{next(iter(given))} is for {belongs}")


def _run_cluster(flags: dict[str, Any], counts: dict[str, int], *, with_gateway: bool) -> None:
    from anabranch.apps.processes.cluster import run
    from anabranch.apps.processes.layout import Shape

    folder, log = _supervised(flags, "anabranch-cluster")
    run(folder, Shape(**counts), log, with_gateway=with_gateway)


def _run_belfast(flags: dict[str, Any], counts: dict[str, int], *, namespaces: bool) -> None:
    from anabranch.apps.processes.belfast import T_ORD, BelfastShape, run

    config = flags.pop("config")
    settings = {T_ORD: os.environ[T_ORD]} if T_ORD in os.environ else {}
    if config:
        settings = {"ANABRANCH_CONFIG": str(config)}
    folder, log = _supervised(flags, "anabranch-belfast")
    run(folder, BelfastShape(**counts), log, settings, namespaces=namespaces)


def _supervised(flags: dict[str, Any], folder: str) -> "tuple[Path, Log]":
    """Where the processes keep what they have, and who tells of them."""
    from pathlib import Path

    from anabranch.shell.clock import Clock
    from anabranch.shell.log import Log, LogFormat

    for name, value in flags.items():
        if value is not None and name not in _CLUSTERS_OWN:
            shown = name.replace("_", "-")
            raise click.UsageError(f"--{shown} is for one process; a cluster's pods have their own")
    log = Log(Clock().now, LogFormat(flags["log_format"] or "human"))
    return Path(flags["data"] or folder).absolute(), log


@click.command()
@click.option(
    "--data",
    type=click.Path(file_okay=False, exists=True),
    required=True,
    envvar="ANABRANCH_DATA",
    help="The directory of `anabranch up --data`; its server may run, unless it is changed.",
)
@click.option(
    "--repair",
    is_flag=True,
    help="Move orphans, which were never committed, to quarantine; the server must not run.",
)
@click.option(
    "--cut-journal",
    is_flag=True,
    help="Give up what a damaged journal holds from the damage on; it is put aside. The server "
    "must not run.",
)
@click.option("--yes", "-y", is_flag=True, help="Don't ask before the journal is cut.")
@_CONFIG
@prints
def fsck(
    *, out: Output, data: str, repair: bool, cut_journal: bool, yes: bool, config: str | None
) -> None:
    """Prove that everything in a data directory can be read.

    Reads the journal and every object, recomputes every checksum, and looks for every record of
    every log. Changes nothing, unless told to. Exits with 5 if anything is damaged or missing.
    """
    from anabranch.apps import settings
    from anabranch.apps.sources import Directory

    limits = settings.load({"config": config}, os.environ).limits

    def examine(examination: Directory) -> "Report":
        with out.progress("reading objects", None, "bytes") as meter:
            return examination.report(meter.reach)

    done: list[str] = []
    with Directory(data, limits, alone=repair or cut_journal) as examination:
        report = examine(examination)
        if cut_journal and report.cut is not None:
            _say(out, report)
            if not yes:
                _ask()
            aside = examination.cut_journal()
            done.append(f"cut the journal; what it held from there on is in {aside}")
            report = examine(examination)
        if repair and report.orphans.objects:
            pile = examination.quarantine_orphans()
            what = f"{counted(pile.objects, 'orphan')}, {size(pile.bytes)}"
            done.append(f"moved {what}, to quarantine")
            report = examine(examination)
    if out.json:
        out.document({"sound": report.sound, "done": done, **asdict(report)})
    else:
        _say(out, report)
        for each in done:
            out.say(each)
    if not report.sound:
        raise click.exceptions.Exit(Exit.DAMAGE)


def _ask() -> None:
    if not sys.stdin.isatty():
        raise click.UsageError("--cut-journal gives something up: say --yes to it")
    click.confirm("Cut the journal there?", abort=True, err=True)


def _say(out: Output, found: "Report") -> None:
    if out.json:
        return
    if found.online:
        out.say("in use: what is being written now isn't judged; nothing is changed")
    out.say(
        f"{found.data} of cluster {found.cluster}: {counted(found.logs, 'log')}, "
        f"{counted(found.forks, 'fork')}, {counted(found.extents, 'extent')}"
    )
    after = f" after snapshot {number(found.snapshot)}" if found.snapshot else ""
    out.say(f"journal: {number(found.entries)} entries{after}")
    out.say(
        f"objects: {number(found.objects)} read, {size(found.bytes)}, {number(found.batches)} "
        f"batches, {number(found.records)} records"
    )
    if found.garbage.objects:
        what = f"{counted(found.garbage.objects, 'object')}, {size(found.garbage.bytes)}"
        out.say(f"garbage: {what}, deleted when their grace period is over")
    if found.orphans.objects:
        what = f"{counted(found.orphans.objects, 'object')}, {size(found.orphans.bytes)}"
        out.say(
            f"orphans: {what}, never committed; moved to quarantine after the next start, or by "
            "--repair"
        )
    if found.quarantine.objects:
        what = f"{counted(found.quarantine.objects, 'object')}, {size(found.quarantine.bytes)}"
        out.say(f"quarantine: {what}, deleted when quarantine_ms is over")
    for name in found.strangers:
        out.say(f"not ours: {name}, left alone")
    for note in found.notes:
        out.say(f"note: {note}")
    for fault in found.faults:
        _print_fault(fault)
    if found.cut is not None:
        _say_cut(out, found.cut)
    out.say("sound" if found.sound else f"DAMAGED: {counted(len(found.faults), 'fault')}")


def _print_fault(fault: "Fault") -> None:
    print(f"fault: {printable(fault.where)}: {printable(fault.reason)} ({fault.code})")


def _say_cut(out: Output, cut: "Cut") -> None:
    out.say(
        f"cutting {cut.file} at byte {cut.offset} (--cut-journal) keeps entries up to "
        f"{number(cut.kept)} and loses at least {number(cut.lost)} behind them"
    )
    if cut.commands:
        known = ", ".join(f"{number(count)} {kind}" for kind, count in sorted(cut.commands.items()))
        out.say(f"  in those that can be read: {known}; {number(cut.records)} records appended")
    out.say("  what is lost is put aside, not deleted; the faults below show what is missing then")
