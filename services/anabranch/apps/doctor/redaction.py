"""Secrets are taken out of what the doctor keeps: by where they stand, by how they look, and by
value wherever else the same value turns up.
"""

import re
from collections.abc import Iterable, Mapping
from itertools import zip_longest
from typing import Any, cast

from anabranch.core.redaction import NAMED, credentials_in, printable, redacted

HIDDEN = "(not shown)"
_LENGTH_MIN = 6
"""A shorter value is a word like any other: hiding it everywhere would hide the report."""

_NAME = re.compile(rf"(?i){NAMED}$")
"""How a variable, a flag or a field is called that holds a secret."""


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
            for found in credentials_in(value):
                self._add(found)
                self._add(found.rpartition(":")[2])

    def clean(self, text: str) -> str:
        """The text without what looks like a secret, and without every value that was learned."""
        text = redacted(printable(text), HIDDEN)
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
