"""Secrets with random tokens: made once by the leading operator, and never changed afterwards.

A chart can't make them: rendered without a cluster at hand, as GitOps tools do, it would roll new
tokens each time.
"""

import asyncio
import secrets
from base64 import b64encode
from typing import Any

import msgspec

from anabranch.shell.telemetry.log import Log
from anabranch_operator.api.names import MADE_BY, MANAGED_BY
from anabranch_operator.kube.client import Client
from anabranch_operator.kube.refusals import ApiError, Conflict, NotFound, NotStanding
from anabranch_operator.plan.engine.objects import Ref

_BYTES = 30
_AGAIN_S = 2.0


class TokenSecret(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A Secret that the installation can't do without."""

    name: str

    tokens: tuple[str, ...]
    """Keys that get a random token each."""

    values: dict[str, str] = {}
    """Keys with what they hold."""


async def provide(
    client: Client, namespace: str, wanted: tuple[TokenSecret, ...], log: Log
) -> None:
    """Make those that are missing, while this operator leads; one that is there stays as it is."""
    for each in wanted:
        waits = False
        while True:
            try:
                if await _provide(client, Ref("Secret", namespace, each.name), each):
                    log.info("made a Secret with tokens", secret=each.name)
                break
            except NotStanding:
                return  # the next leader does it
            except ApiError as error:
                if not waits:
                    log.warning("can't provide a Secret", secret=each.name, reason=error.message)
                waits = True
                await asyncio.sleep(_AGAIN_S)


async def _provide(client: Client, ref: Ref, wanted: TokenSecret) -> bool:
    """Whether it had to be made."""
    try:
        await client.get(ref)
    except NotFound:
        try:
            await client.apply(ref, _manifest(ref, wanted), force=False)
        except Conflict:
            return False  # somebody made it just now, with tokens of their own
        return True
    return False


def _manifest(ref: Ref, wanted: TokenSecret) -> dict[str, Any]:
    data = {key: secrets.token_urlsafe(_BYTES) for key in wanted.tokens} | wanted.values
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": ref.name,
            "namespace": ref.namespace,
            "labels": {MADE_BY: "operator", MANAGED_BY: "anabranch-operator"},
        },
        "type": "Opaque",
        "data": {key: b64encode(value.encode()).decode() for key, value in data.items()},
    }
