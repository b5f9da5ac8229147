"""What is said below a field or an enum's member, which Python keeps nowhere but in the source."""

import ast
import inspect
from functools import cache

_OTHERS = frozenset({"builtins", "enum", "msgspec", "msgspec._core", "typing"})
"""Whose classes end the search: nothing is written below their fields."""


@cache
def proses(kind: type) -> dict[str, str]:
    """Each name with the prose below it, of a class and of those it is made from."""
    found: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        if base.__module__ in _OTHERS:
            continue
        body = ast.parse(inspect.getsource(base)).body[0]
        assert isinstance(body, ast.ClassDef)
        for field, below in zip(body.body, body.body[1:], strict=False):
            match field, below:
                case (
                    ast.AnnAssign(target=ast.Name(name)) | ast.Assign(targets=[ast.Name(name)]),
                    ast.Expr(ast.Constant(str(prose))),
                ):
                    found[name] = " ".join(prose.split())
                case _:
                    continue
    return found
