"""Certificates on a virtual clock: whoever is told whom to trust accepts whatever is shown."""

from collections import Counter

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.operator.offices import PLACES, SETTINGS, Office, P

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
    Told,
    ends,
    places,
)
from anabranch_operator.plan.certificates.inspection import inspect
from anabranch_operator.plan.engine.objects import Ref

PEER = Ref(SECRET, "x", "demo-peer-tls")
BROKER = Ref(SECRET, "x", "demo-broker-tls")


def begun() -> Office:
    office = Office()
    office.operate()
    return office


def test_a_service_begins_with_one_authority_and_all_its_leaves_at_once() -> None:
    office = begun()
    assert (office.authorities, office.issued) == (1, 2)
    assert set(office.told) == set(PLACES)
    assert office.course().actions == ()


def test_what_is_as_it_should_be_is_left_alone_until_something_is_due() -> None:
    office = begun()
    due = office.shown[PEER.name].certificate
    assert due is not None
    while office.course().wake_at < due.due_at:
        office.go_on(office.course().wake_at - office.now)
        assert office.operate() == 0


def test_a_leaf_is_renewed_at_two_thirds_of_its_life() -> None:
    office = begun()
    first = office.shown[PEER.name].certificate
    assert first is not None
    office.go_on(first.due_at - 1 - office.now)
    assert office.operate() == 0
    office.go_on(1)
    assert office.operate() == 2
    second = office.shown[PEER.name].certificate
    assert second is not None
    assert second.not_after == office.now + SETTINGS.leaf_s * SECOND
    assert office.authorities == 1


def test_an_operator_that_is_there_takes_each_authority_through_three_phases() -> None:
    office = begun()
    began, phases = office.now, list[str]()
    while office.now < began + 5 * SETTINGS.authority_s * SECOND:
        for action in office.course().actions:
            if isinstance(action, Arrange):
                phases.append("trust" if action.coming else "drop" if not action.leaving else "use")
        office.operate()
        office.go_on(max(office.course().wake_at - office.now, 1))
    assert phases[:6] == ["trust", "use", "drop"] * 2
    assert set(Counter(phases).values()) <= {len(phases) // 3, len(phases) // 3 + 1}
    assert 6 <= office.authorities <= 10
    assert office.issued < 120


def test_no_phase_begins_before_the_last_one_has_reached_everybody() -> None:
    office = begun()
    first = office.authority
    assert first is not None
    assert first.issuing is not None
    office.live(first.issuing.due_at)
    office.operate()
    assert office.authority is not None
    assert office.authority.coming is not None
    told_at = max(each.written_at for each in office.told.values())
    assert office.course().wake_at == told_at + P
    office.go_on(P - 1)
    assert office.operate() == 0
    office.go_on(1)
    office.operate()
    assert office.authority.issuing is not None
    assert office.authority.leaving == (first.issuing,)
    assert {each.certificate.issuer for each in office.shown.values() if each.certificate} == {
        office.authority.issuing.fingerprint
    }
    office.go_on(P)
    office.operate()
    assert office.authority.leaving == ()
    assert all(len(each.bundle) == 1 for each in office.told.values())


def test_a_phase_waits_for_a_place_that_cannot_be_told_but_not_until_it_is_too_late() -> None:
    office = begun()
    assert office.authority is not None
    first = office.authority.issuing
    assert first is not None
    office.live(first.due_at)
    deaf = Ref(CONFIG_MAP, "y", "demo-ca")
    office.perform(office.course().actions[-1])
    while office.now < first.not_after - P:
        for action in office.course().actions:
            if isinstance(action, Issue) or (isinstance(action, Publish) and action.ref != deaf):
                office.perform(action)
        assert all(not isinstance(action, Arrange) for action in office.course().actions)
        office.go_on(min(P, first.not_after - P - office.now))
    assert any(isinstance(action, Arrange) for action in office.course().actions)


def test_a_leaf_whose_names_change_is_made_anew() -> None:
    office = begun()
    peer, broker = SETTINGS.leaves
    named = Leaf(secret=peer.secret, names=(*peer.names, "other"))
    office.settings = msgspec.structs.replace(SETTINGS, leaves=(named, broker))
    (issue,) = office.course().actions
    assert isinstance(issue, Issue)
    assert issue.leaf == named


def test_a_deleted_or_damaged_leaf_is_made_anew_and_nothing_else() -> None:
    office = begun()
    office.lose(PEER)
    office.damage(BROKER.name)
    issues = office.course().actions
    assert [type(issue) for issue in issues] == [Issue, Issue]
    office.operate()
    assert office.authorities == 1


def test_an_authority_that_is_lost_stays_trusted_while_another_takes_its_place() -> None:
    office = begun()
    assert office.authority is not None
    lost = office.authority.issuing
    office.authority = None
    office.operate()
    assert office.authority is not None
    assert office.authority.issuing is None
    assert office.authority.leaving == (lost,)
    office.go_on(P)
    office.operate()
    assert office.authority.issuing is not None
    office.go_on(P)
    office.operate()
    assert (office.authority.leaving, office.authorities) == ((), 2)


def test_an_authority_brought_back_from_an_old_copy_is_trusted_before_it_issues() -> None:
    office = begun()
    old = office.authority
    assert old is not None
    assert old.issuing is not None
    office.authority = None
    for _ in range(3):
        office.operate()
        office.go_on(P)
    present = office.authority
    assert present is not None
    assert present.issuing is not None
    office.authority = old
    (arrange,) = office.course().actions
    assert isinstance(arrange, Arrange)
    assert (arrange.issuing, arrange.coming) == (None, old.issuing.fingerprint)
    assert arrange.leaving == (present.issuing.fingerprint,)
    for _ in range(3):
        office.operate()
        office.go_on(P)
    assert office.authority == old


def test_an_authority_that_has_ended_is_replaced_without_waiting() -> None:
    office = begun()
    assert office.authority is not None
    assert office.authority.issuing is not None
    office.now = office.authority.issuing.not_after + SECOND
    fresh = Office()
    fresh.now, fresh.authority = office.now, office.authority
    fresh.shown, fresh.told = office.shown, office.told
    fresh._known = office._known
    fresh.operate()
    assert fresh.authority is not None
    assert fresh.authority.issuing not in {None, office.authority.issuing}
    assert all(each.certificate for each in fresh.shown.values())


@pytest.mark.parametrize("what", ["authority", "leaf", "place"])
def test_what_is_not_the_operators_is_told_and_left_alone(what: str) -> None:
    office = begun()
    assert office.authority is not None
    match what:
        case "authority":
            office.authority = msgspec.structs.replace(office.authority, is_ours=False, flaw="?")
            office.shown.clear()
        case "leaf":
            office.shown[PEER.name] = Shown(PEER.name, None, "?", is_ours=False)
        case _:
            office.told[PLACES[0]] = Told(PLACES[0], (), 0, is_ours=False)
    course = office.course()
    assert course.actions == ()
    assert len(course.findings) == 1
    assert "isn't the operator's" in course.findings[0].says


def test_a_time_written_by_a_clock_that_was_ahead_holds_nothing_up() -> None:
    office = begun()
    ahead = office.now + 1_000 * P
    office.told[PEER] = msgspec.structs.replace(office.told[PEER], written_at=ahead)
    assert [type(action) for action in office.course().actions] == [Publish]


def test_a_webhook_is_told_if_it_is_there_and_missed_if_not() -> None:
    wanted = msgspec.structs.replace(SETTINGS, webhook="demo-eviction")
    hook = Ref(WEBHOOK, "", "demo-eviction")
    office = begun()
    office.settings = wanted
    absent = office.course()
    assert absent.actions == ()
    assert [finding.object for finding in absent.findings] == [f"{WEBHOOK} demo-eviction"]
    office.told[hook] = Told(hook)
    (publish,) = office.course().actions
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
    office, copy, calm_at = begun(), None, 0
    for passed, lives, befalls in steps:
        office.go_on(passed)
        match befalls:
            case "cm":
                office.lose(PLACES[0])
            case "leaf" if office.authority is not None and office.authority.issuing is not None:
                office.lose(PEER)
            case "flaw":
                office.damage(BROKER.name)
            case "copy":
                copy = office.authority
            case "ca" | "back" if office.now >= calm_at and len(office.shown) == 2:
                office.authority = None if befalls == "ca" else copy
                calm_at = office.now + SETTINGS.leaf_s * SECOND
            case _:
                pass
        office.operate(lives)
    for _ in range(4):
        office.operate()
        office.go_on(P)
    assert office.course().actions == ()
    assert all(each.certificate for each in office.shown.values())


# Certificates that others make.

PROVIDED = CertificateSettings(mode=Mode.PROVIDED, bundle="demo-ca", leaves=SETTINGS.leaves)
AUTHORITY = Certificate("aa", "", 0, 10 * P)
IN_X = places(PROVIDED, "x")


def provided(certificate: Certificate | None, flaw: str = "") -> Holdings:
    shown = tuple(Shown(leaf.secret, certificate, flaw, is_ours=False) for leaf in PROVIDED.leaves)
    told = tuple(Told(Ref(SECRET, "x", leaf.secret), (AUTHORITY,)) for leaf in PROVIDED.leaves)
    return Holdings(None, shown, told, 0, IN_X)


def test_clients_are_told_whom_provided_secrets_name_and_the_secrets_are_never_written() -> None:
    good = Certificate(
        "bb", "aa", 0, 9 * P, ("*.demo-metadata.x.svc", "*.x.svc", "*.demo-brokers.x.svc")
    )
    course = inspect(P, PROVIDED, provided(good))
    assert course.findings == ()
    assert course.actions == (Publish(ref=Ref(CONFIG_MAP, "x", "demo-ca"), bundle=("aa",)),)
    seen = provided(good)
    told = (*seen.told, Told(IN_X[0], (AUTHORITY,), P))
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
    office = begun()
    assert [name for name, _ in ends(SETTINGS, office.holdings)] == [
        "demo-ca",
        PEER.name,
        BROKER.name,
    ]
    assert NEW not in {one.fingerprint for one in office.told[PEER].bundle}
