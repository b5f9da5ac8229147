"""Kubernetes' amounts, such as `500m` and `10Gi`, as numbers."""

import re
from decimal import Decimal

_SHAPE = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)([numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]{1,2})?")
_BINARY = {unit: 1024**power for power, unit in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"), 1)}
_DECIMAL = {unit: Decimal(1000) ** power for power, unit in enumerate("num kMGTPE", -3)}


def whole(text: str) -> int | None:
    """Rounded down; None if it is no amount."""
    match = _SHAPE.fullmatch(text)
    if match is None:
        return None
    number, unit = Decimal(match[1]), match[2] or " "
    if unit in _BINARY:
        return int(number * _BINARY[unit])
    if unit in _DECIMAL:
        return int(number * _DECIMAL[unit])
    return int(number.scaleb(int(unit[1:])))
