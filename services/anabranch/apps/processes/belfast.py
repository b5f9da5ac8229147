"""`anabranch up --engine belfast`: one Belfast log and nothing else, each replica a process."""

from collections.abc import Mapping
from pathlib import Path

from anabranch.apps.processes.local_log import LocalLog, LogLayout, LogShape, settle
from anabranch.apps.processes.supervisor import run_until_told
from anabranch.shell.journal.data_dir import exclusive
from anabranch.shell.telemetry.log import Log

ACCESS_FILE = "token"


def run(
    folder: Path,
    shape: LogShape,
    log: Log,
    settings: Mapping[str, str],
    *,
    namespaces: bool = False,
) -> None:
    """Run a log from this folder until a signal ends it; a second signal kills it."""
    with exclusive(folder):
        _run(folder, settle(folder, shape, namespaces=namespaces), log, settings)


def _run(folder: Path, layout: LogLayout, log: Log, settings: Mapping[str, str]) -> None:
    cluster = LocalLog(folder, layout, settings=settings)
    url = layout.url
    if layout.token:
        # Not in what is logged: whoever may read this folder may use the log.
        file = folder / ACCESS_FILE
        file.touch(mode=0o600)
        file.write_text(layout.token, encoding="ascii")
        url = f"{url}?token_file={file}"

    def serving() -> None:
        log.info("serving", url=url, shards=len(layout.shards), folder=str(folder))

    run_until_told(cluster, log, serving)
