"""The API server as the doctor asks it: through the official client, which is an extra.

That client knows kubeconfigs and their ways to sign in; paths and JSON are all that we need else.
"""

import json
from importlib import import_module
from typing import Any

from anabranch.core.errors import AnabranchError, BadRequest, Unavailable

_ANSWER_S = 30.0
_TRIES = 2


class NoClient(AnabranchError):
    """The official client isn't installed."""

    code = "no-kubernetes-client"
    status = 501
    advice = "fix"
    says = "the doctor needs Kubernetes' own client: pip install 'anabranch[doctor]'"


class Refused(Exception):
    """What the API server said instead of an answer."""


class Cluster:
    """Reads, and nothing else."""

    def __init__(self, kubeconfig: str | None, context: str | None) -> None:
        try:
            config: Any = import_module("kubernetes.config")
        except ImportError:
            raise NoClient from None
        try:
            client = config.new_client_from_config(kubeconfig, context)
            contexts, current = config.list_kube_config_contexts(kubeconfig)
        except (config.ConfigException, OSError) as error:
            raise BadRequest("the kubeconfig", str(error)) from None
        self._settings = client.configuration
        self._pool = client.rest_client.pool_manager
        chosen = next((each for each in contexts if each["name"] == context), current)
        self.namespace: str = chosen["context"].get("namespace", "default")
        """Where the context is."""

    def get(self, path: str) -> Any:
        return json.loads(self.text(path))

    def text(self, path: str) -> str:
        from urllib3.exceptions import HTTPError

        shown = {each["key"]: each["value"] for each in self._settings.auth_settings().values()}
        headers = {"Accept": "*/*", **shown}
        url = self._settings.host + path
        try:
            answer = self._pool.request(
                "GET", url, headers=headers, timeout=_ANSWER_S, retries=_TRIES
            )
        except HTTPError as error:
            raise Unavailable("the API server", str(error)) from None
        said: str = answer.data.decode(errors="replace")
        if answer.status >= 300:
            raise Refused(f"{answer.status}: {_message(said)}")
        return said


def _message(said: str) -> str:
    try:
        return str(json.loads(said)["message"])
    except (ValueError, KeyError, TypeError):
        return said[:200]
