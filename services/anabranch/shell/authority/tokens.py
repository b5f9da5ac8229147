"""Tokens that are good now: the one that was given, or those of a file, which may change.

Several at a time let a token be replaced without a pause: the file gets the new one beside the old,
those who show it follow, and then the old one goes.
"""

import hmac
from functools import partial

from anabranch.core.errors import BadRequest
from anabranch.core.rights.judge import TOKEN_BYTES_MAX
from anabranch.shell.net.reload import Renewed
from anabranch.shell.runtime.regular_file import read_regular
from anabranch.shell.telemetry.log import Log

TOKENS_MAX = 64
"""In one file: each is compared with what a caller shows."""
_FILE_BYTES_MAX = TOKENS_MAX * (TOKEN_BYTES_MAX + 2)


class Tokens:
    """None given, and no file: everybody is let in."""

    def __init__(self, given: str | None = None, file: str = "", log: Log | None = None) -> None:
        self._given = () if given is None else (given,)
        self._file = Renewed((file,), partial(_read, file), log) if file else None
        self.open = given is None and not file

    @property
    def first(self) -> str | None:
        """What this process shows to others."""
        return next(iter(self._all), None)

    def accepts(self, token: str | None) -> bool:
        """In constant time for each of them: how long it takes tells nothing of how much fits."""
        if self.open:
            return True
        shown = _bytes(token or "")
        if len(shown) > TOKEN_BYTES_MAX:
            return False
        found = [hmac.compare_digest(shown, _bytes(each)) for each in self._all]
        return any(found)

    @property
    def _all(self) -> tuple[str, ...]:
        return self._file.current() if self._file is not None else self._given


def tokens_of(given: Tokens | str | None) -> Tokens:
    return given if isinstance(given, Tokens) else Tokens(given)


def _read(file: str) -> tuple[str, ...]:
    """Raises BadRequest where there is none: nobody is let in by an empty token."""
    try:
        text = read_regular(file, _FILE_BYTES_MAX).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise BadRequest(f"the tokens in {file}", str(error)) from None
    found = tuple(line.strip() for line in text.splitlines() if line.strip())
    if not found:
        raise BadRequest(f"the tokens in {file}", "it holds none: write one a line")
    if len(found) > TOKENS_MAX:
        raise BadRequest(f"the tokens in {file}", f"it holds {len(found)}: {TOKENS_MAX} at most")
    if any(len(each.encode()) > TOKEN_BYTES_MAX for each in found):
        raise BadRequest(f"the tokens in {file}", f"one is longer than {TOKEN_BYTES_MAX} bytes")
    return found


def _bytes(token: str) -> bytes:
    """Bytes that are no text stand in a variable, or a frame, as surrogates."""
    return token.encode(errors="surrogatepass")
