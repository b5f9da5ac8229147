"""How much code there is to test what is shipped, and how often cores assert what they rely on.

`python -m tests.tidy.test_shape` prints both.
"""

import ast
import sys
from collections.abc import Iterable
from pathlib import Path

CORE = Path("services/anabranch/core")
PRODUCT = (Path("services/anabranch"), Path("operator/anabranch_operator"))
TESTS = Path("tests")
TESTS_TO_PRODUCT_MIN = 1.18
"""Of lines of code, simulators left out on both sides; 1.2 is the goal, and is reached."""
ASSERTS_A_FUNCTION_MIN = 0.30
"""In cores. A little below what it is, so that one change doesn't break it."""


def code_lines(text: str) -> int:
    """Lines that are neither blank nor comments nor docstrings."""
    prose = set[int]()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            prose.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    lines = enumerate(text.splitlines(), 1)
    return sum(
        bool(line.strip()) and not line.lstrip().startswith("#") and number not in prose
        for number, line in lines
    )


def asserts_and_functions(texts: Iterable[str]) -> tuple[int, int]:
    asserts = functions = 0
    for text in texts:
        for node in ast.walk(ast.parse(text)):
            asserts += isinstance(node, ast.Assert)
            functions += isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    return asserts, functions


def texts_below(root: Path, folders: Iterable[Path]) -> list[str]:
    return [
        path.read_text(encoding="utf-8")
        for folder in folders
        for path in sorted((root / folder).rglob("*.py"))
        if not path.match("*_pb2.py")
    ]


def share_of_tests(root: Path) -> float:
    tests = sum(map(code_lines, texts_below(root, [TESTS])))
    return tests / sum(map(code_lines, texts_below(root, PRODUCT)))


def asserts_a_function(root: Path) -> float:
    asserts, functions = asserts_and_functions(texts_below(root, [CORE]))
    return asserts / functions


def test_there_is_about_as_much_code_to_test_as_is_tested(root: Path) -> None:
    assert share_of_tests(root) >= TESTS_TO_PRODUCT_MIN


def test_cores_assert_what_they_rely_on(root: Path) -> None:
    assert asserts_a_function(root) >= ASSERTS_A_FUNCTION_MIN


def test_prose_is_no_code() -> None:
    text = '"""What it is."""\n\n# why\ndef f():\n    """More."""\n    return 1  # a comment\n'
    assert code_lines(text) == 2


def test_asserts_and_functions_are_counted() -> None:
    text = "def f(a):\n    assert a\n    def g():\n        assert a, 'again'\n"
    assert asserts_and_functions([text, "async def h(): ..."]) == (2, 3)


if __name__ == "__main__":
    here = Path(__file__).resolve().parents[2]
    sys.stdout.write(f"code of tests to code of the product: {share_of_tests(here):.2f}\n")
    sys.stdout.write(f"asserts a function in cores: {asserts_a_function(here):.2f}\n")
