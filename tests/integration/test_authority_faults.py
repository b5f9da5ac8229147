"""An API server that is away, slow, wrong or changed: what its reviewers' client makes of that."""

import asyncio
import gc
import warnings
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.certificates import certified
from tests.integration.pool import pooled
from tests.integration.reviewer import SERVER_TOKEN, Reviewer

import anabranch
from anabranch.apps.processes.ports import free_ports
from anabranch.client.session.settings import Settings
from anabranch.core.errors import Unavailable
from anabranch.core.rights.claims import LOGS, Right, Subject, Verb
from anabranch.core.rights.judge import Guest
from anabranch.shell.authority.api import ApiServer
from anabranch.shell.authority.kubernetes import Reviews
from anabranch.shell.authority.settings import AuthMode, AuthSettings

PATIENCE_S = 60.0
PATIENT_MS = round(PATIENCE_S * 1_000)
ANN = Guest("ann", groups=("people",))
RIGHT = Right(Verb.READ, Subject(LOGS, "orders", "shop"))


@pytest.fixture
def reviewer(tmp_path: Path) -> Iterator[Reviewer]:
    with Reviewer(tmp_path).serving() as serving:
        yield serving


def run(
    reviewer: Reviewer,
    scene: Callable[[Reviews], Coroutine[Any, Any, None]],
    *,
    url: str = "",
    deadline_ms: int = PATIENT_MS,
) -> None:
    async def body() -> None:
        reviews = Reviews(ApiServer(url or reviewer.url, reviewer.folder, deadline_ms), "anabranch")
        try:
            await asyncio.wait_for(scene(reviews), 2 * PATIENCE_S)
        finally:
            await reviews.close()

    asyncio.run(body())


def test_what_is_asked_is_what_a_review_wants(reviewer: Reviewer) -> None:
    async def scene(reviews: Reviews) -> None:
        assert await reviews.who_is("ann") == ANN
        assert await reviews.may(ANN, RIGHT)

    run(reviewer, scene)
    token, access = reviewer.asked
    assert token["spec"] == {"token": "ann", "audiences": ["anabranch"]}
    assert access["spec"]["user"] == "ann"
    assert access["spec"]["groups"] == ["people"]
    assert access["spec"]["resourceAttributes"] == {
        "group": "anabranch.dev",
        "resource": "logs",
        "namespace": "shop",
        "name": "orders",
        "verb": "read",
    }


@pytest.mark.parametrize("status", [401, 403, 413, 422, 429])
def test_an_answer_about_one_call_keeps_nobody_else_from_asking(
    reviewer: Reviewer, status: int
) -> None:
    reviewer.status = status

    async def scene(reviews: Reviews) -> None:
        with pytest.raises(Unavailable):
            await reviews.who_is("a stranger's")
        reviewer.status = 201
        assert await reviews.may(ANN, RIGHT) in (True, False)

    run(reviewer, scene)


@pytest.mark.parametrize("status", [500, 503])
def test_what_isnt_an_answer_is_no_verdict(reviewer: Reviewer, status: int) -> None:
    reviewer.status = status

    async def scene(reviews: Reviews) -> None:
        with pytest.raises(Unavailable, match=str(status)):
            await reviews.may(ANN, RIGHT)
        asked = len(reviewer.asked)
        # For a moment nobody asks again: what waits is told at once.
        with pytest.raises(Unavailable):
            await reviews.may(ANN, RIGHT)
        assert len(reviewer.asked) == asked

    run(reviewer, scene)


def test_an_answer_that_cant_be_read_is_no_verdict(reviewer: Reviewer) -> None:
    reviewer.garbled = True

    async def scene(reviews: Reviews) -> None:
        with pytest.raises(Unavailable, match="can't be read"):
            await reviews.who_is("ann")

    run(reviewer, scene)


def test_one_that_says_nothing_is_given_up(reviewer: Reviewer) -> None:
    reviewer.silent.set()

    async def scene(reviews: Reviews) -> None:
        with pytest.raises(Unavailable, match="doesn't answer a TokenReview within 1 s"):
            await reviews.who_is("ann")

    run(reviewer, scene, deadline_ms=1_000)


def test_one_that_isnt_there_is_said_so(reviewer: Reviewer) -> None:
    async def scene(reviews: Reviews) -> None:
        with pytest.raises(Unavailable, match="the Kubernetes API server is not available"):
            await reviews.who_is("ann")

    run(reviewer, scene, url=f"https://127.0.0.1:{free_ports(1)[0]}")


def test_one_with_a_strangers_certificate_isnt_asked(reviewer: Reviewer, tmp_path: Path) -> None:
    stranger = certified(tmp_path / "stranger")
    (reviewer.folder / "ca.crt").write_bytes(Path(stranger.ca).read_bytes())

    async def scene(reviews: Reviews) -> None:
        with pytest.raises(Unavailable, match="isn't trusted"):
            await reviews.who_is("ann")

    run(reviewer, scene)
    assert reviewer.asked == []


def test_a_connection_that_was_closed_meanwhile_costs_nobody_an_answer(reviewer: Reviewer) -> None:
    async def scene(reviews: Reviews) -> None:
        for hangs_up in (False, True, False, False):
            reviewer.hangs_up = hangs_up
            assert await reviews.who_is("ann") == ANN

    run(reviewer, scene)


def test_its_own_token_is_read_for_each_call(reviewer: Reviewer) -> None:
    reviewer.takes = "Bearer the next one"

    async def refused(reviews: Reviews) -> None:
        with pytest.raises(Unavailable, match="own token"):
            await reviews.who_is("ann")

    async def taken(reviews: Reviews) -> None:
        assert await reviews.who_is("ann") == ANN

    run(reviewer, refused)
    assert SERVER_TOKEN not in repr(reviewer.asked)
    (reviewer.folder / "token").write_text("the next one")
    run(reviewer, taken)


def test_a_review_that_is_under_way_at_the_end_leaves_no_connection_open(
    reviewer: Reviewer,
) -> None:
    reviewer.goes_on.clear()

    async def scene() -> None:
        reviews = Reviews(ApiServer(reviewer.url, reviewer.folder, PATIENT_MS), "anabranch")
        review = asyncio.create_task(reviews.who_is("ann"))
        await asyncio.to_thread(reviewer.came.wait)
        await reviews.close()
        reviewer.goes_on.set()
        assert await review == ANN

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        asyncio.run(scene())
        gc.collect()
    assert [str(each.message) for each in told] == []


def test_a_token_from_a_file_is_read_again_when_the_old_one_is_over(
    reviewer: Reviewer, tmp_path: Path
) -> None:
    auth = AuthSettings(
        mode=AuthMode.KUBERNETES,
        server=reviewer.url,
        folder=str(reviewer.folder),
        allow_ms=1_000,
        deny_ms=1_000,
    )
    file = tmp_path / "token"
    file.write_text("ann")
    settings = Settings(timeout_ms=PATIENT_MS)
    with (
        pooled(2, auth=auth) as pool,
        anabranch.connect(
            f"{pool.url}?token_file={file}", timeout=PATIENCE_S, settings=settings
        ) as service,
    ):
        orders = service.create("orders")
        orders.append(b"first")  # its broker may be another than the one that was dialed first
        file.write_text("bob")
        reviewer.over.add("ann")
        while "bob" not in [each["spec"].get("token") for each in reviewer.asked]:
            orders.append(b"a")
        orders.append(b"b")
        assert sum(broker.lapsed for broker in pool.brokers)
