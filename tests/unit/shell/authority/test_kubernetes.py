"""Reviews as a Kubernetes API server answers them, and what a process makes of each answer."""

import json
from typing import Any

import pytest
from tests.unit.shell.nodes import run

from anabranch.core.errors import Unavailable
from anabranch.core.rights.claims import GROUP, LOGS, Right, Subject, Verb
from anabranch.core.rights.judge import Guest
from anabranch.shell.authority.kubernetes import ACCESS, TOKENS, Reviews

RIGHT = Right(Verb.APPEND, Subject(LOGS, "orders", "shop"))
ANN = Guest("ann", "u-1", ("people", "admins"), (("scopes", ("a", "b")),))


class Server:
    """Answers each review with what it was given."""

    def __init__(self, answer: bytes | dict[str, Any]) -> None:
        self.answer = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.asked: list[tuple[str, str, Any]] = []
        self.closed = False

    async def post(self, path: str, body: bytes, what: str) -> bytes:
        self.asked.append((path, what, json.loads(body)))
        return self.answer

    def close(self) -> None:
        self.closed = True


def who(status: dict[str, Any]) -> tuple[Guest | str, Server]:
    server, found = Server({"status": status}), list[Guest | str]()

    async def scene() -> None:
        reviews = Reviews(server, "anabranch")  # pyright: ignore[reportArgumentType]
        found.append(await reviews.who_is("a token"))

    run(scene())
    return found[0], server


def may(answer: bytes | dict[str, Any]) -> tuple[bool, Server]:
    server, found = Server(answer), list[bool]()

    async def scene() -> None:
        reviews = Reviews(server, "anabranch")  # pyright: ignore[reportArgumentType]
        found.append(await reviews.may(ANN, RIGHT))
        await reviews.close()

    run(scene())
    return found[0], server


def test_a_token_review_names_the_token_and_what_it_must_be_made_for() -> None:
    found, server = who(
        {
            "authenticated": True,
            "audiences": ["anabranch"],
            "user": {
                "username": "ann",
                "uid": "u-1",
                "groups": ["people", "admins"],
                "extra": {"scopes": ["a", "b"]},
            },
        }
    )
    assert found == ANN
    [(path, what, body)] = server.asked
    assert (path, what) == (TOKENS, "TokenReview")
    assert (body["kind"], body["apiVersion"]) == ("TokenReview", "authentication.k8s.io/v1")
    assert body["spec"] == {"token": "a token", "audiences": ["anabranch"]}


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        ({}, "it is nobody's, or its time is over"),
        ({"authenticated": False, "error": "token expired"}, "token expired"),
        ({"authenticated": True, "user": {"username": "ann"}}, "made for any audience"),
        ({"authenticated": True, "audiences": ["api", "vault"]}, "made for api, vault"),
    ],
)
def test_a_token_that_isnt_for_us_is_nobodys_and_the_reason_is_told(
    status: dict[str, Any], reason: str
) -> None:
    found, _ = who(status)
    assert isinstance(found, str)
    assert reason in found


def test_an_access_review_is_about_the_guest_as_the_token_review_named_it() -> None:
    allowed, server = may({"status": {"allowed": True}})
    assert allowed
    assert server.closed
    [(path, what, body)] = server.asked
    assert (path, what) == (ACCESS, "SubjectAccessReview")
    assert body["spec"] == {
        "user": "ann",
        "uid": "u-1",
        "groups": ["people", "admins"],
        "extra": {"scopes": ["a", "b"]},
        "resourceAttributes": {
            "group": GROUP,
            "resource": "logs",
            "namespace": "shop",
            "name": "orders",
            "verb": "append",
        },
    }


@pytest.mark.parametrize(
    ("status", "allowed"),
    [
        ({"allowed": True}, True),
        ({"allowed": False}, False),
        ({"allowed": True, "denied": True}, False),
        ({"allowed": True, "denied": False, "reason": "of a later version"}, True),
    ],
)
def test_only_a_clear_yes_is_one(status: dict[str, Any], allowed: bool) -> None:
    assert may({"status": status})[0] is allowed


@pytest.mark.parametrize("answer", [b"", b"{", b"null", b"[]", b'{"status": {}}', b"\xff"])
def test_what_cant_be_read_is_neither_yes_nor_no(answer: bytes) -> None:
    with pytest.raises(Unavailable, match="its answer can't be read"):
        may(answer)
