"""`anabranch sequencer`: one member of a Belfast log's sequencing group."""

import asyncio

from anabranch.apps.belfast.machines import SEQUENCER, SequencerGauges, recover_sequencer
from anabranch.apps.pods.belfast_settings import Durability, SequencerSettings
from anabranch.apps.pods.node import Node, Occupant, Ready, serve_node
from anabranch.apps.pods.pod import run
from anabranch.core.belfast.sequencer.sequencer import Sequencer
from anabranch.core.errors import AnabranchError, Fenced, Retry

_EPOCHS_S = 1.0
"""Between two looks at etcd, while this member leads."""


async def serve(
    settings: SequencerSettings, ready: Ready = None, *, stop: asyncio.Event | None = None
) -> None:
    """Run until `stop` is set or, if none is given, until a signal says so; then hand over."""
    ports = settings.port, settings.probe_port
    await serve_node(
        settings, SEQUENCER, ports, lambda node: _occupy(node, settings), ready, stop=stop
    )


def _occupy(node: Node, settings: SequencerSettings) -> Occupant:
    members = settings.members or (node.address,)
    member = Sequencer(
        node.address,
        members,
        settings.rules,
        settings.limits,
        settings.consensus,
        fsync=settings.durability is Durability.FSYNC,
    )
    recovered = recover_sequencer(member, node.journal, node.pod.log)
    node.pod.stack.callback(node.journal.close)
    ends: list[asyncio.Future[AnabranchError]] = []
    if settings.epochs:
        ends.append(_kept_in_etcd(node, settings, member))
    return Occupant(recovered, ends)


def _kept_in_etcd(
    node: Node, settings: SequencerSettings, member: Sequencer
) -> "asyncio.Future[AnabranchError]":
    """While it leads, its term is kept; done when another's later one is found."""
    from anabranch.shell.etcd.api.client import EtcdClient
    from anabranch.shell.etcd.group.epochs import Epochs, keep

    fenced: asyncio.Future[AnabranchError] = asyncio.get_running_loop().create_future()
    client = EtcdClient(settings.etcd)
    node.pod.stack.callback(client.close)

    async def watch() -> None:
        trouble = ""
        while not fenced.done():
            if member.office is not None:
                gauges = SequencerGauges(member)
                epochs = Epochs(
                    term=gauges.term,
                    leader=node.address,
                    view=gauges.view,
                    window=gauges.window,
                    index=gauges.index,
                )
                try:
                    await asyncio.to_thread(keep, client, settings.cluster, epochs)
                    trouble = ""
                except Retry as error:
                    if trouble != error.message:
                        node.pod.log.warning("etcd doesn't keep epochs", reason=error.message)
                    trouble = error.message
                except Fenced as error:
                    # A leader that was deposed meanwhile steps down in the usual way.
                    if SequencerGauges(member).leading and member.consensus.term == epochs.term:
                        fenced.set_result(error)
            await asyncio.sleep(_EPOCHS_S)

    node.pod.spawn(watch())
    return fenced


def main(settings: SequencerSettings) -> None:
    run(settings, lambda: serve(settings))
