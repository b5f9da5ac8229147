"""How source looks here: every rule is a function from one file to its violations.

Each rule carries a text that breaks it, so that a rule which has gone blind fails as well.
"""

import ast
import gc
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

FUNCTION_LINES_MAX = 70
FILE_LINES_MAX = 500
LINE_CHARS_MAX = 100

SOURCE_ROOTS = ("services", "operator", "spark-jobs")
LOG = Path("services/anabranch")
TIMEKEEPERS = (LOG / "shell", LOG / "apps")
RECORD_CODEC = ("aiokafka.record", "aiokafka.errors")
CLOCK_AND_CHANCE = frozenset({"time", "random", "secrets", "uuid"})

# A process edge may swallow anything to say it and go on or leave: "path::function", three at most.
BROAD_EXCEPTS: frozenset[str] = frozenset(
    # A plan that fails is one object's trouble.
    ("operator/anabranch_operator/plan/engine/reconciler.py::_plan",)
)
BROAD_EXCEPTS_MAX = 3

MARKER = re.compile(r"\b(?:TO[D]O|FIX[M]E|X[X]X)\b")
UNIT = re.compile(r"_(?:max|min|bytes|ms|s)$")


@dataclass(frozen=True, slots=True)
class Source:
    path: Path
    text: str

    @property
    def tree(self) -> ast.Module:
        return _parsed(self.text)

    def within(self, *folders: str | Path) -> bool:
        return any(self.path.is_relative_to(folder) for folder in folders)


@cache
def _parsed(text: str) -> ast.Module:
    """Once for all rules."""
    return ast.parse(text)


Rule = Callable[[Source], Iterator[str]]


def long_functions(source: Source) -> Iterator[str]:
    for node in ast.walk(source.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > FUNCTION_LINES_MAX:
                yield f"{source.path}:{node.lineno} {node.name} has {lines} lines"


def long_files(source: Source) -> Iterator[str]:
    lines = len(source.text.splitlines())
    if lines > FILE_LINES_MAX:
        yield f"{source.path} has {lines} lines"


def long_lines(source: Source) -> Iterator[str]:
    for number, line in enumerate(source.text.splitlines(), 1):
        if len(line) > LINE_CHARS_MAX:
            yield f"{source.path}:{number} has {len(line)} characters"


def markers(source: Source) -> Iterator[str]:
    for number, line in enumerate(source.text.splitlines(), 1):
        if MARKER.search(line):
            yield f"{source.path}:{number} leaves work behind: {line.strip()}"


def broad_excepts(source: Source) -> Iterator[str]:
    """Every handler, or suppress(), that would catch any exception, named by its function."""
    if source.within(*SOURCE_ROOTS, "benchmarks"):
        yield from _broad_excepts_in(source.tree, f"{source.path}::")


def _broad_excepts_in(node: ast.AST, where: str) -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        inside = where
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            inside = f"{where.partition('::')[0]}::{child.name}"
        if _catches_anything(child):
            yield inside
        yield from _broad_excepts_in(child, inside)


def _catches_anything(node: ast.AST) -> bool:
    match node:
        case ast.ExceptHandler(type=None):
            return True
        case ast.ExceptHandler(type=ast.expr() as caught):
            return any(map(_is_root_exception, ast.walk(caught)))
        case ast.Call(func=ast.Name("suppress") | ast.Attribute(attr="suppress"), args=args):
            return any(map(_is_root_exception, args))
        case _:
            return False


def _is_root_exception(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id in {"Exception", "BaseException"}


def unlisted_broad_excepts(source: Source) -> Iterator[str]:
    for where in broad_excepts(source):
        if where not in BROAD_EXCEPTS:
            yield f"{where} catches anything: name what it expects"


def clocks_and_chance(source: Source) -> Iterator[str]:
    """Time and randomness come in through the ports, or a run couldn't be played again."""
    if not source.within(LOG) or source.within(*TIMEKEEPERS):
        return
    for node in ast.walk(source.tree):
        match node:
            case ast.Import(names=names):
                taken = {alias.name.partition(".")[0] for alias in names}
            case ast.ImportFrom(module=str(module), level=0):
                taken = {module.partition(".")[0]}
            case ast.Attribute(attr="now" | "utcnow" | "today", value=value):
                taken = {"time"} if _names_datetime(value) else set[str]()
            case ast.Attribute(attr="urandom"):
                taken = {"random"}
            case _:
                continue
        for module in sorted(taken & CLOCK_AND_CHANCE):
            yield f"{source.path}:{node.lineno} takes {module} by itself: use a port"


def _names_datetime(node: ast.expr) -> bool:
    name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
    return name in {"datetime", "date"}


def unexplained_settings(source: Source) -> Iterator[str]:
    """A limit or setting says in prose what it bounds, and ends in its unit if it is a limit."""
    if not source.within(*SOURCE_ROOTS):
        return
    for node in ast.walk(source.tree):
        if isinstance(node, ast.ClassDef) and node.name.endswith(("Limits", "Settings")):
            for field, after in zip(node.body, [*node.body[1:], None], strict=True):
                if not isinstance(field, ast.AnnAssign) or not isinstance(field.target, ast.Name):
                    continue
                where = f"{source.path}:{field.lineno} {node.name}.{field.target.id}"
                if not _is_prose(after):
                    yield f"{where} has no docstring"
                if node.name.endswith("Limits") and not UNIT.search(field.target.id):
                    yield f"{where} doesn't end in its unit"


def _is_prose(node: ast.stmt | None) -> bool:
    match node:
        case ast.Expr(value=ast.Constant(value=str(prose))):
            return bool(prose.strip())
        case _:
            return False


def core_reaches_past_the_codec(source: Source) -> Iterator[str]:
    """Of the Kafka client the core takes the compiled record codec, never the client."""
    if not source.within(LOG / "core"):
        return
    for node in ast.walk(source.tree):
        match node:
            case ast.Import(names=names):
                modules = [alias.name for alias in names]
            case ast.ImportFrom(module=str(module), names=names, level=0):
                modules = [f"{module}.{alias.name}" for alias in names]
            case _:
                continue
        for module in modules:
            if module.startswith("aiokafka") and not module.startswith(RECORD_CODEC):
                yield f"{source.path}:{node.lineno} imports {module}"


CORE = LOG / "core" / "planted.py"
CLIENT = LOG / "client" / "planted.py"

RULES: dict[Rule, tuple[Source, ...]] = {
    long_functions: (Source(CORE, "def f() -> None:\n" + "    f()\n" * FUNCTION_LINES_MAX),),
    long_files: (Source(CORE, "\n" * (FILE_LINES_MAX + 1)),),
    long_lines: (Source(CORE, "x" * (LINE_CHARS_MAX + 1)),),
    markers: (Source(CORE, "# \x54ODO: later"),),
    unlisted_broad_excepts: (
        Source(CORE, "try:\n    f()\nexcept:\n    f()"),
        Source(CORE, "try:\n    f()\nexcept (OSError, Exception):\n    f()"),
        Source(CORE, "with suppress(BaseException):\n    f()"),
    ),
    clocks_and_chance: (
        Source(CORE, "from time import monotonic"),
        Source(CORE, "import random"),
        Source(CORE, "os.urandom(8)"),
        Source(CLIENT, "dt.datetime.now()"),
    ),
    unexplained_settings: (
        Source(CORE, "class Limits:\n    names_max: int = 1"),
        Source(CORE, "class Limits:\n    names: int = 1\n    'How many.'"),
    ),
    core_reaches_past_the_codec: (Source(CORE, "from aiokafka import AIOKafkaProducer"),),
}


@pytest.fixture(scope="module")
def sources(root: Path, tracked: tuple[Path, ...]) -> Iterator[tuple[Source, ...]]:
    """All of ours. Their trees are kept for all rules, and hold no cycles to be looked for."""
    found = tuple(
        Source(path, (root / path).read_text()) for path in tracked if path.suffix == ".py"
    )
    assert any(source.within(LOG / "core") for source in found), "the core wasn't looked at"
    gc.disable()
    yield found
    _parsed.cache_clear()
    gc.enable()


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_no_file_breaks_the_rule(rule: Rule, sources: tuple[Source, ...]) -> None:
    assert [found for source in sources for found in rule(source)] == []


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_rule_sees_what_breaks_it(rule: Rule) -> None:
    for planted in RULES[rule]:
        assert list(rule(planted)) != [], planted


def test_few_process_edges_catch_anything_and_each_is_named(sources: tuple[Source, ...]) -> None:
    found = [where for source in sources for where in broad_excepts(source)]
    assert len(found) <= BROAD_EXCEPTS_MAX
    assert set(found) == BROAD_EXCEPTS, "take what no longer catches anything off the list"
