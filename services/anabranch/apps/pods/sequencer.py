"""`anabranch sequencer`: one sequencer of a log of another engine than Bolt."""

import asyncio

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
    """Loads one engine: what the others import would make a process start a tenth later."""
    match settings.engine:
        case LogEngine.BELFAST:
            from anabranch.apps.belfast import roles as belfast

            return belfast.sequencer_role(settings)
        case LogEngine.ERWIN:
            from anabranch.apps.erwin import roles as erwin

            return erwin.sequencer_role(settings)
        case LogEngine.LAZY:
            from anabranch.apps.lazy import roles as lazy

            return lazy.sequencer_role(settings)


def main(settings: SequencerSettings) -> None:
    run(settings, lambda: serve(settings))
