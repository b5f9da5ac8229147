"""Our CRDs on the API server that tests share."""

from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Any, TypeVar

import pytest
import yaml
from tests.kubernetes.api_server import ANSWER_S, ApiServer, Refused

from anabranch_operator.api import names

T = TypeVar("T")

_LOOK_S = 0.05
_CRDS = Path(__file__).parents[2] / "crds"


def definition_path(name: str) -> str:
    return f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}"


def install(server: ApiServer, definition: dict[str, Any]) -> None:
    """Once it returns, resources of the kind can be written under this very definition."""
    name = definition["metadata"]["name"]
    server.apply(definition_path(name), definition, "tests", force=True)
    until_established(server, name)
    spec = definition["spec"]
    version = spec["versions"][0]["name"]
    until_served(server, f"/apis/{spec['group']}/{version}/{spec['names']['plural']}")


def until(holds: Callable[[], T | None], what: str) -> T:
    """The first answer that isn't None: much of an API server follows a write a moment later."""
    pause = Event()
    for _ in range(int(ANSWER_S / _LOOK_S)):
        found = holds()
        if found is not None:
            return found
        pause.wait(_LOOK_S)
    raise AssertionError(f"gave up waiting: {what}")


def until_established(server: ApiServer, name: str) -> None:
    """Asked here because `kubectl wait` fails on a definition that has no conditions yet."""

    def look() -> bool | None:
        status = server.ask("GET", definition_path(name)).get("status", {})
        held = {each["type"] for each in status.get("conditions") or () if each["status"] == "True"}
        return "Established" in held or None

    until(look, f"{name} is established")


def until_served(server: ApiServer, path: str) -> Any:
    """What is there."""

    def look() -> Any:
        try:
            return server.ask("GET", path)
        except Refused as refused:
            if refused.code not in {404, 429}:  # not there yet; there, and not ready
                raise
            return None

    return until(look, f"{path} is served")


@pytest.fixture(scope="session")
def resources(api_server: ApiServer) -> ApiServer:
    """The shared API server, with Logs, Forks and BrokerPools."""
    return resources_of(api_server)


def resources_of(api_server: ApiServer) -> ApiServer:
    for plural in names.PLURALS.values():
        text = (_CRDS / f"{plural}.yaml").read_text(encoding="utf-8")
        install(api_server, yaml.safe_load(text))
    return api_server
