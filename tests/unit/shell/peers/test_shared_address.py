"""Two machines of one process behind one address."""

from typing import Any, cast

from anabranch.core.erwin.protocol import controllers
from anabranch.core.erwin.protocol.letters import OpenShard, SealShard
from anabranch.core.machine import Event, Linked, Received
from anabranch.core.sequencing.controller.names import address_of, controller_at, names_at
from anabranch.shell.peers.mesh import Mesh
from anabranch.shell.peers.shared_address import NodeNames, SharedAddress
from anabranch.shell.runtime.driver import Host

HERE, THERE = "here:1", "there:1"
NAMES = NodeNames(
    address_of=address_of,
    names_at=names_at,
    sender_of=controllers.sender_of,
    receiver_of=controllers.receiver_of,
)
WISH, SEAL = OpenShard("s", True), SealShard(shard="s", epoch=2)


class Post:
    """In place of a mesh and of a host: what it was given."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, Any]] = []
        self.posted: list[tuple[str, Event]] = []

    def send(self, sender: str, to: str, message: Any) -> None:
        assert sender
        self.sent.append((to, message))

    def post(self, node: str, event: Event) -> None:
        self.posted.append((node, event))


def process() -> tuple[SharedAddress, Post, Post, Post]:
    mesh, sequencer, controller = Post(), Post(), Post()
    shared = SharedAddress(cast("Mesh", mesh), HERE, NAMES)
    shared.join(HERE, cast("Host", sequencer))
    shared.join(controller_at(HERE), cast("Host", controller))
    return shared, mesh, sequencer, controller


def test_a_letter_to_another_process_goes_to_its_address() -> None:
    shared, mesh, _, _ = process()
    shared.send(HERE, controller_at(THERE), WISH)
    shared.send(HERE, THERE, SEAL)
    assert mesh.sent == [(THERE, WISH), (THERE, SEAL)]


def test_a_letter_to_the_machine_beside_doesnt_leave_the_process() -> None:
    shared, mesh, sequencer, controller = process()
    shared.send(HERE, controller_at(HERE), WISH)
    shared.send(controller_at(HERE), HERE, SEAL)
    assert controller.posted == [(controller_at(HERE), Received(HERE, WISH))]
    assert sequencer.posted == [(HERE, Received(controller_at(HERE), SEAL))]
    assert not mesh.sent


def test_what_a_letter_is_says_from_whom_and_for_whom_it_is() -> None:
    shared, _, sequencer, controller = process()
    shared.post(HERE, Received(THERE, WISH))
    shared.post(HERE, Received(THERE, SEAL))
    assert controller.posted == [(controller_at(HERE), Received(THERE, WISH))]
    assert sequencer.posted == [(HERE, Received(controller_at(THERE), SEAL))]


def test_both_machines_hear_of_a_connection_to_both_of_another_process() -> None:
    shared, _, sequencer, controller = process()
    shared.post(HERE, Linked(THERE))
    for node, host in ((HERE, sequencer), (controller_at(HERE), controller)):
        assert host.posted == [(node, Linked(THERE)), (node, Linked(controller_at(THERE)))]


def test_a_letter_to_a_machine_that_isnt_there_is_lost() -> None:
    shared, _, sequencer, controller = process()
    shared.leave(controller_at(HERE))
    shared.post(HERE, Received(THERE, WISH))
    shared.send(HERE, controller_at(HERE), WISH)
    assert not sequencer.posted
    assert not controller.posted
