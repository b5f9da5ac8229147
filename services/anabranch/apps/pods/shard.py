"""`anabranch shard`: one replica of a shard of a log of another engine than Bolt."""

import asyncio

from anabranch.apps.pods.log_node import LogRole, serve_log_node
from anabranch.apps.pods.log_settings import LogEngine, ShardSettings
from anabranch.apps.pods.node import Ready
from anabranch.apps.pods.pod import run

KIND = "shard"


async def serve(
    settings: ShardSettings, ready: Ready = None, *, stop: asyncio.Event | None = None
) -> None:
    """Run until `stop` is set or, if none is given, until a signal says so; then drain."""
    ports = settings.port, settings.probe_port
    file = settings.log_quota_file
    await serve_log_node(
        settings, KIND, ports, _role(settings), ready, stop=stop, log_quota_file=file
    )


def _role(settings: ShardSettings) -> LogRole:
    """Loads one engine: what the other imports would make a process start a tenth later."""
    if settings.engine is LogEngine.BELFAST:
        from anabranch.apps.belfast import roles as belfast

        return belfast.shard_role(settings)
    from anabranch.apps.erwin import roles as erwin

    return erwin.shard_role(settings)


def main(settings: ShardSettings) -> None:
    run(settings, lambda: serve(settings))
