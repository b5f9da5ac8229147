"""`anabranch sequencer`: one sequencer of a log of another engine than Bolt."""

import asyncio

from anabranch.apps.belfast import roles as belfast
from anabranch.apps.erwin import roles as erwin
from anabranch.apps.lazy import roles as lazy
from anabranch.apps.pods.log_node import LogRole, serve_log_node
from anabranch.apps.pods.log_settings import LogEngine, SequencerSettings
from anabranch.apps.pods.node import Ready
from anabranch.apps.pods.pod import run

KIND = "sequencer"


async def serve(
    settings: SequencerSettings, ready: Ready = None, *, stop: asyncio.Event | None = None
) -> None:
    """Run until `stop` is set or, if none is given, until a signal says so; then hand over."""
    ports = settings.port, settings.probe_port
    file = settings.log_quota_file
    await serve_log_node(
        settings, KIND, ports, _role(settings), ready, stop=stop, log_quota_file=file
    )


def _role(settings: SequencerSettings) -> LogRole:
    match settings.engine:
        case LogEngine.BELFAST:
            return belfast.sequencer_role(settings)
        case LogEngine.ERWIN:
            return erwin.sequencer_role(settings)
        case LogEngine.LAZY:
            return lazy.sequencer_role(settings)


def main(settings: SequencerSettings) -> None:
    run(settings, lambda: serve(settings))
