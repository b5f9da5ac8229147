"""What a right is about, by names and owners as they come."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.core.rights.claims import (
    FORKS,
    LOGS,
    OWNER,
    SEEING,
    Subject,
    Verb,
    declared,
    listed,
    subject_named,
)

words = st.text("abc/-@", max_size=6)


@given(words, words, words, words)
def test_an_owner_names_a_resource_just_if_it_has_the_form(
    namespace: str, kind: str, name: str, uid: str
) -> None:
    plain = all("/" not in each for each in (namespace, kind, name, uid))
    for shown, resource in (("Log", LOGS), ("Fork", FORKS), (kind, None)):
        found = declared(f"{OWNER}/{namespace}/{shown}/{name}/{uid}")
        if resource is not None and plain and namespace and name:
            assert found == Subject(resource, name, namespace)
        elif resource is None and plain:
            assert found is None
        elif plain:
            assert found is None, "half a name would be a right to more"


@pytest.mark.parametrize("owner", ["", "k8s", "k8s/n/Log/a", "gcp/n/Log/a/1", "k8s/n/Log/a/1/2"])
def test_what_is_no_owner_of_kubernetes_declares_nothing(owner: str) -> None:
    assert declared(owner) is None


@given(st.text("abc-@", max_size=6))
def test_a_list_by_owner_is_of_the_namespace_that_the_owner_begins_with(namespace: str) -> None:
    """A prefix that may go on within the namespace's name would list another's logs as well."""
    assert listed(f"{OWNER}/{namespace}") == Subject(LOGS)
    found = listed(f"{OWNER}/{namespace}/")
    assert found == Subject(LOGS, namespace=namespace)


@pytest.mark.parametrize(
    ("name", "resource"),
    [("orders", LOGS), ("orders--try", FORKS), ("orders@try", FORKS), ("a-b", LOGS)],
)
def test_a_name_that_nothing_has_tells_of_what_it_would_be(name: str, resource: str) -> None:
    assert subject_named(name) == Subject(resource, name)


def test_whoever_may_do_anything_with_a_log_may_see_it() -> None:
    never = {Verb.LIST, Verb.CREATE, Verb.UPDATE}
    assert set(SEEING) == set(Verb) - never
