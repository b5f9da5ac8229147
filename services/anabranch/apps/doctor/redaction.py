"""Secrets are taken out of what the doctor keeps: by where they stand, by how they look, and by
value wherever else the same value turns up.
"""

import re
from collections.abc import Iterable, Mapping
from itertools import zip_longest
from typing import Any, cast

HIDDEN = "(not shown)"
_LENGTH_MIN = 6
"""A shorter value is a word like any other: hiding it everywhere would hide the report."""

_NAMED = r"(?:token|secret|password|passwd|credentials?|(?:secret|access|api|private)[_-]?key)"
_NAME = re.compile(rf"(?i){_NAMED}$")
"""How a variable, a flag or a field is called that holds a secret."""

_GIVEN = rf"(?:{_NAMED}|signature)[\"']?\s*[=:]\s*[\"']?"

_ADDRESS = re.compile(r"(?<=://)[^/\s@\"']+(?=@)")
"""What stands before the host of a URL: a token, or a name and a password."""

_SHAPES: tuple[tuple[re.Pattern[str], str], ...] = (
    (
        re.compile(
            r"(?s)-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----.*?(?:-----END [A-Z ]{0,40}-----|$)"
        ),
        HIDDEN,
    ),
    (_ADDRESS, HIDDEN),
    (re.compile(r"(?<![\w-])eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*"), HIDDEN),  # a JSON Web Token
    (re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{12,}\b"), HIDDEN),
    (re.compile(r"(?i)(\b(?:bearer|basic)\s+)[\w.~+/=-]{8,}"), rf"\g<1>{HIDDEN}"),
    (
        re.compile(rf"(?i)((?:{_NAMED}|signature)[\"']?\s*[=:]\s*[\"']?)[^\s\"',;&)]+"),
        rf"\g<1>{HIDDEN}",
    ),
    (
        # The flag begins where nothing like it stands before: a line of dashes costs no more.
        re.compile(rf"(?i)((?<![\w-])--[\w-]{{0,40}}{_NAMED}\s{{1,8}})[^\s-]\S*"),
        rf"\g<1>{HIDDEN}",
    ),
)


def names_a_secret(name: str) -> bool:
    return bool(_NAME.search(name.lstrip("-")))


class Redaction:
    """Learns which values are secret, and takes them out of texts and documents."""

    def __init__(self) -> None:
        self._known: set[str] = set()

    def learn(self, value: Any) -> None:
        """Take in every secret of a document as it was read."""
        if isinstance(value, Mapping):
            fields = cast("Mapping[str, Any]", value)
            name, said = fields.get("name"), fields.get("value")
            if isinstance(name, str) and isinstance(said, str) and names_a_secret(name):
                self._add(said)
            for key, each in fields.items():
                if isinstance(each, str) and names_a_secret(key):
                    self._add(each)
                self.learn(each)
        elif isinstance(value, list | tuple):
            words = cast("Iterable[Any]", value)
            self._learn_flags([each for each in words if isinstance(each, str)])
            for each in words:
                self.learn(each)
        elif isinstance(value, str):
            for found in _ADDRESS.findall(value):
                self._add(found)
                self._add(found.rpartition(":")[2])

    def clean(self, text: str) -> str:
        """The text without what looks like a secret, and without every value that was learned."""
        for shape, instead in _SHAPES:
            text = shape.sub(instead, text)
        # The longest first: one may be part of another.
        for secret in sorted(self._known, key=lambda each: (-len(each), each)):
            text = text.replace(secret, HIDDEN)
        return text

    def cleaned(self, value: Any) -> Any:
        """The same of every text in a document; field names stay."""
        if isinstance(value, str):
            return self.clean(value)
        if isinstance(value, Mapping):
            return {key: self.cleaned(each) for key, each in cast("Any", value).items()}
        if isinstance(value, list | tuple):
            return [self.cleaned(each) for each in cast("Iterable[Any]", value)]
        return value

    def _learn_flags(self, words: list[str]) -> None:
        for word, following in zip_longest(words, words[1:], fillvalue=""):
            flag, given, said = word.partition("=")
            if flag.startswith("-") and names_a_secret(flag):
                self._add(said if given else following)

    def _add(self, value: str) -> None:
        if len(value) >= _LENGTH_MIN:
            self._known.add(value)
