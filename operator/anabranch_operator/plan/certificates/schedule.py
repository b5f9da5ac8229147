"""The desk of the installation's certificates: look, do what is due, and look again in time."""

from msgspec.structs import replace

from anabranch_operator.api.anabranch_names import Nanoseconds
from anabranch_operator.plan.certificates.facts import (
    SECOND,
    SECRET,
    CertificateSettings,
    Course,
    Finding,
    Holdings,
    Inspect,
    Mode,
    places,
)
from anabranch_operator.plan.certificates.inspection import inspect
from anabranch_operator.plan.certificates.rotation import rotate
from anabranch_operator.plan.engine.actions import Plan
from anabranch_operator.plan.engine.objects import Ref
from anabranch_operator.plan.engine.retries import Troubles
from anabranch_operator.plan.engine.world import World
from anabranch_operator.plan.groups import sequencer_pod, shard_pod
from anabranch_operator.plan.pool import broker_pod


def plan_certificates(world: World, ref: Ref, now: Nanoseconds, troubles: Troubles) -> Plan:
    """Private keys never come here, so Secrets aren't seen: they are looked at, and told of."""
    del ref, troubles  # there is one such desk, and what failed is tried again as it is
    surroundings = world.surroundings
    wanted = surroundings.certificates
    if wanted.mode is Mode.OFF:
        return Plan()
    where = places(wanted, surroundings.namespace, _namespaces(world))
    known = world.certificates
    is_fresh = known is not None and now < known.looked_at + wanted.look_s * SECOND
    if known is None or known.places != where or not is_fresh:
        authority = Ref(SECRET, surroundings.namespace, wanted.authority)
        return Plan((Inspect(ref=authority, places=where),))
    course = _course(world, known, now)
    return Plan(course.actions, course.wake_at)


def findings(world: World) -> tuple[Finding, ...]:
    """What people must do about certificates, by the last look."""
    known = world.certificates
    return () if known is None else _course(world, known, known.looked_at).findings


def _course(world: World, known: Holdings, now: Nanoseconds) -> Course:
    surroundings = world.surroundings
    wanted = _everywhere(world)
    if wanted.mode is Mode.SELF:
        return rotate(now, wanted, surroundings.namespace, known)
    return inspect(now, wanted, known)


def _everywhere(world: World) -> CertificateSettings:
    """Whoever shows a certificate to Services of the installation's namespace shows it to those of
    logs and forks in others as well, and as a broker, sequencer or shard of any resource.
    """
    surroundings = world.surroundings
    wanted = surroundings.certificates
    all_of = f"*.{surroundings.namespace}.svc"
    others = [each for each in _namespaces(world) if each != surroundings.namespace]
    homes = [
        *((broker_pod.subdomain(ref.name), ref.namespace) for ref in world.pools),
        *((sequencer_pod.subdomain(ref.name), ref.namespace) for ref in world.sequencers),
        *((shard_pod.subdomain(ref.name), ref.namespace) for ref in world.shards),
    ]
    housed = sorted(f"*.{home}.{namespace}.svc" for home, namespace in homes)
    more = (*(f"*.{each}.svc" for each in others), *housed)
    leaves = tuple(
        replace(leaf, names=tuple(dict.fromkeys((*leaf.names, *more))))
        if all_of in leaf.names
        else leaf
        for leaf in wanted.leaves
    )
    return replace(wanted, leaves=leaves)


def _namespaces(world: World) -> list[str]:
    """Wherever a log or fork is declared, its programs are to know whom to trust."""
    declared = {ref.namespace for ref in (*world.logs, *world.forks)}
    return sorted(each for each in declared if not world.terminating(each))
