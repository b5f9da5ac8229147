"""YAML as plain values, bounded, with the line of each: for files that people write.

The form is YAML 1.2's core: `no`, `on` and `12:30` are text. Tags, aliases, repeated keys and
several documents are refused, so no file is larger in memory than it looks.
"""

import re
from typing import Any, cast

import yaml
from msgspec import Struct

from anabranch.errors import BadRequest

BYTES_MAX = 128 * 1024
DEPTH_MAX = 12

Path = tuple[str | int, ...]

_INTEGER = re.compile(r"[-+]?[0-9]{1,38}")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]{1,3})?")
_WORDS: dict[str, bool | None] = {"": None, "~": None, "null": None, "true": True, "false": False}


class Tree(Struct, frozen=True):
    """A document, and where each part of it stands."""

    value: Any
    lines: dict[Path, int]
    """From 1, by the path of each value; the line of a key is that of its value's path."""

    def line(self, path: Path) -> int | None:
        """Where this is, or the nearest thing around it."""
        for length in range(len(path), -1, -1):
            if path[:length] in self.lines:
                return self.lines[path[:length]]
        return None


def tree(text: bytes, source: str) -> Tree:
    """The only document of a file. BadRequest names the line that stands in the way."""
    if len(text) > BYTES_MAX:
        reason = f"it has {len(text):,} bytes, and may have {BYTES_MAX:,}"
        raise BadRequest(f"read {source}", reason)
    try:
        decoded = text.decode()
    except UnicodeDecodeError as error:
        line = text[: error.start].count(b"\n") + 1
        raise BadRequest(f"read {source}", f"line {line} isn't UTF-8") from None
    try:
        _check_events(decoded, source)
        node = yaml.compose(decoded, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = "" if mark is None else f"line {mark.line + 1}: "
        raise BadRequest(f"read {source}", f"{where}{error.problem or error.context}") from None
    except yaml.YAMLError as error:
        raise BadRequest(f"read {source}", " ".join(str(error).split())) from None
    if node is None:
        raise BadRequest(f"read {source}", "it is empty")
    lines: dict[Path, int] = {}
    return Tree(_value(node, (), lines, source), lines)


def _check_events(text: str, source: str) -> None:
    depth = 0
    documents = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        at = event.start_mark.line + 1 if event.start_mark is not None else 0
        if isinstance(event, yaml.DocumentStartEvent):
            documents += 1
            if documents > 1:
                raise BadRequest(f"read {source}", f"line {at}: only one document is allowed")
        elif isinstance(event, yaml.AliasEvent):
            raise BadRequest(f"read {source}", f"line {at}: aliases aren't allowed")
        elif isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > DEPTH_MAX:
                reason = f"line {at}: it is nested deeper than {DEPTH_MAX} levels"
                raise BadRequest(f"read {source}", reason)
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if getattr(event, "anchor", None) is not None:
            raise BadRequest(f"read {source}", f"line {at}: anchors aren't allowed")
        if getattr(event, "tag", None) is not None:
            raise BadRequest(f"read {source}", f"line {at}: tags aren't allowed")


def _value(node: yaml.Node, path: Path, lines: dict[Path, int], source: str) -> Any:
    lines.setdefault(path, _line(node))
    if isinstance(node, yaml.MappingNode):
        return _mapping(node, path, lines, source)
    if isinstance(node, yaml.SequenceNode):
        items = cast("list[yaml.Node]", node.value)
        return [_value(each, (*path, index), lines, source) for index, each in enumerate(items)]
    assert isinstance(node, yaml.ScalarNode)
    return node.value if node.style is not None else _plain(cast("str", node.value))


def _mapping(
    node: yaml.MappingNode, path: Path, lines: dict[Path, int], source: str
) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in cast("list[tuple[yaml.Node, yaml.Node]]", node.value):
        if not isinstance(key, yaml.ScalarNode):
            raise BadRequest(f"read {source}", f"line {_line(key)}: a key must be a word")
        word = cast("str", key.value)
        if word in found:
            reason = f"line {_line(key)}: {word!r} is there already, at line {lines[*path, word]}"
            raise BadRequest(f"read {source}", reason)
        lines[*path, word] = _line(key)
        found[word] = _value(value, (*path, word), lines, source)
    return found


def _line(node: yaml.Node) -> int:
    return node.start_mark.line + 1


def _plain(text: str) -> Any:
    """What an unquoted word stands for."""
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    return text
