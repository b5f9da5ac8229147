"""A suite from its file: YAML, or Python that builds the same structs."""

import re
import runpy
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from pathlib import Path as File
from typing import Any, cast, get_args

import msgspec

from anabranch.errors import BadRequest
from anabranch_spark.expectations.checks import problems
from anabranch_spark.expectations.suite import AnyExpectation, Suite, Value
from anabranch_spark.expectations.yaml_tree import BYTES_MAX, Path, Tree, tree

PYTHON_NAME = "SUITE"
"""What a Python file calls its suite."""
_PROBLEMS_MAX = 10
_SHOWN_MAX = 200
_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]")
_WHERE = re.compile(r" - at `(?:key in )?\$(.*)`$", re.DOTALL)
_FAILURES = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    ImportError,
    LookupError,
    NameError,
    OSError,
    RuntimeError,
    SyntaxError,
    SystemExit,  # with its code 0 the job would pass
    TypeError,
    ValueError,
)
_NO_LINES: dict[Path, int] = {}
_NAMES = {
    "int": "a whole number",
    "float": "a number",
    "str": "text",
    "bool": "true or false",
    "array": "a list",
    "object": "keys with values",
    "null": "nothing",
}
_SIZES = {"array": "entries", "str": "characters", "object": "keys"}
_MOSTLY = {"<=": "at most", ">=": "at least", "<": "less than", ">": "more than"}
_DURATION = "'^[0-9]{1,9}(ms|s|m|h|d)$'"
"""The pattern that lengths of time are held to, as msgspec shows it."""


def load(path: str) -> Suite:
    """The suite of a `.yaml`, `.yml` or `.py` file. A Python file is run, with this process's
    rights.
    """
    file = File(path)
    if file.suffix not in (".yaml", ".yml", ".py"):
        raise BadRequest(f"read {path}", "its name must end in .yaml, .yml or .py")
    try:
        with file.open("rb") as opened:
            text = opened.read(BYTES_MAX + 1)
    except OSError as error:
        raise BadRequest(f"read {path}", error.strerror or str(error)) from error
    return parsed(text, path) if file.suffix != ".py" else _from_python(file)


def parsed(text: bytes, source: str) -> Suite:
    """The suite that this YAML declares. BadRequest says the line, what is wrong, and what could
    be meant.
    """
    return _suite(tree(text, source), source)


def checked(suite: Suite, source: str) -> Suite:
    """A suite that a program built, held to the same rules: its constructors check no types."""
    return _suite(Tree(msgspec.to_builtins(suite), _NO_LINES), source)


def _from_python(file: File) -> Suite:
    try:
        namespace = runpy.run_path(str(file))
    except _FAILURES as error:
        reason = f"running it failed: {type(error).__name__}: {error}"
        raise BadRequest(f"read {file}", reason) from error
    suite = namespace.get(PYTHON_NAME)
    if not isinstance(suite, Suite):
        reason = f"it must set {PYTHON_NAME} to an anabranch_spark.expectations.Suite"
        raise BadRequest(f"read {file}", reason)
    return checked(suite, str(file))


def _suite(found: Tree, source: str) -> Suite:
    mistakes = _Mistakes(found, source)
    _check_keys(found.value, mistakes)
    mistakes.end()
    try:
        suite = msgspec.convert(found.value, Suite)
    except msgspec.ValidationError as error:
        said = str(error)
        at = _WHERE.search(said)
        mistakes.add(_path(at[1] if at else ""), _in_words(_WHERE.sub("", said)))
        mistakes.end()
        raise
    for path, reason in problems(suite):
        mistakes.add(path, reason)
    mistakes.end()
    return suite


class _Mistakes:
    """What is wrong with a file, until it is said all at once."""

    def __init__(self, found: Tree, source: str) -> None:
        self._tree, self._source = found, source
        self._found: list[str] = []

    def add(self, path: Path, reason: str) -> None:
        line = self._tree.line(path)
        where = _shown_path(path)
        if line is not None:
            where = f"line {line} ({where})" if where else f"line {line}"
        shown = reason if len(reason) <= _SHOWN_MAX else reason[:_SHOWN_MAX] + "..."
        self._found.append(f"{where}: {shown}" if where else shown)

    def end(self) -> None:
        if self._found:
            more = len(self._found) - _PROBLEMS_MAX
            rest = f"; and {more} more" if more > 0 else ""
            raise BadRequest(f"read {self._source}", "; ".join(self._found[:_PROBLEMS_MAX]) + rest)


def _check_keys(value: Any, mistakes: _Mistakes) -> None:
    """Say what a mistyped word could have been; types are left to msgspec."""
    if not isinstance(value, dict):
        mistakes.add((), f"it must have the keys {_listed(_keys(Suite))}")
        return
    root = cast("dict[str, Any]", value)
    _check_struct(root, Suite, (), mistakes)
    _check_tagged(root.get("value"), Value, ("value",), mistakes)
    declared = root.get("expectations")
    if not isinstance(declared, list):
        return
    for index, each in enumerate(cast("list[Any]", declared)):
        at: Path = ("expectations", index)
        _check_tagged(each, AnyExpectation, at, mistakes)
        if isinstance(each, dict):
            nested = cast("dict[str, Any]", each).get("value")
            _check_tagged(nested, Value, (*at, "value"), mistakes)


def _check_tagged(value: Any, union: Any, path: Path, mistakes: _Mistakes) -> None:
    if not isinstance(value, dict):
        return
    found = cast("dict[str, Any]", value)
    kinds = {each.__struct_config__.tag: each for each in get_args(union)}
    tag_field: str = next(iter(kinds.values())).__struct_config__.tag_field
    tag = found.get(tag_field)
    if tag is None:
        mistakes.add(path, f"`{tag_field}` is missing: one of {_listed(kinds)}")
    elif not isinstance(tag, str) or tag not in kinds:
        reason = f"{tag!r} isn't a kind: {_choice(str(tag), kinds)}"
        mistakes.add((*path, tag_field), reason)
    else:
        _check_struct(found, kinds[tag], path, mistakes)


def _check_struct(found: dict[str, Any], kind: Any, path: Path, mistakes: _Mistakes) -> None:
    config = kind.__struct_config__
    known = _keys(kind) | ({config.tag_field: None} if config.tag_field else {})
    for key in found:
        if key not in known:
            what = "of a suite" if config.tag is None else f"of `{config.tag}`"
            mistakes.add((*path, key), f"{key!r} is no key {what}: {_choice(key, known)}")
    for each in msgspec.structs.fields(kind):
        if each.required and each.encode_name not in found:
            mistakes.add(path, f"`{each.encode_name}` is missing")


def _keys(kind: Any) -> dict[str, None]:
    return dict.fromkeys(each.encode_name for each in msgspec.structs.fields(kind))


def _choice(word: str, known: Mapping[str, object]) -> str:
    near = get_close_matches(word, known, n=1)
    meant = f"did you mean {near[0]!r}? " if near else ""
    return f"{meant}It can be {_listed(known)}"


def _listed(words: Mapping[str, object]) -> str:
    return ", ".join(f"`{word}`" for word in words)


def _path(text: str) -> Path:
    """`.expectations[2].min` in its parts."""
    return tuple(int(index) if index else name for name, index in _STEP.findall(text))


def _shown_path(path: Path) -> str:
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return "".join(parts).removeprefix(".")[:_SHOWN_MAX]


def _in_words(said: str) -> str:
    """What msgspec says of a value, for people who write YAML. What isn't known stays as it is."""
    for pattern, sentence in _SENTENCES:
        found = pattern.fullmatch(said)
        if found is not None:
            return sentence(found)
    return said


def _types(found: re.Match[str]) -> str:
    wanted = [each for each in found[1].split(" | ") if each != "null"]
    return f"it must be {' or '.join(map(_named, wanted))}, and is {_named(found[2])}"


def _named(kind: str) -> str:
    return _NAMES.get(kind, kind)


def _size(found: re.Match[str]) -> str:
    return f"it must have {_MOSTLY[found[2]]} {found[3]} {_SIZES.get(found[1], found[1])}"


_SENTENCES: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], str]], ...] = (
    (re.compile(r"Expected `([^`]+)`, got `([^`]+)`"), _types),
    (re.compile(r"Expected `(\w+)` of length (<=|>=|<|>) (\S+)"), _size),
    (
        re.compile(r"Expected `\w+` (<=|>=|<|>) (\S+)"),
        lambda found: f"it must be {_MOSTLY[found[1]]} {found[2]}",
    ),
    (
        re.compile(rf"Expected `str` matching regex {re.escape(_DURATION)}"),
        lambda _: "it must be a length of time such as 90s, 15m, 6h or 2d",
    ),
    (re.compile(r"Invalid enum value (.+)"), lambda found: f"it can't be {found[1]}"),
)
