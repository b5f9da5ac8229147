"""`anabranch sequencer`: one member of a Belfast log's sequencing group."""

import asyncio
from typing import Any

from anabranch.apps.belfast.machines import SEQUENCER, SequencerGauges, recover_sequencer
from anabranch.apps.node_machine import NodeMachine
from anabranch.apps.pods.belfast_node import Ends, serve_belfast
from anabranch.apps.pods.belfast_settings import Durability, SequencerSettings
from anabranch.apps.pods.node import Ready
from anabranch.apps.pods.pod import Pod, run
from anabranch.core.belfast.sequencer.sequencer import Sequencer
from anabranch.core.errors import AnabranchError, Fenced, Retry
from anabranch.ports import RecordJournal

_EPOCHS_S = 1.0
"""Between two looks at etcd, while this member leads."""


async def serve(
    settings: SequencerSettings, ready: Ready = None, *, stop: asyncio.Event | None = None
) -> None:
    """Run until `stop` is set or, if none is given, until a signal says so; then hand over."""

    def recover(pod: Pod[Any], address: str, journal: RecordJournal) -> tuple[NodeMachine, Ends]:
        member = Sequencer(
            address,
            settings.members or (address,),
            settings.rules,
            settings.limits,
            settings.consensus,
            fsync=settings.durability is Durability.FSYNC,
        )
        recovered = recover_sequencer(member, journal, pod.log)
        return recovered, (_kept_in_etcd(pod, settings, member),) if settings.epochs else ()

    ports = settings.port, settings.probe_port
    await serve_belfast(settings, SEQUENCER, ports, recover, ready, stop=stop)


def _kept_in_etcd(
    pod: Pod[Any], settings: SequencerSettings, member: Sequencer
) -> "asyncio.Future[AnabranchError]":
    """While it leads, its term is kept; done when another's later one is found."""
    from anabranch.shell.etcd.api.client import EtcdClient
    from anabranch.shell.etcd.group.epochs import Epochs, keep

    fenced: asyncio.Future[AnabranchError] = asyncio.get_running_loop().create_future()
    client = EtcdClient(settings.etcd)
    pod.stack.callback(client.close)

    async def watch() -> None:
        trouble = ""
        while not fenced.done():
            if member.office is not None:
                gauges = SequencerGauges(member)
                epochs = Epochs(
                    term=gauges.term,
                    leader=member.node,
                    view=gauges.view,
                    window=gauges.window,
                    index=gauges.index,
                )
                try:
                    await asyncio.to_thread(keep, client, settings.cluster, epochs)
                    trouble = ""
                except Retry as error:
                    if trouble != error.message:
                        pod.log.warning("etcd doesn't keep epochs", reason=error.message)
                    trouble = error.message
                except Fenced as error:
                    # A leader that was deposed meanwhile steps down in the usual way.
                    if SequencerGauges(member).leading and member.consensus.term == epochs.term:
                        fenced.set_result(error)
            await asyncio.sleep(_EPOCHS_S)

    pod.spawn(watch())
    return fenced


def main(settings: SequencerSettings) -> None:
    run(settings, lambda: serve(settings))
