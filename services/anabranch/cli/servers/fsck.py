"""`anabranch fsck`: looks at stored bytes itself, in this process."""

import os
import sys
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import asdict

from anabranch.cli.failure import Exit
from anabranch.cli.render.output import Output, OutputFormat
from anabranch.cli.render.words import counted, number, printable, size
from anabranch.cli.servers.pods import OUTPUT, StoredCommand, limits_of, module

if TYPE_CHECKING:
    from anabranch.apps.check.cut import Cut
    from anabranch.apps.check.fsck import Report
    from anabranch.apps.check.sources import Directory
    from anabranch.core.bolt.state.audit import Fault


class FsckCommand(StoredCommand):
    """Of a data directory with --data; else of a cluster, by the settings of its processes."""

    home, settings = "fsck", "FsckSettings"

    def _start(self, limit: tuple[str, ...], **flags: Any) -> None:
        own = {name: flags.pop(name) for name in ("data", "repair", "cut_journal", "yes")}
        out = Output(OutputFormat(flags.pop("output")))
        if own["data"] is not None:
            _examine_directory(out, {**limits_of(limit), "config": flags["config"]}, **own)
            return
        if own["repair"] or own["cut_journal"]:
            raise click.UsageError("--repair and --cut-journal are for --data")
        if flags.get("cluster") is None and "ANABRANCH_CLUSTER" not in os.environ:
            raise click.UsageError("say --data, or --cluster with the settings of its bucket")
        chosen = module("bolt_settings").load(self._kind, {**limits_of(limit), **flags}, os.environ)
        with out.progress("reading objects", None, "bytes") as meter:
            report: Report = module("fsck").examine(chosen, meter.reach)
        _end(out, report, [])


def _examine_directory(
    out: Output, given: dict[str, Any], *, data: str, repair: bool, cut_journal: bool, yes: bool
) -> None:
    from anabranch.apps import settings
    from anabranch.apps.check.sources import Directory

    limits = settings.load(given, os.environ).limits

    def examine(examination: "Directory") -> "Report":
        with out.progress("reading objects", None, "bytes") as meter:
            return examination.report(meter.reach)

    done: list[str] = []
    with Directory(data, limits, alone=repair or cut_journal) as examination:
        report = examine(examination)
        if cut_journal and report.cuts:
            _say(out, report)
            if not yes:
                _ask()
            asides = examination.cut_journals()
            done += [f"cut the journal; what it held from there on is in {each}" for each in asides]
            report = examine(examination)
        if repair and (report.orphans.objects or not report.whole_journal):
            if not report.whole_journal:
                _say(out, report)
            pile = examination.quarantine_orphans()
            what = f"{counted(pile.objects, 'orphan')}, {size(pile.bytes)}"
            done.append(f"moved {what}, to quarantine")
            report = examine(examination)
    _end(out, report, done)


def _end(out: Output, report: "Report", done: list[str]) -> None:
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
    after = f" after snapshot {found.snapshot}" if found.snapshot else ""
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
        fate = (
            "never committed; moved to quarantine when the next leader starts, or by --repair in "
            "a stopped server's directory"
            if found.whole_journal
            else "unknown to this journal, which isn't all that was journaled: leave them there, "
            "and see to the journal first"
        )
        out.say(f"orphans: {what}, {fate}")
    if found.quarantine.objects:
        what = f"{counted(found.quarantine.objects, 'object')}, {size(found.quarantine.bytes)}"
        out.say(f"quarantine: {what}, deleted when quarantine_ms is over")
    for name in found.strangers:
        out.say(f"not ours: {name}, left alone")
    for note in found.notes:
        out.say(f"note: {note}")
    for fault in found.faults:
        _print_fault(fault)
    for cut in found.cuts:
        _say_cut(out, cut)
    out.say("sound" if found.sound else f"DAMAGED: {counted(len(found.faults), 'fault')}")


def _print_fault(fault: "Fault") -> None:
    print(f"fault: {printable(fault.where)}: {printable(fault.reason)} ({fault.code})")


def _say_cut(out: Output, cut: "Cut") -> None:
    out.say(
        f"cutting {cut.file} at byte {cut.offset} (--cut-journal) keeps entries up to "
        f"{cut.kept} and loses at least {number(cut.lost)} behind them"
    )
    if cut.commands:
        known = ", ".join(f"{number(count)} {kind}" for kind, count in sorted(cut.commands.items()))
        out.say(f"  in those that can be read: {known}; {number(cut.records)} records appended")
    out.say("  what is lost is put aside, not deleted; the faults below show what is missing then")


fsck = FsckCommand(
    "fsck",
    "Prove that everything in a data directory can be read.\n\n"
    "Reads the journal and every object, recomputes every checksum, and looks for every record of "
    "every log. Changes nothing, unless told to. Exits with 5 if anything is damaged or missing."
    "\n\n"
    "With --cluster and the settings of a cluster's processes it does the same for a cluster: it "
    "reads etcd and the bucket, and the cluster may run.",
)
fsck.params = [
    click.Option(
        ["--data"],
        type=click.Path(file_okay=False, exists=True),
        envvar="ANABRANCH_DATA",
        help="The directory of `anabranch up --data`; its server may run, unless it is changed.",
    ),
    click.Option(
        ["--repair"],
        is_flag=True,
        help="Move orphans, which were never committed, to quarantine; the server must not run. "
        "Refused if the journal is damaged or behind its objects.",
    ),
    click.Option(
        ["--cut-journal"],
        is_flag=True,
        help="Give up what a damaged journal holds from the damage on; it is put aside. The server "
        "must not run.",
    ),
    click.Option(["--yes", "-y"], is_flag=True, help="Don't ask before the journal is cut."),
    OUTPUT,
]
