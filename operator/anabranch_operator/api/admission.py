"""What can't be told by looking at an object alone: ValidatingAdmissionPolicies.

They run in the API server, so that nothing of ours must be up. A deletion passes when one of them
can't be evaluated; a promotion or a gate doesn't.
"""

from dataclasses import dataclass
from typing import Any

from anabranch_operator.api import names
from anabranch_operator.api.fork import FINISHED

_API = "admissionregistration.k8s.io/v1"


@dataclass(frozen=True, slots=True)
class Policy:
    """What is looked at only if all conditions hold, and then must be true."""

    name: str
    kinds: tuple[str, ...]
    summary: str
    operations: tuple[str, ...]
    conditions: tuple[tuple[str, str], ...]
    rule: str
    message: str
    """In CEL."""
    failure: str
    variables: tuple[tuple[str, str], ...] = ()
    """What rule and message call `variables.NAME`, in CEL."""

    def written(self, prefix: str, namespaces: dict[str, Any]) -> tuple[dict[str, Any], ...]:
        """The policy and its binding to namespaces, by a selector of their labels."""
        named = {"name": f"{prefix}-{self.name}"}
        match = {
            "apiGroups": [names.GROUP],
            "apiVersions": ["*"],
            "operations": list(self.operations),
            "resources": [names.PLURALS[kind] for kind in self.kinds],
        }
        policy = {
            "failurePolicy": self.failure,
            "matchConstraints": {"resourceRules": [match]},
            "matchConditions": _named(self.conditions),
            **({"variables": _named(self.variables)} if self.variables else {}),
            "validations": [
                {
                    "expression": self.rule,
                    "messageExpression": self.message,
                    "reason": "Forbidden",
                }
            ],
        }
        binding = {
            "policyName": named["name"],
            "validationActions": ["Deny"],
            "matchResources": {"namespaceSelector": namespaces},
        }
        return (
            {
                "apiVersion": _API,
                "kind": "ValidatingAdmissionPolicy",
                "metadata": dict(named),
                "spec": policy,
            },
            {
                "apiVersion": _API,
                "kind": "ValidatingAdmissionPolicyBinding",
                "metadata": dict(named),
                "spec": binding,
            },
        )


def _named(expressions: tuple[tuple[str, str], ...]) -> list[dict[str, str]]:
    return [{"name": name, "expression": expression} for name, expression in expressions]


_FINISHED = ", ".join(f"'{phase.value}'" for phase in FINISHED)
_IS_FINISHED = (
    "has(oldObject.status) && has(oldObject.status.phase) && "
    f"oldObject.status.phase in [{_FINISHED}]"
)
_NAMESPACE_GOES = "has(namespaceObject.metadata.deletionTimestamp)"

PROTECTED = Policy(
    name="protected-forks",
    kinds=(names.FORK,),
    summary=(
        "A Fork with `protected` set isn't deleted, unless the fork itself is no more or its "
        "namespace is being deleted."
    ),
    operations=("DELETE",),
    conditions=(("protected", "oldObject.spec.protected == true"),),
    rule=f"{_NAMESPACE_GOES} || ({_IS_FINISHED})",
    message=(
        "'this fork is protected. To delete it even so: kubectl -n ' + request.namespace + "
        "' patch fork ' + oldObject.metadata.name + "
        """' --type=merge -p \\'{"spec":{"protected":false}}\\', and delete it again'"""
    ),
    failure="Ignore",
)

_NEW = "oldObject == null || "
_PROMOTED = (
    "object.spec.promotion.policy == 'Manual' && object.spec.state == 'Promoted' && "
    f"({_NEW}oldObject.spec.state != 'Promoted' || oldObject.spec.promotion.policy != 'Manual')"
)
_APPROVED = f"object.spec.approved && ({_NEW}!oldObject.spec.approved)"
_DELEGATED = (
    "(object.spec.promotion.policy == 'Gate' || object.spec.approved) && "
    f"({_NEW}oldObject.spec.promotion != object.spec.promotion)"
)
"""Who approved did so for the gate that was there then."""

PROMOTION = Policy(
    name="promotions",
    kinds=(names.FORK,),
    summary=(
        "To promote a Fork of policy Manual, to approve it, or to say which Job's success promotes "
        "it takes the verb `promote` on it, and so does changing the gate of one that is approved "
        "already. To wish for a promotion that a Job or somebody else "
        "decides on takes no more than to edit it."
    ),
    operations=("CREATE", "UPDATE"),
    conditions=(("decides", f"({_PROMOTED}) || ({_APPROVED}) || ({_DELEGATED})"),),
    rule=(
        f"authorizer.group('{names.GROUP}').resource('{names.PLURALS[names.FORK]}')"
        ".namespace(request.namespace).name(request.name).check('promote').allowed()"
    ),
    message=(
        "request.userInfo.username + ' may not decide on promotions: it takes the verb promote on "
        f"{names.PLURALS[names.FORK]}.{names.GROUP} ' + request.name + ' in ' + request.namespace"
    ),
    failure="Fail",
)

_STARTS = (
    f"{_NEW}oldObject.spec.promotion != object.spec.promotion || "
    "(object.spec.state == 'Promoted' && oldObject.spec.state != 'Promoted')"
)
_ACCOUNT = "object.spec.promotion.gate.jobTemplate.spec.template.spec.serviceAccountName"
_MAY_CREATE_JOBS = (
    "authorizer.group('batch').resource('jobs').namespace(request.namespace)"
    ".check('create').allowed()"
)
_MAY_USE_ACCOUNT = (
    "authorizer.group('').resource('serviceaccounts').namespace(request.namespace)"
    ".name(variables.account).check('impersonate').allowed()"
)


def gates(account: str) -> Policy:
    """`account`: the service account of a Job whose template names none."""
    return Policy(
        name="gates",
        kinds=(names.FORK,),
        summary=(
            "To write the gate of a Fork, or to start its Job by `state: Promoted`, takes the verb "
            "`create` on `jobs.batch` in the namespace and `impersonate` on the service account "
            "that the Job runs as: the operator makes no Job that its author couldn't have made."
        ),
        operations=("CREATE", "UPDATE"),
        conditions=(("has-a-gate", "has(object.spec.promotion.gate)"), ("starts", _STARTS)),
        variables=(("account", f"has({_ACCOUNT}) && {_ACCOUNT} != '' ? {_ACCOUNT} : '{account}'"),),
        rule=f"{_MAY_CREATE_JOBS} && {_MAY_USE_ACCOUNT}",
        message=(
            "request.userInfo.username + ' may not run the Job of a gate: it takes the verbs "
            "create on jobs.batch and impersonate on the service account ' + variables.account + "
            "' in ' + request.namespace"
        ),
        failure="Fail",
    )


_FORGOTTEN = (
    "has(oldObject.metadata.annotations) && "
    f"'{names.FORGET}' in oldObject.metadata.annotations && "
    f"oldObject.metadata.annotations['{names.FORGET}'] == 'true'"
)

_COLLECTORS = (
    "system:serviceaccount:kube-system:generic-garbage-collector",
    "system:kube-controller-manager",
)
"""The garbage collector deletes what a Log owned that was deleted: whoever deleted that has decided
about its records.
"""
_COLLECTED = f"request.userInfo.username in [{', '.join(repr(each) for each in _COLLECTORS)}]"

SEATED = Policy(
    name="seated-shards",
    kinds=(names.SEQUENCERS, names.SHARDS),
    summary=(
        "A ShardGroup or SequencerSet isn't deleted while shards of its log have seats, unless it "
        f"is annotated with `{names.FORGET}`, its namespace is being deleted, or the garbage "
        "collector deletes it after a Log whose `deletionPolicy` is Delete."
    ),
    operations=("DELETE",),
    conditions=(
        ("seated", "has(oldObject.status) && has(oldObject.status.seated)"),
        ("open", "oldObject.status.seated > 0"),
    ),
    rule=f"{_NAMESPACE_GOES} || ({_FORGOTTEN}) || {_COLLECTED}",
    message=(
        "string(oldObject.status.seated) + ' shards have seats: scale the ShardGroups to 0 first, "
        "so that they leave at a window end; or, to lose what they hold: kubectl -n ' + "
        "request.namespace + ' annotate ' + request.resource.resource + ' ' + "
        f"oldObject.metadata.name + ' {names.FORGET}=true'"
    ),
    failure="Ignore",
)


def fronts(operator: str) -> Policy:
    """`operator`: its user name. It deletes the set of a front that has ended."""
    return Policy(
        name="lazy-fronts",
        kinds=(names.SEQUENCERS,),
        summary=(
            "A SequencerSet that takes a log's lazy appends isn't deleted by hand, unless it is "
            f"annotated with `{names.FORGET}`, or its namespace is being deleted: its volumes may "
            "hold appends that were acknowledged, and that the log has yet to commit."
        ),
        operations=("DELETE",),
        conditions=(
            ("lazy", "oldObject.spec.engine == 'lazy'"),
            ("labelled", "has(oldObject.metadata.labels)"),
            ("taken", f"'{names.LOG_ID}' in oldObject.metadata.labels"),
        ),
        rule=(
            f"{_NAMESPACE_GOES} || ({_FORGOTTEN}) || {_COLLECTED} || "
            f"request.userInfo.username == '{operator}'"
        ),
        message=(
            f"'it takes the appends of log ' + oldObject.metadata.labels['{names.LOG_ID}'] + ': "
            "set spec.appends of its Log to Direct, and leave spec.sequencers out; or, to lose "
            "what it holds: kubectl -n ' + request.namespace + ' annotate sequencersets ' + "
            f"oldObject.metadata.name + ' {names.FORGET}=true'"
        ),
        failure="Ignore",
    )


def policies(account: str, operator: str) -> tuple[Policy, ...]:
    """All of them, for an installation whose gates run as `account` unless they say otherwise, and
    whose operator is this user.
    """
    return (PROTECTED, PROMOTION, gates(account), SEATED, fronts(operator))
