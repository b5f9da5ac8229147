"""The schema of a struct as the API server wants it: structural, every field described.

Defaults are written where people say what they want, so that they see them; never in a status,
which only the operator writes.
"""

import inspect
from typing import Any

from msgspec import NODEFAULT, Struct, to_builtins
from msgspec import inspect as types

from anabranch_operator.api.anabranch_names import proses
from anabranch_operator.api.rules import RULES

JsonSchema = dict[str, Any]
_INT32_MAX = (1 << 31) - 1


def schema(kind: type, *, defaults: bool) -> JsonSchema:
    """Of a spec or a status."""
    found = types.type_info(kind)
    assert isinstance(found, types.StructType)
    return {"description": summary(kind), **_struct(found, defaults=defaults)}


def summary(kind: type) -> str:
    return " ".join(inspect.cleandoc(kind.__doc__ or "").split())


def _struct(kind: types.StructType, *, defaults: bool) -> JsonSchema:
    told = proses(kind.cls)
    properties: dict[str, JsonSchema] = {}
    for field in kind.fields:
        found = {"description": told[field.name], **_schema(field.type, defaults=defaults)}
        properties[field.encode_name] = found | (_default(field, found) if defaults else {})
    required = [field.encode_name for field in kind.fields if field.required]
    rules = [rule.written() for rule in RULES.get(kind.cls, ())]
    return {
        "type": "object",
        **({"required": required} if required else {}),
        "properties": properties,
        **({"x-kubernetes-validations": rules} if rules else {}),
    }


def _default(field: types.Field, found: JsonSchema) -> JsonSchema:
    if field.default is NODEFAULT or field.default is None:
        return {}
    if isinstance(field.default, Struct):
        return {"default": filled(found)}
    return {"default": to_builtins(field.default)}


def filled(schema: JsonSchema) -> dict[str, Any]:
    """What an empty object becomes: all of it, for rules are tried on a default as it stands."""
    properties: dict[str, JsonSchema] = schema["properties"]
    return {name: each["default"] for name, each in properties.items() if "default" in each}


def _schema(kind: types.Type, *, defaults: bool) -> JsonSchema:
    match kind:
        case types.Metadata(type=inner):
            more: JsonSchema = getattr(kind, "extra_json_schema", None) or {}
            return {**_schema(inner, defaults=defaults), **more}
        case types.UnionType():
            return _schema(_present(kind), defaults=defaults)
        case types.StructType():
            return _struct(kind, defaults=defaults)
        case types.ListType(item_type=item, max_length=most):
            items = _item(item, defaults=defaults)
            return {"type": "array", **_bound("maxItems", most), "items": items}
        case types.DictType(value_type=types.AnyType()):
            return {"type": "object"}
        case types.DictType(value_type=value, max_length=most):
            values = _item(value, defaults=defaults)
            bounds = _bound("maxProperties", most)
            return {"type": "object", **bounds, "additionalProperties": values}
        case _:
            return _scalar(kind)


def _item(kind: types.Type, *, defaults: bool) -> JsonSchema:
    prose = (
        summary(kind.cls) if isinstance(kind, types.StructType) else "One entry of the list or map."
    )
    return {"description": prose, **_schema(kind, defaults=defaults)}


def _scalar(kind: types.Type) -> JsonSchema:
    match kind:
        case types.BoolType():
            return {"type": "boolean"}
        case types.IntType(ge=least, le=most):
            narrow = least is not None and most is not None and most <= _INT32_MAX
            bounds = _bound("minimum", least) | _bound("maximum", most)
            return {"type": "integer", "format": "int32" if narrow else "int64", **bounds}
        case types.StrType(min_length=least, max_length=most, pattern=pattern):
            bounds = _bound("minLength", least) | _bound("maxLength", most)
            return {"type": "string", **bounds, **_bound("pattern", pattern)}
        case types.EnumType(cls=members):
            return {"type": "string", "enum": [member.value for member in members]}
        case _:
            raise TypeError(f"{kind} has no place in a resource")


def _present(kind: types.UnionType) -> types.Type:
    """A field may be left out; nothing may be one thing or another."""
    (found,) = (each for each in kind.types if not isinstance(each, types.NoneType))
    return found


def _bound(name: str, value: float | str | None) -> JsonSchema:
    return {} if value is None else {name: value}
