"""`anabranch-operator`: what the operator's pods run."""

import gc
import os
import sys
from typing import Any

import click
import uvloop

from anabranch.cli.servers.pods import flags
from anabranch.core.errors import AnabranchError

_LEAVES = "certificates_leaves"
"""Tables of a file, which no flag could hold."""


def _options() -> list[click.Parameter]:
    from anabranch_operator.settings import OperatorSettings

    return [each for each in flags(OperatorSettings) if each.name != _LEAVES]


def _run(**given: Any) -> None:
    import asyncio

    from anabranch_operator.handlers.process import serve
    from anabranch_operator.settings import load

    settings = load(given, os.environ)
    gc.freeze()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        sys.exit(runner.run(serve(settings)))


_CONFIG = click.Option(
    ["--config"],
    type=click.Path(exists=True, dir_okay=False),
    help="A TOML file with settings; flags and ANABRANCH_OPERATOR_... variables win over it.",
)

command = click.Command(
    "anabranch-operator",
    callback=_run,
    params=[*_options(), _CONFIG],
    help=(
        "Make logs, forks, brokers, sequencers and shards what their resources ask for.\n\n"
        "Any number may run: one acts, elected by a Lease. On SIGTERM it finishes the actions in "
        "flight and releases the Lease. The second signal ends it at once."
    ),
)


def main() -> None:
    try:
        command.main(standalone_mode=True)
    except AnabranchError as error:
        sys.exit(f"anabranch-operator: {error.message}")


if __name__ == "__main__":
    main()
