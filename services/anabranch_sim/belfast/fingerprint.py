"""Are two states of a machine the same? All that it and its callbacks hold, as a hash."""

from collections import deque
from collections.abc import Callable, Iterable
from enum import Enum
from functools import partial
from hashlib import blake2b
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any, cast

import msgspec

_ATOMS = (int, str, bytes, bool, float, type(None))


def likeness(*roots: object) -> bytes:
    """The same for states that can't be told apart by what they do, made in the same way."""
    words: list[str] = []
    _Walk(words).write(roots)
    return blake2b("\0".join(words).encode(), digest_size=16).digest()


class _Walk:
    def __init__(self, words: list[str]) -> None:
        self._words = words
        self._seen: dict[int, int] = {}
        self._held: list[object] = []
        """Nothing that was made on the way may give its identity to another."""

    def write(self, thing: Any) -> None:
        if isinstance(thing, Enum) or type(thing) in _ATOMS:
            self._words.append(repr(thing))
            return
        known = self._seen.get(id(thing))
        if known is not None:
            self._words.append(f"#{known}")
            return
        self._seen[id(thing)] = len(self._seen)
        self._held.append(thing)
        self._words.append(type(thing).__qualname__)
        self._write_parts(thing)

    def _write_parts(self, thing: Any) -> None:
        match thing:
            case dict():
                for key, value in cast("dict[Any, Any]", thing).items():
                    self.write(key)
                    self.write(value)
            case list() | tuple() | deque():
                self._write_all(cast("Iterable[Any]", thing))
            case set() | frozenset():
                self._words += sorted(map(repr, cast("Iterable[Any]", thing)))
            case MethodType():
                self._words.append(thing.__func__.__qualname__)
                self.write(thing.__self__)
            case FunctionType():
                self._write_function(thing)
            case partial():
                self._write_all((thing.func, thing.args, thing.keywords))
            case type() | BuiltinFunctionType():
                self._words.append(thing.__qualname__)
            case bytearray() | memoryview():
                self._words.append(repr(bytes(cast("bytes", thing))))
            case msgspec.Struct():
                self._write_all(getattr(thing, name) for name in thing.__struct_fields__)
            case _:
                self._write_all(_attributes(thing))
        self._words.append(".")

    def _write_function(self, function: Callable[..., Any]) -> None:
        self._words.append(function.__qualname__)
        for cell in getattr(function, "__closure__", None) or ():
            self.write(cell.cell_contents)

    def _write_all(self, things: Iterable[Any]) -> None:
        for each in things:
            self.write(each)


def _attributes(thing: object) -> Iterable[Any]:
    held: dict[str, Any] = dict(getattr(thing, "__dict__", {}))
    for kind in type(thing).__mro__:
        names = kind.__dict__.get("__slots__", ())
        for name in (names,) if isinstance(names, str) else names:
            if hasattr(thing, name):
                held[name] = getattr(thing, name)
    for name, value in held.items():
        yield name
        yield value
