"""Names that resources, pods and the log service agree on can be told apart and read back."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch_operator.api import names
from anabranch_operator.api.names import Declares

LABELS = st.from_regex(names.NAME_PATTERN, fullmatch=True).map(lambda text: text.strip()[:48])
KINDS = st.sampled_from(list(names.PLURALS))
UIDS = st.uuids().map(str)


@given(LABELS, KINDS, LABELS, UIDS)
def test_an_owner_names_the_resource_that_it_was_made_of(
    namespace: str, kind: str, name: str, uid: str
) -> None:
    owner = names.owner(namespace, kind, name, uid)
    assert names.declares(owner) == Declares(namespace, kind, name, uid)
    assert not names.is_ending(owner)


@given(LABELS, KINDS, LABELS, UIDS)
def test_the_end_of_a_log_is_part_of_its_owner_and_names_the_same_resource(
    namespace: str, kind: str, name: str, uid: str
) -> None:
    owner = names.owner(namespace, kind, name, uid)
    ending = names.ending(owner)
    assert ending != owner
    assert names.is_ending(ending)
    assert names.plain(ending) == names.plain(owner) == owner
    assert names.declares(ending) == names.declares(owner)


@given(st.lists(st.tuples(LABELS, KINDS, LABELS, UIDS), unique=True, max_size=8))
def test_no_two_resources_have_one_owner(resources: list[tuple[str, str, str, str]]) -> None:
    owners = [names.owner(*each) for each in resources]
    assert len({*owners, *map(names.ending, owners)}) == 2 * len(resources)


@pytest.mark.parametrize(
    "owner",
    ["", "k8s/", "k8s/a/Log/b", "k8s/a/Log/b/c/d", "a/Log/b/c", "terraform/a/Log/b/c", "/a/b/c/d"],
)
def test_an_owner_that_is_somebody_elses_names_no_resource(owner: str) -> None:
    assert names.declares(owner) is None


@given(st.text(st.characters(codec="utf-8"), max_size=30))
def test_no_text_is_taken_for_more_than_one_resource(owner: str) -> None:
    found = names.declares(owner)
    if found is not None:
        assert owner.startswith(names.OWNERS)
        assert names.plain(owner) == names.owner(*found)


@given(st.from_regex(names.NAME_PATTERN, fullmatch=True))
def test_a_services_name_is_a_dns_label(name: str) -> None:
    name = name.strip()[: names.NAME_CHARS_MAX].rstrip("-")
    for kind in names.PLURALS:
        if kind in {names.LOG, names.FORK}:
            service = names.service_name(kind, name)
            assert len(service) <= 63
            assert re.fullmatch(r"[a-z]([-a-z0-9]*[a-z0-9])?", service), service


def test_a_log_and_a_fork_of_one_name_have_services_of_their_own() -> None:
    assert names.service_name(names.LOG, "a") != names.service_name(names.FORK, "a")


def test_labels_and_annotations_have_the_prefix_that_is_refused_to_people() -> None:
    ours = (
        names.MADE_BY, names.POOL_LABEL, names.ROLE, names.FORK_LABEL, names.SEQUENCERS_LABEL,
        names.SHARDS_LABEL, names.MADE_FOR, names.SHARD_LABEL, names.TEMPLATE, names.PAUSED,
        names.FORGET, names.CASCADE,
    )  # fmt: skip
    assert len(set(ours)) == len(ours)
    assert all(each.startswith(f"{names.GROUP}/") for each in ours)
