"""Who may do what, as far as it is known; and what has to be asked where it isn't.

Who somebody is, which resource a log belongs to and who has which right are learned elsewhere. What
was learned is good for a while. After that it is asked again, and what was a yes stays one until
there is an answer or the grace is over: an outage of those who know shuts nobody out at once.
"""

from collections.abc import Iterable, Iterator
from hashlib import sha256

import msgspec

from anabranch.core.errors import Forbidden, Unauthenticated
from anabranch.core.machine import Value
from anabranch.core.rights.claims import Claim, Right, Subject, subject_named
from anabranch.core.rights.recollection import Recollection
from anabranch.core.types import MS, NOWHERE, LogId, Milliseconds, Nanoseconds

TOKEN_BYTES_MAX = 16 * 1_024
"""Of a token; Kubernetes' own have about one KiB."""
_REASON_CHARS_MAX = 200
"""Of why a token is nobody's: the sentence is another's, and is kept for a while."""
_STRANGERS = 16
"""Strangers' tokens are remembered by one entry for so many of the others."""
_LOOK_NS: Nanoseconds = 1_000 * MS
"""How soon to look again whether a doubtful yes still is one."""


class Guest(Value, frozen=True):
    """Somebody who was let in, as rights are given to them."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()


class WhoIs(Value, frozen=True):
    token: str


class WhatIs(Value, frozen=True):
    log: LogId | str


class MayThey(Value, frozen=True):
    guest: Guest
    right: Right


Question = WhoIs | WhatIs | MayThey


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """For how long what was learned is good."""

    allow_ms: Milliseconds
    deny_ms: Milliseconds
    grace_ms: Milliseconds
    entries_max: int


class Standing(Value, frozen=True):
    """A request is allowed before `until`; 0: not known before all of `ask` is answered."""

    until: Nanoseconds
    ask: tuple[Question, ...] = ()


class Judge:
    """`namespace`: the service's own; `audience`: what tokens must be meant for."""

    def __init__(self, terms: Terms, namespace: str, audience: str) -> None:
        assert namespace, "rights are asked for in a namespace"
        assert audience, "a token is meant for somebody"
        assert terms.entries_max > 0, "nothing could be remembered"
        self._terms = terms
        self._namespace = namespace
        self._audience = audience
        self._guests: Recollection[bytes, Guest] = Recollection(terms.entries_max)
        # Apart, and fewer: whoever shows one random token after the other must push out nobody.
        few = max(1, terms.entries_max // _STRANGERS)
        self._strangers: Recollection[bytes, str] = Recollection(few)
        self._subjects: Recollection[LogId | str, Subject | None] = Recollection(terms.entries_max)
        self._allowances: Recollection[tuple[Guest, Right], bool] = Recollection(terms.entries_max)
        self._denials: Recollection[tuple[Guest, Right], bool] = Recollection(few)

    def admission(self, token: str | None, now: Nanoseconds) -> Standing:
        """Raises Unauthenticated if this token is known to be worth nothing."""
        if not token:
            raise Unauthenticated("none was given", self._audience)
        if len(token) > TOKEN_BYTES_MAX:
            raise Unauthenticated(f"it is longer than {TOKEN_BYTES_MAX} bytes", self._audience)
        key = _key(token)
        stranger = self._strangers.recall(key, now)
        if stranger is not None:
            raise Unauthenticated(stranger.value, self._audience)
        found = self._guests.recall(key, now)
        if found is None:
            return Standing(0, (WhoIs(token),))
        return self._allowed(found.until, WhoIs(token), now)

    def guest(self, token: str, now: Nanoseconds) -> Guest | None:
        """Whose token this is, if that is known."""
        found = self._guests.recall(_key(token), now)
        return found.value if found is not None else None

    def standing(self, token: str, claims: Iterable[Claim], now: Nanoseconds) -> Standing:
        """Raises Unauthenticated or Forbidden if it is known that this isn't allowed."""
        admission = self.admission(token, now)
        if not admission.until:
            return admission
        guest = self.guest(token, now)
        assert guest is not None, "a token that is admitted is somebody's"
        until, ask = admission.until, admission.ask
        for claim in claims:
            held = self._held(guest, claim, now)
            if not held.until:
                return held
            until, ask = min(until, held.until), (*ask, *held.ask)
        return Standing(until, ask)

    def met(self, question: WhoIs, guest: Guest | str, now: Nanoseconds) -> None:
        """Whose token this is, or why it is nobody's."""
        key = _key(question.token)
        if isinstance(guest, Guest):
            self._strangers.forget(key)
            self._guests.learn(key, guest, *self._times(now, yes=True))
        else:
            self._guests.forget(key)
            reason = guest[:_REASON_CHARS_MAX]
            self._strangers.learn(key, reason, *self._times(now, yes=False))

    def described(self, question: WhatIs, subject: Subject | None, now: Nanoseconds) -> None:
        """None: the log is gone for good, and nothing can be done to it. A name may come to be
        another log's, which an id never does.
        """
        times = self._times(now, yes=True)
        if isinstance(question.log, str):
            times = now + _LOOK_NS, now + _LOOK_NS
        self._subjects.learn(question.log, subject, *times)

    def ruled(self, question: MayThey, now: Nanoseconds, *, allowed: bool) -> None:
        key = question.guest, question.right
        self._allowances.forget(key)
        self._denials.forget(key)
        learned = self._allowances if allowed else self._denials
        learned.learn(key, allowed, *self._times(now, yes=allowed))

    def _held(self, guest: Guest, claim: Claim, now: Nanoseconds) -> Standing:
        about = claim.about
        if isinstance(about, Subject):
            return self._ruling(guest, claim, about, now)
        if about == NOWHERE:
            return Standing(now + _LOOK_NS)
        found = self._subjects.recall(about, now)
        if found is None:
            return Standing(0, (WhatIs(about),))
        known = self._allowed(found.until, WhatIs(about), now)
        subject = found.value
        if subject is None:
            if not isinstance(about, str):
                return known
            subject = subject_named(about)
        ruling = self._ruling(guest, claim, subject, now)
        if not ruling.until:
            return ruling
        return Standing(min(known.until, ruling.until), (*known.ask, *ruling.ask))

    def _ruling(self, guest: Guest, claim: Claim, subject: Subject, now: Nanoseconds) -> Standing:
        """By whichever verb is known to be allowed; what isn't known is asked one by one."""
        assert claim.verbs, "a claim names a verb at least"
        if not subject.namespace:
            subject = msgspec.structs.replace(subject, namespace=self._namespace)
        unknown: MayThey | None = None
        doubtful: Standing | None = None
        for right in _rights(claim, subject):
            key = guest, right
            found = self._allowances.recall(key, now) or self._denials.recall(key, now)
            question = MayThey(guest, right)
            if found is None:
                unknown = unknown or question
            elif found.value and now < found.until:
                return Standing(found.until)
            elif found.value:
                doubtful = doubtful or self._allowed(found.until, question, now)
        if doubtful is not None:
            return doubtful
        if unknown is not None:
            return Standing(0, (unknown,))
        raise Forbidden(
            guest.name, claim.verbs[0], subject.resource, subject.name, subject.namespace
        )

    def _allowed(self, until: Nanoseconds, question: Question, now: Nanoseconds) -> Standing:
        return Standing(until) if now < until else Standing(now + _LOOK_NS, (question,))

    def _times(self, now: Nanoseconds, *, yes: bool) -> tuple[Nanoseconds, Nanoseconds]:
        assert now >= 0
        terms = self._terms
        if not yes:
            return now + terms.deny_ms * MS, now + terms.deny_ms * MS
        good = now + terms.allow_ms * MS
        return good, good + terms.grace_ms * MS


def _key(token: str) -> bytes:
    """What a token is remembered by: the same for all lengths, and useless to a thief."""
    assert token, "an empty token is nobody's"
    return sha256(token.encode(errors="surrogatepass")).digest()


def _rights(claim: Claim, subject: Subject) -> Iterator[Right]:
    return (Right(verb, subject) for verb in claim.verbs)
