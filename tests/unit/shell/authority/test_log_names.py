"""The resource whose rights a log's are, as its description says."""

import pytest
from msgspec.structs import replace
from tests.unit.shell.nodes import run
from tests.unit.shell.server.test_rights_of_connections import described

from anabranch.core.bolt.protocol.commands import Description
from anabranch.core.errors import (
    AnabranchError,
    Promoted,
    Squashed,
    Unavailable,
    UnknownLog,
)
from anabranch.core.rights.claims import FORKS, LOGS, Subject
from anabranch.core.types import Kind, LogId
from anabranch.shell.authority.log_names import LogSubjects

SEVEN = LogId(7)
OTHERS = ("", "somebody", "k8s/shop", "k8s/shop/Pod/x/uid", "k8s//Log/x/uid")


class Describer:
    def __init__(self, found: Description | AnabranchError) -> None:
        self.found = found

    async def describe(self, log: LogId | str) -> Description:
        if isinstance(self.found, AnabranchError):
            raise self.found
        return self.found


def subject(found: Description | AnabranchError, log: LogId | str = SEVEN) -> Subject | None:
    told: list[Subject | None] = []

    async def scene() -> None:
        told.append(await LogSubjects(Describer(found)).subject(log))

    run(scene())
    return told[0]


def log(**more: object) -> Description:
    return replace(described(SEVEN, "orders"), **more)


def test_a_log_that_a_resource_declares_has_that_resources_rights() -> None:
    assert subject(log(owner="k8s/shop/Log/carts/uid-1")) == Subject(LOGS, "carts", "shop")
    assert subject(log(owner="k8s/shop/Fork/try/uid-1")) == Subject(FORKS, "try", "shop")


@pytest.mark.parametrize("owner", OTHERS)
def test_any_other_has_those_of_a_resource_of_its_own_name(owner: str) -> None:
    assert subject(log(owner=owner)) == Subject(LOGS, "orders")
    assert subject(log(owner=owner, kind=Kind.CONTINUOUS)) == Subject(FORKS, "orders")
    assert subject(log(owner=owner, kind=Kind.SEVERED)) == Subject(FORKS, "orders")


@pytest.mark.parametrize(
    "error", [Promoted("orders", "shop"), Squashed("orders", "its time was over", "shop")]
)
def test_a_log_that_is_gone_has_none(error: AnabranchError) -> None:
    assert subject(error) is None
    assert subject(error, "orders") is None


def test_an_id_that_nobody_knows_may_yet_be_given() -> None:
    assert subject(UnknownLog("orders"), "orders") is None
    with pytest.raises(UnknownLog):
        subject(UnknownLog("7"))


def test_a_service_that_cant_be_asked_is_no_verdict() -> None:
    with pytest.raises(Unavailable):
        subject(Unavailable("the metadata", "nobody leads"))
