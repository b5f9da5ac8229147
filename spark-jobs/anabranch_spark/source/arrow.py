"""Arrow, whose package has no types."""

from importlib import import_module
from typing import Any, TypeAlias

Array: TypeAlias = Any
DataType: TypeAlias = Any
RecordBatch: TypeAlias = Any
Schema: TypeAlias = Any

pa: Any = import_module("pyarrow")
pc: Any = import_module("pyarrow.compute")

HEADER: DataType = pa.struct([("name", pa.string()), ("value", pa.binary())])
"""One header of a record."""
