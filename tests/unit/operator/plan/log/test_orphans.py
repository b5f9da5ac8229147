"""What becomes of logs whose resources are deleted."""

import pytest
from tests.unit.operator.declared import (
    NAMESPACE,
    ORDERS,
    WHAT_IF,
    conditions,
    current,
    declare,
    fork,
    in_service,
    log,
    office,
)

from anabranch.core.bolt.protocol.commands import Adopt, CreateLog, Description, Squash
from anabranch.core.errors.refused import Refused
from anabranch.core.types import LogId
from anabranch_operator.api import names
from anabranch_operator.api.fork import ForkPhase
from anabranch_operator.plan.engine import actions
from anabranch_operator.plan.engine.events import Gone
from anabranch_operator.plan.engine.objects import Ref
from anabranch_operator.plan.engine.world import Surroundings
from anabranch_sim.kubernetes.sandbox import Sandbox


@pytest.fixture
def tended() -> Sandbox:
    made = office()
    log(made)
    return made


def test_deletion_squashes(tended: Sandbox) -> None:
    fork(tended)
    tended.kube.delete(WHAT_IF)
    tended.settle()
    assert WHAT_IF not in tended.kube.documents
    found = in_service(tended)
    assert isinstance(found, Refused)
    assert found.code == "squashed"


def test_deletion_may_leave_the_fork_to_nobody(tended: Sandbox) -> None:
    fork(tended, deletionPolicy="Retain")
    tended.kube.delete(WHAT_IF)
    tended.settle()
    assert WHAT_IF not in tended.kube.documents
    found = in_service(tended)
    assert isinstance(found, Description)
    assert found.owner == ""


def test_what_was_asked_and_not_answered_is_squashed_however_late_it_is_made(
    tended: Sandbox,
) -> None:
    """An owner has one log, and then none any more."""
    tended.service_away = "it answers nobody"
    made = fork(tended)
    asked = next(each for each in tended.done if isinstance(each, actions.MakeFork))
    tended.kube.delete(WHAT_IF)
    tended.settle()
    assert WHAT_IF not in tended.kube.documents
    tended.service_away = None
    late = tended.service.ask(asked, tended.operator.epoch or 0)
    assert isinstance(late, Description)
    tended.wait(30)
    again = tended.service.ask(asked, tended.operator.epoch or 0)
    assert isinstance(again, Refused)
    assert again.code == "squashed"
    assert not any(each.owner.startswith(made.owner) for each in tended.service.owned())


def test_a_fork_that_was_to_stay_is_kept_though_nobody_saw_that_it_was_made(
    tended: Sandbox,
) -> None:
    """The next operator learns of the policy from the owner alone."""
    tended.service_away = "it answers nobody"
    fork(tended, deletionPolicy="Retain")
    asked = next(each for each in tended.done if isinstance(each, actions.MakeFork))
    assert isinstance(tended.service.ask(asked, tended.operator.epoch or 0), Description)
    tended.kube.delete(WHAT_IF)
    tended.restart()
    tended.service_away = None
    tended.wait(30)
    found = in_service(tended)
    assert isinstance(found, Description)
    assert found.owner == ""


def test_what_was_asked_under_another_policy_and_comes_late_makes_no_second_log(
    tended: Sandbox,
) -> None:
    made = fork(tended)
    asked = next(each for each in tended.done if isinstance(each, actions.MakeFork))
    tended.kube.edit(WHAT_IF, protected=True)
    tended.settle()
    assert made.status.log_id is not None
    tended.service.command(Squash(LogId(made.status.log_id), "somebody"))
    late = tended.service.ask(asked, tended.operator.epoch or 0)
    assert isinstance(late, Refused)
    assert late.code == "squashed"
    tended.wait(10)
    assert current(tended).status.phase is ForkPhase.SQUASHED


@pytest.mark.parametrize("policy", ["Squash", "Retain"])
def test_a_resource_that_is_deleted_while_nobody_acts_is_heeded_by_the_next_operator(
    tended: Sandbox, policy: str
) -> None:
    fork(tended, deletionPolicy=policy)
    tended.kube.delete(WHAT_IF)
    tended.restart()
    tended.wait(5)
    found = in_service(tended)
    assert (policy == "Squash") == isinstance(found, Refused)
    if isinstance(found, Description):
        assert found.owner == ""


def test_nothing_is_ended_unless_the_api_server_says_that_its_resource_is_gone(
    tended: Sandbox,
) -> None:
    made = fork(tended)
    # A watch, or a list, that is wrong: the API server has it still.
    tended.tell(Gone(WHAT_IF, made.object.uid))
    tended.wait(600)
    assert isinstance(in_service(tended), Description)
    assert not any(isinstance(each, actions.Squash) for each in tended.done)
    tended.kube.delete(WHAT_IF)
    tended.wait(600)
    assert isinstance(in_service(tended), Refused)


def test_what_went_before_there_was_a_lease_is_released_and_never_squashed(
    tended: Sandbox,
) -> None:
    """Kubernetes was set up anew beside a log service that is older: nobody deleted these forks."""
    fork(tended)
    tended.kube.delete(WHAT_IF)
    tended._epoch = 0
    tended.service.state.replica.guards.clear()
    tended.restart()
    tended.wait(5)
    found = in_service(tended)
    assert isinstance(found, Description)
    assert found.owner == ""


def test_forks_that_are_nobodys_because_their_resources_are_in_other_namespaces_are_let_alone() -> (
    None
):
    tended = office(Surroundings(namespace=NAMESPACE, release=NAMESPACE, watches=NAMESPACE))
    owner = names.ending(names.owner("elsewhere", names.LOG, "orders", "some-uid"))
    tended.service.command(CreateLog("theirs", owner=owner))
    tended.wait(10)
    found = in_service(tended, "theirs")
    assert isinstance(found, Description)
    assert found.owner == owner


def test_no_finalizer_is_put_on_anything_and_one_of_an_earlier_version_goes(
    tended: Sandbox,
) -> None:
    made = fork(tended)
    assert made.object.finalizers == ()
    for ref in (WHAT_IF, ORDERS):
        tended.kube.hold(ref, names.FINALIZER, held=True)
        tended.kube.hold(ref, "example.com/theirs", held=True)
    tended.settle()
    for ref in (WHAT_IF, ORDERS):
        assert tended.operator.world.objects[ref].finalizers == ("example.com/theirs",)
    assert current(tended).object.labels[names.MADE_BY] == "operator"


def test_what_an_earlier_version_left_to_be_deleted_is_squashed_and_goes(
    tended: Sandbox,
) -> None:
    """Its owner says nothing of its end."""
    made = fork(tended)
    id = made.status.log_id
    assert id is not None
    tended.restart()
    for owner in ("", made.owner):
        tended.service.command(Adopt(LogId(id), owner))
    tended.kube.hold(WHAT_IF, names.FINALIZER, held=True)
    tended.kube.delete(WHAT_IF)
    tended.wait(5)
    assert WHAT_IF not in tended.kube.documents
    assert isinstance(in_service(tended), Refused)


def test_a_policy_that_is_changed_counts_once_the_status_says_so(tended: Sandbox) -> None:
    fork(tended)
    for policy, protected, kept in (
        ("Retain", False, True),
        ("Squash", False, False),
        ("Squash", True, True),
    ):
        tended.kube.edit(WHAT_IF, deletionPolicy=policy, protected=protected)
        tended.settle()
        made = current(tended)
        assert made.status.observed_generation == made.object.generation
        assert conditions(made)["Ready"] == ("True", "Serving")
        found = in_service(tended)
        assert isinstance(found, Description)
        assert names.is_ending(found.owner) == (not kept)
        assert names.plain(found.owner) == made.owner


def test_a_protected_fork_that_is_deleted_all_the_same_is_kept(tended: Sandbox) -> None:
    fork(tended, protected=True)
    tended.kube.delete(WHAT_IF)
    tended.wait(5)
    found = in_service(tended)
    assert isinstance(found, Description)
    assert found.owner == ""


def test_what_others_inherit_from_is_squashed_after_them(tended: Sandbox) -> None:
    child = Ref(names.FORK, NAMESPACE, "deeper")
    fork(tended)
    fork(tended, child, parent={"kind": "Fork", "name": "what-if"})
    tended.kube.delete(WHAT_IF)
    tended.wait(30)
    assert WHAT_IF not in tended.kube.documents
    assert isinstance(in_service(tended), Description)
    assert current(tended, child).status.phase is ForkPhase.READY
    tended.kube.delete(child)
    tended.wait(5)
    assert isinstance(in_service(tended), Refused)
    assert isinstance(in_service(tended, "orders--deeper"), Refused)


def test_a_name_is_free_again_once_the_fork_of_its_old_resource_is_gone(
    tended: Sandbox,
) -> None:
    fork(tended)
    before = in_service(tended)
    tended.kube.delete(WHAT_IF)
    declare(tended, WHAT_IF, parent={"name": "orders"})
    tended.wait(10)
    after = in_service(tended)
    assert isinstance(before, Description)
    assert isinstance(after, Description)
    assert after.id != before.id
    assert conditions(current(tended))["Ready"] == ("True", "Serving")


def test_a_cascade_takes_all(tended: Sandbox) -> None:
    child = Ref(names.FORK, NAMESPACE, "deeper")
    fork(tended)
    fork(tended, child, parent={"kind": "Fork", "name": "what-if"})
    tended.kube.annotate(WHAT_IF, cascade="true")
    tended.settle()
    tended.kube.delete(WHAT_IF)
    tended.wait(10)
    assert WHAT_IF not in tended.kube.documents
    assert current(tended, child).status.phase is ForkPhase.SQUASHED


def test_while_the_service_is_away_a_resource_goes_and_its_fork_follows(
    tended: Sandbox,
) -> None:
    fork(tended)
    tended.service_away = "nobody answers"
    tended.wait(10)
    assert conditions(current(tended))["ServiceReachable"] == ("False", "ServiceAway")
    tended.kube.delete(WHAT_IF)
    tended.settle()
    assert WHAT_IF not in tended.kube.documents
    tended.service_away = None
    tended.wait(30)
    assert isinstance(in_service(tended), Refused)


def test_what_is_to_be_forgotten_is_kept(tended: Sandbox) -> None:
    fork(tended)
    tended.kube.annotate(WHAT_IF, forget="true")
    tended.settle()
    tended.kube.delete(WHAT_IF)
    tended.wait(5)
    found = in_service(tended)
    assert isinstance(found, Description)
    assert found.owner == ""


@pytest.mark.parametrize("policy", ["Retain", "Delete"])
def test_a_logs_policy_says_what_becomes_of_the_log(tended: Sandbox, policy: str) -> None:
    tended.kube.edit(ORDERS, deletionPolicy=policy)
    tended.settle()
    tended.kube.delete(ORDERS)
    tended.wait(5)
    found = in_service(tended, "orders")
    assert (policy == "Retain") == isinstance(found, Description)
    assert tended.service.owned() == ()


def test_a_pause_ends_with_its_resource(tended: Sandbox) -> None:
    fork(tended)
    tended.kube.annotate(WHAT_IF, paused="true")
    tended.kube.delete(WHAT_IF)
    tended.settle()
    assert isinstance(in_service(tended), Refused)


def test_what_became_of_forks_is_forgotten_with_their_resources(tended: Sandbox) -> None:
    for number in range(20):
        each = Ref(names.FORK, NAMESPACE, f"f{number}")
        fork(tended, each)
        tended.kube.delete(each)
        tended.settle()
    assert not tended.operator.world.service.fates


def test_what_cant_be_understood_any_more_goes_as_it_was_understood(tended: Sandbox) -> None:
    fork(tended)
    tended.kube.edit(WHAT_IF, ttl=7)
    tended.kube.delete(WHAT_IF)
    tended.wait(5)
    assert WHAT_IF not in tended.kube.documents
    assert isinstance(in_service(tended), Refused)
