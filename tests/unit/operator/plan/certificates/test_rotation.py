"""Certificates on a virtual clock: whoever is told whom to trust accepts whatever is shown."""

from collections import Counter

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.operator.certificate_cluster import PLACES, SETTINGS, CertificateHarness, P

from anabranch.core.errors import BadRequest
from anabranch_operator.plan.certificates.facts import (
    CONFIG_MAP,
    NEW,
    SECOND,
    SECRET,
    WEBHOOK,
    Arrange,
    Certificate,
    CertificateSettings,
    Holdings,
    Issue,
    Leaf,
    Mode,
    Publish,
    Shown,
    TrustBundle,
    ends,
    places,
)
from anabranch_operator.plan.certificates.inspection import inspect
from anabranch_operator.plan.engine.objects import Ref

PEER = Ref(SECRET, "x", "demo-peer-tls")
BROKER = Ref(SECRET, "x", "demo-broker-tls")


def begun() -> CertificateHarness:
    harness = CertificateHarness()
    harness.operate()
    return harness


def test_a_service_begins_with_one_authority_and_all_its_leaves_at_once() -> None:
    harness = begun()
    assert (harness.authorities, harness.issued) == (1, 2)
    assert set(harness.told) == set(PLACES)
    assert harness.course().actions == ()


def test_what_is_as_it_should_be_is_left_alone_until_something_is_due() -> None:
    harness = begun()
    due = harness.shown[PEER.name].certificate
    assert due is not None
    while harness.course().wake_at < due.due_at:
        harness.go_on(harness.course().wake_at - harness.now)
        assert harness.operate() == 0


def test_a_leaf_is_renewed_at_two_thirds_of_its_life() -> None:
    harness = begun()
    first = harness.shown[PEER.name].certificate
    assert first is not None
    harness.go_on(first.due_at - 1 - harness.now)
    assert harness.operate() == 0
    harness.go_on(1)
    assert harness.operate() == 2
    second = harness.shown[PEER.name].certificate
    assert second is not None
    assert second.not_after == harness.now + SETTINGS.leaf_s * SECOND
    assert harness.authorities == 1


def test_an_operator_that_is_there_takes_each_authority_through_three_phases() -> None:
    harness = begun()
    began, phases = harness.now, list[str]()
    while harness.now < began + 5 * SETTINGS.authority_s * SECOND:
        for action in harness.course().actions:
            if isinstance(action, Arrange):
                phases.append("trust" if action.coming else "drop" if not action.leaving else "use")
        harness.operate()
        harness.go_on(max(harness.course().wake_at - harness.now, 1))
    assert phases[:6] == ["trust", "use", "drop"] * 2
    assert set(Counter(phases).values()) <= {len(phases) // 3, len(phases) // 3 + 1}
    assert 6 <= harness.authorities <= 10
    assert harness.issued < 120


def test_no_phase_begins_before_the_last_one_has_reached_everybody() -> None:
    harness = begun()
    first = harness.authority
    assert first is not None
    assert first.issuing is not None
    harness.live(first.issuing.due_at)
    harness.operate()
    assert harness.authority is not None
    assert harness.authority.coming is not None
    told_at = max(each.written_at for each in harness.told.values())
    assert harness.course().wake_at == told_at + P
    harness.go_on(P - 1)
    assert harness.operate() == 0
    harness.go_on(1)
    harness.operate()
    assert harness.authority.issuing is not None
    assert harness.authority.leaving == (first.issuing,)
    assert {each.certificate.issuer for each in harness.shown.values() if each.certificate} == {
        harness.authority.issuing.fingerprint
    }
    harness.go_on(P)
    harness.operate()
    assert harness.authority.leaving == ()
    assert all(len(each.bundle) == 1 for each in harness.told.values())


def test_a_phase_waits_for_a_place_that_cannot_be_told_but_not_until_it_is_too_late() -> None:
    harness = begun()
    assert harness.authority is not None
    first = harness.authority.issuing
    assert first is not None
    harness.live(first.due_at)
    deaf = Ref(CONFIG_MAP, "y", "demo-ca")
    harness.perform(harness.course().actions[-1])
    while harness.now < first.not_after - P:
        for action in harness.course().actions:
            if isinstance(action, Issue) or (isinstance(action, Publish) and action.ref != deaf):
                harness.perform(action)
        assert all(not isinstance(action, Arrange) for action in harness.course().actions)
        harness.go_on(min(P, first.not_after - P - harness.now))
    assert any(isinstance(action, Arrange) for action in harness.course().actions)


def test_a_leaf_whose_names_change_is_made_anew() -> None:
    harness = begun()
    peer, broker = SETTINGS.leaves
    named = Leaf(secret=peer.secret, names=(*peer.names, "other"))
    harness.settings = msgspec.structs.replace(SETTINGS, leaves=(named, broker))
    (issue,) = harness.course().actions
    assert isinstance(issue, Issue)
    assert issue.leaf == named


def test_a_deleted_or_damaged_leaf_is_made_anew_and_nothing_else() -> None:
    harness = begun()
    harness.lose(PEER)
    harness.damage(BROKER.name)
    issues = harness.course().actions
    assert [type(issue) for issue in issues] == [Issue, Issue]
    harness.operate()
    assert harness.authorities == 1


def test_an_authority_that_is_lost_stays_trusted_while_another_takes_its_place() -> None:
    harness = begun()
    assert harness.authority is not None
    lost = harness.authority.issuing
    harness.authority = None
    harness.operate()
    assert harness.authority is not None
    assert harness.authority.issuing is None
    assert harness.authority.leaving == (lost,)
    harness.go_on(P)
    harness.operate()
    assert harness.authority.issuing is not None
    harness.go_on(P)
    harness.operate()
    assert (harness.authority.leaving, harness.authorities) == ((), 2)


def test_an_authority_brought_back_from_an_old_copy_is_trusted_before_it_issues() -> None:
    harness = begun()
    old = harness.authority
    assert old is not None
    assert old.issuing is not None
    harness.authority = None
    for _ in range(3):
        harness.operate()
        harness.go_on(P)
    present = harness.authority
    assert present is not None
    assert present.issuing is not None
    harness.authority = old
    (arrange,) = harness.course().actions
    assert isinstance(arrange, Arrange)
    assert (arrange.issuing, arrange.coming) == (None, old.issuing.fingerprint)
    assert arrange.leaving == (present.issuing.fingerprint,)
    for _ in range(3):
        harness.operate()
        harness.go_on(P)
    assert harness.authority == old


def test_an_authority_that_has_ended_is_replaced_without_waiting() -> None:
    harness = begun()
    assert harness.authority is not None
    assert harness.authority.issuing is not None
    harness.now = harness.authority.issuing.not_after + SECOND
    fresh = CertificateHarness()
    fresh.now, fresh.authority = harness.now, harness.authority
    fresh.shown, fresh.told = harness.shown, harness.told
    fresh._known = harness._known
    fresh.operate()
    assert fresh.authority is not None
    assert fresh.authority.issuing not in {None, harness.authority.issuing}
    assert all(each.certificate for each in fresh.shown.values())


@pytest.mark.parametrize("what", ["authority", "leaf", "place"])
def test_what_is_not_the_operators_is_told_and_left_alone(what: str) -> None:
    harness = begun()
    assert harness.authority is not None
    match what:
        case "authority":
            harness.authority = msgspec.structs.replace(harness.authority, is_ours=False, flaw="?")
            harness.shown.clear()
        case "leaf":
            harness.shown[PEER.name] = Shown(PEER.name, None, "?", is_ours=False)
        case _:
            harness.told[PLACES[0]] = TrustBundle(PLACES[0], (), 0, is_ours=False)
    course = harness.course()
    assert course.actions == ()
    assert len(course.findings) == 1
    assert "isn't the operator's" in course.findings[0].says


def test_a_time_written_by_a_clock_that_was_ahead_holds_nothing_up() -> None:
    harness = begun()
    ahead = harness.now + 1_000 * P
    harness.told[PEER] = msgspec.structs.replace(harness.told[PEER], written_at=ahead)
    assert [type(action) for action in harness.course().actions] == [Publish]


def test_a_webhook_is_told_if_it_is_there_and_missed_if_not() -> None:
    wanted = msgspec.structs.replace(SETTINGS, webhook="demo-eviction")
    hook = Ref(WEBHOOK, "", "demo-eviction")
    harness = begun()
    harness.settings = wanted
    absent = harness.course()
    assert absent.actions == ()
    assert [finding.object for finding in absent.findings] == [f"{WEBHOOK} demo-eviction"]
    harness.told[hook] = TrustBundle(hook)
    (publish,) = harness.course().actions
    assert isinstance(publish, Publish)
    assert publish.ref == hook


Step = tuple[int, int, str]
BEFALLS = ("", "", "", "", "cm", "leaf", "flaw", "ca", "copy", "back")
STEPS = st.lists(
    st.tuples(st.integers(0, P), st.sampled_from((0, 1, 2, 3, 100)), st.sampled_from(BEFALLS)),
    min_size=150,
    max_size=300,
)


@given(STEPS)
def test_everybody_accepts_everybody_whatever_is_lost_and_whenever_the_operator_dies(
    steps: list[Step],
) -> None:
    """But for a leaf's Secret lost together with the authority's: then it can be made only by one
    whom nobody trusts by now.
    """
    harness, copy, calm_at = begun(), None, 0
    for passed, lives, befalls in steps:
        harness.go_on(passed)
        match befalls:
            case "cm":
                harness.lose(PLACES[0])
            case "leaf" if harness.authority is not None and harness.authority.issuing is not None:
                harness.lose(PEER)
            case "flaw":
                harness.damage(BROKER.name)
            case "copy":
                copy = harness.authority
            case "ca" | "back" if harness.now >= calm_at and len(harness.shown) == 2:
                harness.authority = None if befalls == "ca" else copy
                calm_at = harness.now + SETTINGS.leaf_s * SECOND
            case _:
                pass
        harness.operate(lives)
    for _ in range(4):
        harness.operate()
        harness.go_on(P)
    assert harness.course().actions == ()
    assert all(each.certificate for each in harness.shown.values())


# Certificates that others make.

PROVIDED = CertificateSettings(mode=Mode.PROVIDED, bundle="demo-ca", leaves=SETTINGS.leaves)
AUTHORITY = Certificate("aa", "", 0, 10 * P)
IN_X = places(PROVIDED, "x")


def provided(certificate: Certificate | None, flaw: str = "") -> Holdings:
    shown = tuple(Shown(leaf.secret, certificate, flaw, is_ours=False) for leaf in PROVIDED.leaves)
    told = tuple(
        TrustBundle(Ref(SECRET, "x", leaf.secret), (AUTHORITY,)) for leaf in PROVIDED.leaves
    )
    return Holdings(None, shown, told, 0, IN_X)


def test_clients_are_told_whom_provided_secrets_name_and_the_secrets_are_never_written() -> None:
    good = Certificate(
        "bb", "aa", 0, 9 * P, ("*.demo-metadata.x.svc", "*.x.svc", "*.demo-brokers.x.svc")
    )
    course = inspect(P, PROVIDED, provided(good))
    assert course.findings == ()
    assert course.actions == (Publish(ref=Ref(CONFIG_MAP, "x", "demo-ca"), bundle=("aa",)),)
    seen = provided(good)
    told = (*seen.told, TrustBundle(IN_X[0], (AUTHORITY,), P))
    assert inspect(P, PROVIDED, Holdings(None, seen.shown, told, 0, IN_X)).actions == ()


@pytest.mark.parametrize(
    ("certificate", "says"),
    [
        (Certificate("bb", "aa", 0, P, ("x",)), "has ended"),
        (Certificate("bb", "aa", 2 * P, 3 * P, ("x",)), "isn't valid yet"),
        (Certificate("bb", "", 0, 3 * P, ("x",)), "isn't issued by its ca.crt"),
        (Certificate("bb", "aa", 0, 3 * P, ("a.demo-metadata.x.svc",)), "without"),
        (None, "has no key"),
    ],
)
def test_a_flaw_of_what_is_provided_is_told_and_not_mended(
    certificate: Certificate | None, says: str
) -> None:
    course = inspect(P, PROVIDED, provided(certificate, "has no key"))
    assert [says in finding.says for finding in course.findings] == [True, True]
    assert all(isinstance(action, Publish) for action in course.actions)
    assert {action.ref.kind for action in course.actions if isinstance(action, Publish)} == {
        CONFIG_MAP
    }


def test_a_secret_that_nobody_has_provided_is_asked_for() -> None:
    course = inspect(P, PROVIDED, Holdings(places=IN_X))
    assert course.actions == ()
    assert all("provide it" in finding.says for finding in course.findings)


def test_settings_that_could_not_keep_the_promise_are_refused() -> None:
    for wrong in (
        {"leaf_s": 50},
        {"authority_s": 100},
        {"authority": ""},
        {"leaves": ()},
        {"propagation_s": 0},
    ):
        with pytest.raises(BadRequest):
            msgspec.structs.replace(SETTINGS, **wrong)


def test_what_is_in_use_is_told_with_its_end() -> None:
    harness = begun()
    assert [name for name, _ in ends(SETTINGS, harness.holdings)] == [
        "demo-ca",
        PEER.name,
        BROKER.name,
    ]
    assert NEW not in {one.fingerprint for one in harness.told[PEER].bundle}
