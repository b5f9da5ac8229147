"""What can't be told by looking at an object alone: ValidatingAdmissionPolicies.

They run in the API server, so that nothing of ours must be up. A deletion passes when one of them
can't be evaluated; a promotion, a gate or a pod's template doesn't.
"""

from dataclasses import dataclass
from typing import Any

from anabranch_operator.api import names
from anabranch_operator.api.fork import FINISHED
from anabranch_operator.api.pool import OF_THE_POOL
from anabranch_operator.api.sequencers import OF_THE_SET
from anabranch_operator.api.shards import OF_THE_GROUP

_API = "admissionregistration.k8s.io/v1"


@dataclass(frozen=True, slots=True)
class Right:
    """A rule that asks whether the user has a right, and what is said otherwise; both in CEL."""

    rule: str
    message: str


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
    further: tuple[Right, ...] = ()
    """What must be true beside the rule. The API server bounds the cost of each expression, so that
    none can ask for more than two rights.
    """

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
                    "expression": each.rule,
                    "messageExpression": each.message,
                    "reason": "Forbidden",
                }
                for each in (self, *self.further)
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


def front_labels(operator: str) -> Policy:
    """`operator`: its user name. It labels a set when the log has its front."""
    label = f"'{names.LOG_ID}'"
    given = (
        "(has({0}.metadata.labels) && {1} in {0}.metadata.labels ? {0}.metadata.labels[{1}] : '')"
    )
    return Policy(
        name="lazy-labels",
        kinds=(names.SEQUENCERS,),
        summary=(
            f"Nobody but the operator changes the label `{names.LOG_ID}` of a SequencerSet that "
            "takes a log's lazy appends: its pods would come up as sequencers of another log."
        ),
        operations=("UPDATE",),
        conditions=(("lazy", "oldObject.spec.engine == 'lazy'"),),
        rule=(
            f"request.userInfo.username == '{operator}' || "
            f"{given.format('object', label)} == {given.format('oldObject', label)}"
        ),
        message=(
            f"'the label {names.LOG_ID} of SequencerSet ' + object.metadata.name + "
            '" says whose appends it takes, and it is the operator\'s to set: leave it as it is"'
        ),
        failure="Ignore",
    )


_OF_NO_POD = sorted({*OF_THE_POOL, *OF_THE_SET, *OF_THE_GROUP})


def _may_create(group: str, plural: str) -> Right:
    return Right(
        rule=(
            f"authorizer.group('{group}').resource('{plural}').namespace(request.namespace)"
            ".check('create').allowed()"
        ),
        message=_lacks(f"'create on {plural}{group and '.'}{group}'"),
    )


def _lacks(right: str) -> str:
    """`right`: verb and resource, in CEL."""
    return (
        "request.userInfo.username + ' may not declare these pods: it takes the verb ' + "
        f"{right} + ' in ' + request.namespace"
    )


_MAY_ACT = Right(
    rule=f"variables.account == '' || {_MAY_USE_ACCOUNT}",
    message=_lacks("'impersonate on serviceaccounts ' + variables.account"),
)


def _is_there(path: str) -> str:
    parts = path.split(".")
    return " && ".join(f"has({'.'.join(parts[:end])})" for end in range(2, len(parts) + 1))


def _pods(operator: str, name: str, kinds: tuple[str, ...], path: str, made: str = "") -> Policy:
    """`path`: the template of pods; `made`: plural of what the operator makes of it before."""
    new, old = f"object.{path}", f"oldObject.{path}"
    aside = ", ".join(f"'{each}'" for each in _OF_NO_POD)
    changed = (
        f"{_NEW}!({_is_there(old)}) || dyn({new}).exists(key, !(key in [{aside}]) && "
        f"(!(key in dyn({old})) || dyn({new})[key] != dyn({old})[key]))"
    )
    account = f"{new}.serviceAccountName"
    rights = (
        *((_may_create(names.GROUP, made),) if made else ()),
        _may_create("", "pods"),
        _MAY_ACT,
    )
    also = f"`create` on `{made}` and " if made else "`create` on "
    return Policy(
        name=name,
        kinds=kinds,
        summary=(
            f"To write or change `{path}` takes the verbs {also}`pods` in the namespace, and "
            "`impersonate` on the service account that it names: the operator makes no pod that "
            "its author couldn't have made. The operator itself is exempt, and so is a change of "
            f"nothing but {', '.join(f'`{each}`' for each in _OF_NO_POD)}."
        ),
        operations=("CREATE", "UPDATE"),
        conditions=(
            ("somebody-elses", f"request.userInfo.username != '{operator}'"),
            ("has-pods", _is_there(new)),
            ("changed", changed),
        ),
        variables=(("account", f"has({account}) ? {account} : ''"),),
        rule=rights[0].rule,
        message=rights[0].message,
        further=rights[1:],
        failure="Fail",
    )


def pod_authors(operator: str) -> tuple[Policy, ...]:
    """`operator`: its user name. Whoever wrote a Log was asked about what the operator makes of it.

    Secrets aren't asked about: whoever may create pods can mount every Secret of the namespace.
    """
    sequencers, shards = names.PLURALS[names.SEQUENCERS], names.PLURALS[names.SHARDS]
    kinds = (names.SEQUENCERS, names.SHARDS, names.POOL)
    return (
        _pods(operator, "log-sequencers", (names.LOG,), "spec.sequencers.template", sequencers),
        _pods(operator, "log-shards", (names.LOG,), "spec.shards.template", shards),
        _pods(operator, "pods", kinds, "spec"),
    )


def policies(account: str, operator: str) -> tuple[Policy, ...]:
    """All of them, for an installation whose gates run as `account` unless they say otherwise, and
    whose operator is this user.
    """
    return (
        PROTECTED,
        PROMOTION,
        gates(account),
        SEATED,
        fronts(operator),
        front_labels(operator),
        *pod_authors(operator),
    )
