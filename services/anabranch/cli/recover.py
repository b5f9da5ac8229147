"""`anabranch recover --from-bucket`: an etcd that lost everything, and a bucket that didn't."""

import os
from typing import TYPE_CHECKING, Any

import click

from anabranch.cli.failure import Exit
from anabranch.cli.output import Output, OutputFormat, counted, number
from anabranch.cli.pods import PodCommand, limits_of, module

if TYPE_CHECKING:
    from anabranch.apps.pods.recover import Report

_MISSING_SHOWN = 10


class RecoverCommand(PodCommand):
    """Its flags are its settings, as a pod's are."""

    @property
    def _kind(self) -> Any:
        return module("recover").RecoverSettings

    def _start(self, limit: tuple[str, ...], **flags: Any) -> None:
        own = _own(flags)
        self._recover({**limits_of(limit), **flags}, **own)

    def _recover(self, flags: dict[str, Any], *, from_bucket: bool, output: str) -> None:
        if not from_bucket:
            raise click.UsageError("say --from-bucket: it is the only source there is")
        out = Output(OutputFormat(output))
        chosen = module("settings").load(self._kind, flags, os.environ)
        with out.progress("rebuilding", None, "objects"):
            report: Report = module("recover").recover(chosen)
        if out.json:
            out.document(report)
        else:
            _say(out, report)
        if report.missing:
            raise click.exceptions.Exit(Exit.DAMAGE)


def _own(flags: dict[str, Any]) -> dict[str, Any]:
    """What isn't a setting."""
    return {name: flags.pop(name) for name in ("from_bucket", "output")}


def _say(out: Output, report: "Report") -> None:
    logs, forks = counted(report.logs, "log"), counted(report.forks, "fork")
    out.say(f"{report.cluster} is back: {logs}, {forks}, {counted(report.objects, 'object')}")
    behind = f" and the snapshot at {number(report.snapshot)}" if report.snapshot else ""
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
    "",
    "Bring a cluster back from its bucket alone.\n\n"
    "Every log, fork and position that the bucket knows is there again, as it was when its etcd "
    "was lost.\n\n"
    "etcd must hold nothing of the cluster, and no metadata member should run. Exits with 5 if "
    "objects are missing.",
)
recover.params = [
    click.Option(["--from-bucket"], is_flag=True, help="The source; it must be said."),
    click.Option(
        ["--output", "-o"],
        type=click.Choice([each.value for each in OutputFormat]),
        default=OutputFormat.TABLE.value,
        help="Tables for people, JSON for programs.",
    ),
]
