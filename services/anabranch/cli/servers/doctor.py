"""`anabranch doctor`: what a bug report needs to know of an installation on Kubernetes."""

from pathlib import Path
from typing import Any

import click
from msgspec.structs import asdict

from anabranch.cli.failure import Exit
from anabranch.cli.options.service import prints
from anabranch.cli.render.output import Output
from anabranch.cli.render.words import counted
from anabranch.cli.service.target import Target

_WAIT_S = 30.0


@click.command()
@click.option("--namespace", "-n", help="The release's.  [default: the context's]")
@click.option("--release", default="", help="Whose pods are asked.  [default: all there]")
@click.option("--kubeconfig", type=click.Path(dir_okay=False), help="As for kubectl.")
@click.option("--context", help="Of the kubeconfig.")
@click.option(
    "--file",
    "-f",
    type=click.Path(dir_okay=False, path_type=Path),
    help="What to write.  [default: anabranch-doctor-TIME.tar.gz]",
)
@click.option("--url", help="Where the log service listens, to be asked for its brokers as well.")
@click.option("--token-file", type=click.Path(dir_okay=False), help="What it is shown.")
@prints
def doctor(
    out: Output, file: Path | None, url: str | None, token_file: str | None, **where: Any
) -> None:
    """Look at an installation on Kubernetes, and collect what a bug report needs.

    Says what is wrong and what may have caused it, and writes an archive: resources with their
    statuses and events, pods and the last lines of their logs, metrics, versions. Secrets are not
    read, and tokens, passwords and keys are redacted. Exits with 1 if something is wrong.

    Needs Kubernetes' own client: pip install 'anabranch[doctor]'.
    """
    from anabranch.apps.doctor.examination import visit

    brokers = None if url is None else lambda: _brokers(url, token_file)
    found, said, file = visit(file=file, brokers=brokers, **where)
    if out.json:
        told = [asdict(each) for each in said]
        out.document({"namespace": found.namespace, "findings": told, "file": str(file)})
    else:
        counts = (("brokerpools", "broker pool"), ("logs", "log"), ("forks", "fork"))
        seen = [counted(len(found.of(kind)), what) for kind, what in (*counts, ("pods", "pod"))]
        out.say(f"{found.namespace}: {', '.join(seen)}")
        for each in said:
            out.say(f"  {each.about}: {each.says}")
        out.say(f"{counted(len(said), 'finding') if said else 'nothing is wrong'}; see {file}")
    if said:
        raise click.exceptions.Exit(Exit.REFUSED)


def _brokers(url: str, token_file: str | None) -> list[dict[str, Any]]:
    where = (
        url if token_file is None else f"{url}{'&' if '?' in url else '?'}token_file={token_file}"
    )
    target = Target.at(where, by="doctor", timeout_s=_WAIT_S)
    return [asdict(each) for each in target.run(lambda service: service.brokers())]
