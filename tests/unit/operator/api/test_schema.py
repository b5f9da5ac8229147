"""What the CRDs say of themselves, and that it is what the operator understands."""

from collections.abc import Iterator
from enum import StrEnum
from typing import Any

import msgspec
import pytest

from anabranch.core.belfast.ledger.rules import Rules
from anabranch.shell.runtime.prose import proses
from anabranch_operator.api import conditions, fork, log, names, pods, pool, shards, storage
from anabranch_operator.api.admission import policies
from anabranch_operator.api.generate.crd import KINDS, Kind, crd, whole
from anabranch_operator.api.generate.schema import filled
from anabranch_operator.api.rules import RULES, WHOLE
from anabranch_operator.api.sequencers import Ordering, rules_of

PROSE_CHARS_MAX, RULE_CHARS_MAX = 400, 120
UNBOUNDED = ("status", "jobTemplate")
"""Written by the operator; checked by the API server that runs the Job."""
MINIMAL: dict[str, dict[str, Any]] = {
    names.LOG: {},
    names.FORK: {"parent": {"name": "orders"}},
    names.POOL: {"image": "anabranch"},
    names.SEQUENCERS: {"image": "anabranch", "storage": {"volumeClaim": {"size": "1Gi"}}},
    names.SHARDS: {"image": "anabranch", "sequencers": "orders", "storage": {"ephemeral": True}},
}


def within(schema: dict[str, Any], path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every schema below this one, by the path to it."""
    for name, each in schema.get("properties", {}).items():
        yield f"{path}.{name}", each
        yield from within(each, f"{path}.{name}")
    for key in ("items", "additionalProperties"):
        if key in schema:
            yield f"{path}[]", schema[key]
            yield from within(schema[key], f"{path}[]")


def everything() -> Iterator[tuple[str, dict[str, Any]]]:
    for kind in KINDS:
        yield kind.name, whole(kind)
        yield from within(whole(kind), kind.name)


def completed(schema: dict[str, Any], value: dict[str, Any]) -> dict[str, Any]:
    """As the API server puts defaults in, from the top down."""
    found = {**filled(schema), **value}
    properties = schema["properties"]
    return {
        name: completed(properties[name], each) if "properties" in properties[name] else each
        for name, each in found.items()
    }


def test_every_field_is_described_in_a_few_sentences() -> None:
    bare = [path for path, each in everything() if "description" not in each]
    assert bare == [f"{kind.name}.metadata" for kind in KINDS]
    told = {path: each["description"] for path, each in everything() if "description" in each}
    assert {path: text for path, text in told.items() if len(text) > PROSE_CHARS_MAX} == {}
    assert {path: text for path, text in told.items() if not text.endswith((".", "?"))} == {}


def test_what_people_write_is_bounded() -> None:
    """Or the cost of the rules on it couldn't be known."""
    bounds = {"string": {"maxLength", "enum"}, "array": {"maxItems"}, "integer": {"minimum"}}
    loose = [
        path
        for path, each in everything()
        if ".spec." in path
        and not any(part in path for part in UNBOUNDED)
        and each.get("type") in bounds
        and bounds[each["type"]].isdisjoint(each)
    ]
    pods = (
        *(f"{names.LOG}.spec.{part}.template" for part in ("sequencers", "shards")),
        *(f"{kind}.spec" for kind in (names.POOL, names.SEQUENCERS, names.SHARDS)),
    )
    assert loose == [f"{each}.tolerations[].tolerationSeconds" for each in pods]


def test_nothing_in_a_status_has_a_default() -> None:
    """What the operator didn't write would look like a change to it, for ever."""
    found = [path for path, each in everything() if ".status" in path and "default" in each]
    assert found == []


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_no_default_is_hidden_in_the_code(kind: Kind) -> None:
    spec = whole(kind)["properties"]["spec"]
    written = completed(spec, MINIMAL[kind.name])
    understood = msgspec.convert(written, kind.spec)
    assert understood == msgspec.convert(MINIMAL[kind.name], kind.spec)
    said = msgspec.to_builtins(understood)
    assert {name for name, value in said.items() if value not in (None, [], {})} <= written.keys()


def test_a_default_that_is_seen_is_the_codes() -> None:
    spec = completed(whole(KINDS[1])["properties"]["spec"], MINIMAL[names.FORK])
    assert spec["promotion"] == {"policy": "Manual"}
    assert spec["parent"] == {"kind": "Log", "name": "orders"}
    assert (spec["state"], spec["approved"]) == ("Active", False)


def test_every_rule_says_once_what_to_do() -> None:
    for rules in (*RULES.values(), *WHOLE.values()):
        texts = [rule.message for rule in rules if "'--'" not in rule.message]
        assert [text for text in texts if len(text) > RULE_CHARS_MAX] == []
        assert [text for text in texts if ":" not in text and " is an amount" not in text] == []


def test_rules_and_policies_are_of_fields_that_are_there() -> None:
    for kind, rules in RULES.items():
        fields = {field.encode_name for field in msgspec.structs.fields(kind)}
        assert {rule.field for rule in rules if rule.field} <= fields, kind
    found = policies("gate", "operator")
    assert len({policy.name for policy in found}) == len(found)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_columns_show_what_is_there(kind: Kind) -> None:
    fields = {path.removeprefix(kind.name) for path, _ in within(whole(kind), kind.name)}
    for column in kind.columns:
        path = column.path.partition("[?")[0]
        assert path in fields | {".metadata.creationTimestamp"}, column
    shown = [column.name for column in kind.columns if not column.wide]
    assert shown[-1] == "Age"


def test_names_are_the_declared_ones() -> None:
    made = {kind.name: crd(kind) for kind in KINDS}
    assert {name: each["metadata"]["name"] for name, each in made.items()} == {
        "Log": "logs.anabranch.dev",
        "Fork": "forks.anabranch.dev",
        "BrokerPool": "brokerpools.anabranch.dev",
        "SequencerSet": "sequencersets.anabranch.dev",
        "ShardGroup": "shardgroups.anabranch.dev",
    }
    shorts = [each["spec"]["names"]["shortNames"] for each in made.values()]
    assert shorts == [["alog"], ["fk"], ["bp"], ["seq"], ["sg"]]


def test_what_a_log_agrees_on_is_said_once() -> None:
    assert rules_of(Ordering()) == Rules()
    changed = Ordering(t_ord_microseconds=5_000, window=7, free_will=True)
    assert rules_of(changed) == Rules(t_ord_us=5_000, window=7, free_will=True)
    assert len(Ordering.__struct_fields__) == len(Rules.__struct_fields__)


def test_every_value_of_an_enum_is_explained() -> None:
    found = [
        each
        for module in (conditions, fork, log, pods, pool, shards, storage)
        for each in vars(module).values()
        if isinstance(each, type)
        and issubclass(each, StrEnum)
        and each.__module__ == module.__name__
    ]
    assert len(found) > 10
    told = {each: [member.name for member in each] for each in found if each is not conditions.Type}
    assert {each: list(proses(each)) for each in told} == told


def test_conditions_and_reasons_are_declared_once_and_used() -> None:
    assert [each.type for each in conditions.TABLE] == list(conditions.Type)
    used = [reason for each in conditions.TABLE for reason in each.reasons]
    assert set(used) == set(conditions.Reason)
    for each in conditions.TABLE:
        assert len(set(each.reasons)) == len(each.reasons)
        assert set(each.kinds) <= names.PLURALS.keys()
    words = [*conditions.Reason, *conditions.Type]
    for word in words:
        msgspec.convert(word.value, type=field_type("reason"))


def field_type(name: str) -> Any:
    fields = msgspec.structs.fields(conditions.Condition)
    return next(field.type for field in fields if field.name == name)
