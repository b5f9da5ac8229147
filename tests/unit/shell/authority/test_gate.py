"""What one connection may do: its passes, and subscriptions whose right is looked at again."""

import asyncio
from collections.abc import AsyncGenerator, Hashable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.shell.nodes import run, until

from anabranch.core.errors import AnabranchError, Forbidden, Unauthenticated, Unavailable
from anabranch.core.rights.claims import LOGS, Claim, Subject, Verb
from anabranch.core.types import MS, Nanoseconds
from anabranch.shell.authority import gate as gates
from anabranch.shell.authority.gate import PASSES_MAX, Gate


@dataclass(frozen=True)
class Ask:
    """A request: to append to a log, or what is asked anew each time."""

    log: str
    kept: bool = True


class Rights:
    def needs(self, message: Ask) -> tuple[Claim, ...]:
        return (Claim(Subject(LOGS, message.log), (Verb.APPEND,)),)

    def kept(self, message: Ask) -> Hashable:
        return message.log if message.kept else None


class Authority:
    """Says until when each log may be used; asking takes a turn of the loop."""

    selective = True
    open = False

    def __init__(self) -> None:
        self.time: Nanoseconds = 1_000 * MS
        self.until: dict[str, Nanoseconds] = {}
        """What is known at once."""
        self.found: dict[str, Nanoseconds | AnabranchError] = {}
        """What asking finds."""
        self.asked: list[str] = []
        self.judged = 0

    def now(self) -> Nanoseconds:
        return self.time

    def known(self, token: str | None) -> bool:
        return True

    async def admit(self, token: str | None, address: str = "") -> None: ...

    def principal(self, token: str | None) -> str:
        return "ann"

    def standing(self, token: str | None, claims: Sequence[Claim]) -> Nanoseconds:
        self.judged += 1
        return self.until.get(_log(claims), 0)

    async def permit(self, token: str | None, claims: Sequence[Claim]) -> Nanoseconds:
        self.asked.append(_log(claims))
        await asyncio.sleep(0)
        found = self.found[_log(claims)]
        if isinstance(found, AnabranchError):
            raise found
        return found


def _log(claims: Sequence[Claim]) -> str:
    (claim,) = claims
    assert isinstance(claim.about, Subject)
    return claim.about.name


class Bearer:
    def __init__(self) -> None:
        self.revoked: list[tuple[int, str]] = []
        self.lapsed = 0

    def revoke(self, request: int, error: AnabranchError) -> None:
        self.revoked.append((request, error.code))

    def lapse(self) -> None:
        self.lapsed += 1


class Scene:
    def __init__(self) -> None:
        self.authority, self.bearer = Authority(), Bearer()
        self.gate = Gate(self.authority, Rights(), "token", self.bearer)


@asynccontextmanager
async def scene_of() -> AsyncGenerator[Scene]:
    here = Scene()
    yield here
    here.gate.close()


@pytest.fixture(autouse=True)
def swift(monkeypatch: pytest.MonkeyPatch) -> None:
    """A subscription's right is looked at as soon as it has run out."""
    monkeypatch.setattr(gates, "_CHECK_S", 0.0)


def forbidden(log: str) -> Forbidden:
    return Forbidden("ann", "append", LOGS, log, "home")


def test_what_is_known_is_judged_once_until_it_runs_out() -> None:
    async def scene() -> None:
        async with scene_of() as here:
            here.authority.until["a"] = 1_500 * MS
            for _ in range(10):
                assert here.gate.allows(Ask("a"))
            assert here.authority.judged == 1
            assert here.gate.knows(Ask("a"))
            assert not here.gate.knows(Ask("b"))
            here.authority.time = 1_500 * MS
            assert not here.gate.knows(Ask("a"))
            here.authority.until["a"] = 2_000 * MS
            assert here.gate.allows(Ask("a"))
            assert here.authority.judged == 2

    run(scene())


def test_what_isnt_kept_is_judged_each_time() -> None:
    async def scene() -> None:
        async with scene_of() as here:
            here.authority.until["a"] = 9_000 * MS
            for _ in range(3):
                assert here.gate.allows(Ask("a", kept=False))
            assert here.authority.judged == 3
            assert not here.gate.knows(Ask("a", kept=False))

    run(scene())


def test_what_isnt_known_is_found_out_and_then_known() -> None:
    async def scene() -> None:
        async with scene_of() as here:
            assert not here.gate.allows(Ask("a"))
            here.authority.found["a"] = 5_000 * MS
            await here.gate.find(Ask("a"))
            assert here.gate.knows(Ask("a"))
            assert here.authority.asked == ["a"]

    run(scene())


@pytest.mark.parametrize("error", [forbidden("a"), Unavailable("the API server", "it is away")])
def test_what_cant_be_found_out_or_isnt_allowed_is_raised_and_not_kept(
    error: AnabranchError,
) -> None:
    async def scene() -> None:
        async with scene_of() as here:
            here.authority.found["a"] = error
            with pytest.raises(type(error)):
                await here.gate.find(Ask("a"))
            assert not here.gate.knows(Ask("a"))

    run(scene())


def test_a_subscription_goes_on_while_its_right_is_found_again() -> None:
    async def scene() -> None:
        async with scene_of() as here:
            here.authority.until["a"] = here.authority.time
            here.gate.allows(Ask("a"))
            here.authority.found["a"] = 1 << 62
            here.gate.watch(7, Ask("a"))
            await until(lambda: here.authority.asked == ["a"])
            await until(lambda: here.gate.knows(Ask("a")))
            assert (here.bearer.revoked, here.bearer.lapsed) == ([], 0)

    run(scene())


@pytest.mark.parametrize("error", [forbidden("a"), Unavailable("the API server", "it is away")])
def test_a_subscription_whose_right_is_gone_or_unknown_is_revoked_alone(
    error: AnabranchError,
) -> None:
    async def scene() -> None:
        async with scene_of() as here:
            here.authority.found = {"a": error, "b": 1 << 62}
            here.gate.watch(1, Ask("a"))
            here.gate.watch(2, Ask("b"))
            await until(lambda: bool(here.bearer.revoked))
            await until(lambda: here.gate.knows(Ask("b")))
            assert set(here.bearer.revoked) == {(1, error.code)}
            assert here.bearer.lapsed == 0

    run(scene())


def test_a_token_that_is_good_no_more_ends_the_connection() -> None:
    async def scene() -> None:
        async with scene_of() as here:
            here.authority.found["a"] = Unauthenticated("its time is over", "anabranch")
            here.gate.watch(1, Ask("a"))
            here.gate.watch(2, Ask("a"))
            await until(lambda: here.bearer.lapsed == 1)
            assert here.bearer.revoked == []
            asked = len(here.authority.asked)
            await asyncio.sleep(0)
            assert len(here.authority.asked) == asked, "nothing more is looked at"

    run(scene())


def test_a_subscription_that_is_over_is_looked_at_no_more() -> None:
    async def scene() -> None:
        async with scene_of() as here:
            here.authority.found = {"a": forbidden("a"), "b": forbidden("b")}
            here.gate.watch(1, Ask("a"))
            here.gate.watch(2, Ask("b"))
            here.gate.forget(1)
            await until(lambda: bool(here.bearer.revoked))
            assert {request for request, _ in here.bearer.revoked} == {2}
            here.gate.forget(99)

    run(scene())


def test_passes_are_bounded() -> None:
    async def scene() -> None:
        async with scene_of() as here:
            for n in range(PASSES_MAX + 10):
                here.authority.until[str(n)] = 1 << 62
                assert here.gate.allows(Ask(str(n)))
            assert here.gate.knows(Ask(str(PASSES_MAX + 9)))
            assert sum(here.gate.knows(Ask(str(n))) for n in range(PASSES_MAX + 10)) <= PASSES_MAX

    run(scene())


steps = st.lists(
    st.tuples(
        st.sampled_from(["allow", "find", "learn", "revoke", "pass"]),
        st.sampled_from("abc"),
        st.integers(0, 3_000),
    ),
    max_size=40,
)


@settings(max_examples=100, deadline=None)
@given(steps)
def test_nothing_is_allowed_that_the_authority_hasnt_said_for_that_time(
    program: list[tuple[str, str, int]],
) -> None:
    async def scene() -> None:
        async with scene_of() as here:
            said: dict[str, Nanoseconds] = {}
            authority = here.authority
            for what, log, much in program:
                match what:
                    case "pass":
                        authority.time += much * MS
                    case "learn":
                        authority.until[log] = authority.time + much * MS
                        authority.found[log] = authority.time + much * MS
                    case "revoke":
                        authority.until.pop(log, None)
                        authority.found[log] = forbidden(log)
                    case "find":
                        found = authority.found.get(log, forbidden(log))
                        authority.found[log] = found
                        if isinstance(found, AnabranchError):
                            with pytest.raises(Forbidden):
                                await here.gate.find(Ask(log))
                        else:
                            await here.gate.find(Ask(log))
                            said[log] = found
                    case _:
                        known = authority.now() < said.get(log, 0)
                        told = authority.until.get(log, 0)
                        assert here.gate.allows(Ask(log)) == (known or bool(told))
                        if not known and told:
                            said[log] = told
                for each in "abc":
                    assert here.gate.knows(Ask(each)) == (authority.now() < said.get(each, 0))

    run(scene())
