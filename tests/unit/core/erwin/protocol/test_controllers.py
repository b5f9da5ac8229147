"""A sequencer and a controller at one address."""

from typing import get_args
from unittest.mock import Mock

from anabranch.core.erwin.controller.lead import FromNode, ToNode
from anabranch.core.erwin.protocol.controllers import receiver_of, sender_of
from anabranch.core.erwin.protocol.letters import ErwinLetter, OpenShard
from anabranch.core.sequencing.controller.names import address_of, controller_at, names_at
from anabranch.core.sequencing.protocol.letters import (
    Prepare,
    Present,
    Seal,
    SequencingLetter,
    Start,
)

PLACE = "host:7440"


def made(kind: type) -> object:
    """Only its type counts."""
    return Mock(spec=kind)


def test_a_controller_is_called_by_the_address_of_its_process() -> None:
    assert names_at(PLACE) == (PLACE, controller_at(PLACE))
    assert {address_of(name) for name in names_at(PLACE)} == {PLACE}


def test_what_nodes_tell_controllers_is_for_them_and_nothing_else_is() -> None:
    for kind in get_args(SequencingLetter | ErwinLetter):
        expected = controller_at(PLACE) if kind in get_args(FromNode) else PLACE
        assert receiver_of(made(kind), PLACE) == expected, kind


def test_what_controllers_say_is_from_them_and_nothing_else_is() -> None:
    said = {Start, Seal, Prepare, *(set(get_args(ToNode)) - set(get_args(SequencingLetter)))}
    for kind in get_args(SequencingLetter | ErwinLetter):
        expected = controller_at(PLACE) if kind in said else PLACE
        assert sender_of(made(kind), PLACE) == expected, kind


def test_a_wish_of_a_sequencer_reaches_the_controller_beside_it() -> None:
    assert receiver_of(OpenShard("s", True), PLACE) == controller_at(PLACE)
    assert sender_of(made(Present), PLACE) == PLACE
