"""How the operator asks the log service, before there is one."""

import asyncio
from pathlib import Path

from tests.certificates import Issuer

from anabranch.apps.processes.ports import free_ports
from anabranch_operator.plan.engine.events import Unseen
from anabranch_operator.service.bolt_client import Asker


def test_an_authority_that_the_operator_has_yet_to_make_is_waited_for(tmp_path: Path) -> None:
    before, after = asyncio.run(_looks(tmp_path / "service"))
    assert "must be readable PEM files" in before.why
    assert "can't be reached" in after.why


async def _looks(folder: Path) -> tuple[Unseen, Unseen]:
    """Before and after there is an authority; nobody listens."""
    url = f"anabranchs://127.0.0.1:{free_ports(1)[0]}?ca={folder / 'ca'}"
    asker = Asker(url, "operator", lambda _request, _code: None)
    asker.guard("k8s/logs", 7)
    try:
        before = await asker.look()
        Issuer(folder)
        after = await asker.look()
    finally:
        asker.close()
    assert isinstance(before, Unseen)
    assert isinstance(after, Unseen)
    return before, after
