"""docs/reference/resources.md, written from what the structs, rules and conditions say."""

import re
from collections.abc import Iterator
from enum import StrEnum
from typing import Any, cast

from msgspec import inspect as types

from anabranch_operator.api import names
from anabranch_operator.api.admission import policies
from anabranch_operator.api.anabranch_names import proses
from anabranch_operator.api.conditions import TABLE, Condition, Reason
from anabranch_operator.api.generate.crd import KINDS, Column, Kind, whole
from anabranch_operator.api.generate.schema import JsonSchema
from anabranch_operator.api.rules import RULES, WHOLE
from anabranch_operator.api.sequencers import SequencerSetSpec
from anabranch_operator.api.shards import ShardTemplate

_HEAD = f"""# Resources

Written by `python -m anabranch_operator.api` from `operator/anabranch_operator/api/`, as are the
CRDs in `crds/` and in the chart `anabranch-crds`. `kubectl explain fork.spec --recursive` tells the
same.

All are of group `{names.GROUP}`, version `{names.VERSION}`, and live in namespaces;
`kubectl get {names.CATEGORY}` lists those of every kind. A field that isn't known is dropped by the
API server; `kubectl apply` says so.
"""

_ANNOTATIONS = (
    (names.PAUSED, "Leave this resource alone until the annotation is taken away."),
    (
        names.FORGET,
        (
            "Let the log stay when the resource is deleted; let shards be deleted though seated, "
            "and a lazy front's sequencers though they take appends."
        ),
    ),
    (names.CASCADE, "When the resource is deleted, the forks of its log end with the log."),
)

_ANNOTATED = """
## Annotations

Each counts if it is `"true"`.

| annotation | |
|---|---|
"""

_LABELS = """
## Labels, field managers

The operator puts no finalizer and no annotation on any resource. It takes away the finalizer
`{finalizer}`, which its earlier versions put on Logs and Forks. What it makes bears `{made_by}`
and the labels below. It applies its own objects as `{manager}`, statuses as
`{status}`, the label of Forks as `{mark}`, so that nobody's
fields are taken by mistake.

| label | |
|---|---|
"""

_LABELLED = (
    (names.MADE_BY, "On a Fork too: `operator`, or `api` if it was adopted."),
    (names.POOL_LABEL, "The BrokerPool of a pod."),
    (names.SEQUENCERS_LABEL, "The SequencerSet of a pod."),
    (names.SHARDS_LABEL, "The ShardGroup of a pod."),
    (names.SHARD_LABEL, "The shard of a pod, as the log calls it."),
    (names.MADE_FOR, "The Log that a SequencerSet or a ShardGroup was made for."),
    (names.ROLE, "`broker`, `metadata`, `gateway`, `gate`, `sequencer` or `shard`."),
    (names.FORK_LABEL, "The Fork that something was made for."),
    (
        names.TEMPLATE,
        "A hash of what a pod was made from; of a part of a Log, the hash of its template.",
    ),
)

_CONDITIONS = """
## Conditions

Each has `status`, `reason`, `message`, `lastTransitionTime` and `observedGeneration`: it is about
the resource as it is now if that equals `metadata.generation`.

| condition | of | it means, if True | reasons |
|---|---|---|---|
"""

_REASONS = """
## Reasons

| reason | it means |
|---|---|
"""

_ADMISSION = """
## Admission policies

ValidatingAdmissionPolicies of the chart `anabranch`, with `admission.enabled` (the default). They
run in the API server and look at resources of the namespaces that the operator watches. Finalizers
are not looked at.

| policy | | if it can't be evaluated |
|---|---|---|
"""

_FIELDS = "\n| field | type | default | |\n|---|---|---|---|\n"
_COLUMNS = "\n| column | |\n|---|---|\n"


def page() -> str:
    return "".join(
        [
            _HEAD,
            *(part for kind in KINDS for part in _kind(kind)),
            _CONDITIONS,
            *_conditions(),
            _REASONS,
            *(_row(f"`{reason.value}`", proses(Reason)[reason.name]) for reason in Reason),
            _ANNOTATED,
            *(_row(f"`{name}`", prose) for name, prose in _ANNOTATIONS),
            _LABELS.format(
                finalizer=names.FINALIZER,
                made_by=f"{names.MANAGED_BY}: {names.FIELD_MANAGER}",
                manager=names.FIELD_MANAGER,
                status=names.STATUS_MANAGER,
                mark=names.MARK_MANAGER,
            ),
            *(_row(f"`{name}`", prose) for name, prose in _LABELLED),
            _ADMISSION,
            *_policies(),
        ]
    )


def _kind(kind: Kind) -> Iterator[str]:
    resource = whole(kind)["properties"]
    yield f"\n## {kind.name}\n\n{kind.summary} `{kind.plural}`, for short `{kind.short}`"
    yield ", with the subresource `scale`.\n" if kind.scaled else ".\n"
    yield f"\n### What is shown\n{_COLUMNS}"
    yield from map(_column, kind.columns)
    if kind.selectable:
        fields = " and ".join(f"`{path.removeprefix('.')}`" for path in kind.selectable)
        yield f"\n`--field-selector` finds by {fields} from Kubernetes 1.31 on.\n"
    yield f"\n### {kind.name}: spec\n{_FIELDS}"
    yield from _fields(kind.spec, resource["spec"], "")
    yield "\nRefused, with these words:\n\n"
    rules = (*WHOLE[kind.name], *(rule for each in _structs(kind.spec) for rule in RULES[each]))
    yield from dict.fromkeys(f"- {rule.message}\n" for rule in rules)
    yield f"\n### {kind.name}: status\n{_FIELDS}"
    yield from _fields(kind.status, resource["status"], "")


_OF_ONE_ENGINE = re.compile(r"Engine \w+:")
_ELSEWHERE = {SequencerSetSpec: names.SEQUENCERS, ShardTemplate: names.SHARDS}
"""Structs that are part of another kind's spec, and the kind that tells of them."""


def _structs(kind: type) -> Iterator[type]:
    """Those with rules, of a struct and what it is made of."""
    if kind in RULES:
        yield kind
    for field in _struct(kind).fields:
        inner = _inner(field.type)
        if isinstance(inner, types.StructType) and inner.cls not in _ELSEWHERE:
            yield from _structs(inner.cls)


def _struct(kind: type) -> types.StructType:
    found = types.type_info(kind)
    assert isinstance(found, types.StructType)
    return found


def _fields(kind: type, schema: JsonSchema, before: str, engine: str = "") -> Iterator[str]:
    """`engine`: which one all of these are for, as the object says that holds them."""
    for field in _struct(kind).fields:
        path, found = before + field.encode_name, schema["properties"][field.encode_name]
        inner = _inner(field.type)
        prose = proses(kind)[field.name]
        if engine:
            prose = f"{engine} {_lower(prose)}"
        if isinstance(inner, types.EnumType) and issubclass(inner.cls, StrEnum):
            meanings = proses(inner.cls)
            prose += "".join(
                f" `{member.value}`: {_lower(meanings[member.name])}" for member in inner.cls
            )
        default = f"`{_shown(found['default'])}`" if "default" in found else ""
        told = inner.cls if isinstance(inner, types.StructType) else None
        if told in _ELSEWHERE:
            prose += f" The fields are those of a {_ELSEWHERE[told]}'s spec, below."
        yield _row(f"`{path}`", _type(found), "needed" if field.required else default, prose)
        if isinstance(inner, types.StructType) and told not in (Condition, *_ELSEWHERE):
            listed = found["type"] == "array"
            below = found["items"] if listed else found
            of = _OF_ONE_ENGINE.match(prose)
            within = f"{path}[]." if listed else f"{path}."
            yield from _fields(inner.cls, below, within, of[0] if of else "")


def _inner(kind: types.Type) -> types.Type:
    match kind:
        case types.Metadata(type=inner):
            return _inner(inner)
        case types.UnionType():
            (inner,) = (each for each in kind.types if not isinstance(each, types.NoneType))
            return _inner(inner)
        case types.ListType(item_type=item):
            return _inner(item)
        case _:
            return kind


def _lower(prose: str) -> str:
    return prose[0].lower() + prose[1:]


def _type(schema: JsonSchema) -> str:
    match schema["type"]:
        case "array":
            return f"list of {_type(schema['items'])}"
        case "object" if "additionalProperties" in schema:
            return "texts by name"
        case "string" if schema.get("format") == "date-time":
            return "time"
        case "integer":
            return f"integer{_range(schema.get('minimum'), schema.get('maximum'))}"
        case "string" if "maxLength" in schema:
            return f"string, {schema['maxLength']:,} characters at most"
        case plain:
            return str(plain)


def _range(least: int | None, most: int | None) -> str:
    match least, most:
        case None, None:
            return ""
        case _, None:
            return f" from {least:,}"
        case _:
            return f", {least:,} to {most:,}"


def _shown(default: Any) -> str:
    match default:
        case bool():
            return str(default).lower()
        case dict():
            given = cast("dict[str, Any]", default)
            return ", ".join(f"{name}: {_shown(each)}" for name, each in given.items()) or "{}"
        case _:
            return str(default)


def _column(column: Column) -> str:
    return _row(column.name.upper(), column.prose + (" With `-o wide`." if column.wide else ""))


def _conditions() -> Iterator[str]:
    for each in TABLE:
        reasons = ", ".join(f"`{reason.value}`" for reason in each.reasons)
        yield _row(f"`{each.type.value}`", ", ".join(each.kinds), each.meaning, reasons)


def _policies() -> Iterator[str]:
    for each in policies("RELEASE-gate", "the operator"):
        verdict = {"Ignore": "it lets pass", "Fail": "it refuses"}[each.failure]
        yield _row(f"`{each.name}`", each.summary, verdict)


def _row(*cells: str) -> str:
    return f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |\n"
