"""`anabranch recover`: what is left of a cluster or a data directory, made whole again."""

import os
from typing import TYPE_CHECKING, Any

import click

from anabranch.cli.failure import Exit
from anabranch.cli.render.output import Output, OutputFormat
from anabranch.cli.render.words import counted, number
from anabranch.cli.servers.pods import OUTPUT, StoredCommand, limits_of, module

if TYPE_CHECKING:
    from anabranch.apps.check.salvage import Report as Salvaged
    from anabranch.apps.pods.recover import Report

_MISSING_SHOWN = 10


class RecoverCommand(StoredCommand):
    """Its flags are its settings, as a pod's are."""

    home, settings = "recover", "RecoverSettings"

    def _start(self, limit: tuple[str, ...], **flags: Any) -> None:
        own = _own(flags)
        data, into = flags.pop("data"), flags.pop("into")
        if data or into:
            if own.pop("from_bucket") or not data or not into:
                raise click.UsageError("say --from-bucket, or --data together with --into")
            _salvage(data, into, flags, limits_of(limit), **own)
            return
        self._recover({**limits_of(limit), **flags}, **own)

    def _recover(self, flags: dict[str, Any], *, from_bucket: bool, output: str) -> None:
        if not from_bucket:
            raise click.UsageError("say --from-bucket, or --data together with --into")
        out = Output(OutputFormat(output))
        chosen = module("bolt_settings").load(self._kind, flags, os.environ)
        with out.progress("rebuilding", None, "objects"):
            report: Report = module("recover").recover(chosen)
        if out.json:
            out.document(report)
        else:
            _say(out, report)
        if report.missing:
            raise click.exceptions.Exit(Exit.DAMAGE)


def _salvage(data: str, into: str, flags: dict[str, Any], limit: Any, *, output: str) -> None:
    from anabranch.apps import settings
    from anabranch.apps.check import salvage

    limits = settings.load({"config": flags.get("config"), **limit}, os.environ).limits
    out = Output(OutputFormat(output))
    with out.progress("recovering", None, "objects") as meter:
        report = salvage.recover(data, into, limits, meter.reach)
    if out.json:
        out.document(report)
    else:
        _say_salvaged(out, report)
    if not report.whole:
        raise click.exceptions.Exit(Exit.DAMAGE)


def _say_salvaged(out: Output, report: "Salvaged") -> None:
    out.say(f"{report.into} has {counted(report.logs, 'log')} of cluster {report.cluster}")
    out.say(f"as they were at entry {report.entries} of the journal, and behind it")
    what = f"{counted(report.records, 'record')} of {counted(report.objects, 'object')}"
    out.say(f"recovered: {what} that the journal didn't know")
    if report.repeated:
        out.say(f"left out: {counted(report.repeated, 'record')} that were there twice")
    if report.orphans:
        what = counted(report.orphans, "orphan")
        out.say(f"left out: {what}, of earlier runs of the server that never committed them")
    if report.given_up:
        what, logs = counted(report.given_up_records, "record"), ", ".join(report.given_up)
        out.say(
            f"note: {what} of another history of the journal, which a start with --accept-loss "
            f"ended or began, are in logs of their own: {logs}; some of them may never have been "
            "acknowledged"
        )
    if report.belfast:
        names = ", ".join(report.belfast)
        out.say(f"taken along as they are, with their journals: belfast logs {names}")
    for name in report.belfast_unknown:
        out.say(f"note: belfast/{name} is of a log that the journal doesn't know, and isn't served")
    for name in report.recovered:
        out.say(f"note: {name} has the records of a log whose name isn't known")
    out.say(
        "note: what was done to logs behind that entry is lost: names, forks, promotions, "
        "squashes, trims, cursors and quotas; a promoted fork's records are in a log of their own"
    )
    for each in report.damaged[:_MISSING_SHOWN]:
        out.say(f"damaged: {each}")
    if report.missing:
        out.say(f"DAMAGED: {counted(report.missing, 'object')} of logs are not there")
    for name in report.belfast_missing:
        out.say(f"DAMAGED: no journal of belfast log {name} is there: it won't be served")


def _own(flags: dict[str, Any]) -> dict[str, Any]:
    """Take the flags that aren't settings out of the flags."""
    return {name: flags.pop(name) for name in ("from_bucket", "output")}


def _say(out: Output, report: "Report") -> None:
    logs, forks = counted(report.logs, "log"), counted(report.forks, "fork")
    out.say(f"{report.cluster} is back: {logs}, {forks}, {counted(report.objects, 'object')}")
    behind = f" and the snapshot at {report.snapshot}" if report.snapshot else ""
    out.say(f"from {number(report.entries)} entries of the archive{behind}")
    if report.unnamed:
        what = counted(report.unnamed, "object")
        out.say(f"note: {what} may hold appends that the archive didn't have yet; they are kept")
    for note in report.notes:
        out.say(f"note: {note}")
    for name in report.missing[:_MISSING_SHOWN]:
        out.say(f"missing: {name}")
    if report.missing:
        out.say(f"DAMAGED: {counted(len(report.missing), 'object')} of logs are not in the bucket")


recover = RecoverCommand(
    "recover",
    "Bring back a cluster whose etcd is lost, or a data directory whose journal is.\n\n"
    "With --data and --into a new data directory is made of one whose journal is behind its "
    "objects or gone; the old one stays as it is. Records of logs that the journal doesn't know "
    "come back as logs named recovered-ID.\n\n"
    "With --from-bucket a cluster is brought back from its bucket alone. "
    "Every log, fork and position that the bucket knows is there again, as it was when its etcd "
    "was lost.\n\n"
    "etcd must hold nothing of the cluster unless --replace is given, and no metadata member may "
    "run. Exits with 5 if "
    "objects are missing.",
)
recover.params = [
    click.Option(["--from-bucket"], is_flag=True, help="Bring back a cluster, from its bucket."),
    click.Option(
        ["--data"],
        type=click.Path(file_okay=False, exists=True),
        help="Recover this data directory; its server must not run.",
    ),
    click.Option(
        ["--into"],
        type=click.Path(file_okay=False),
        help="The new data directory; with --data.",
    ),
    OUTPUT,
]
