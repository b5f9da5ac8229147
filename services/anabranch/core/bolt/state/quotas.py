"""Quotas as the metadata keep them: one for each log that was given one, or forked from one.

A fork begins with the quota that is given with it, else with its parent's as it is then; each is
used up and changed by itself. A promotion leaves the parent its own. The broker that serves a log
enforces them (see `metering`), and is told of them with every commit and look-up that it asks for.
"""

from collections.abc import Iterable

from anabranch.core.bolt.logs.forest import Forest, Log
from anabranch.core.bolt.protocol.commands import Description, LogQuota, SetQuota
from anabranch.core.bolt.protocol.quota import Quota
from anabranch.core.bolt.state import answers
from anabranch.core.bolt.state.replica import Replica
from anabranch.core.types import LogId


def allot(replica: Replica, command: SetQuota) -> Description:
    """From now on this one counts, whole; one that limits nothing takes the log's away."""
    log = replica.forest.find_own(command.log, "quota")
    command.quota.check(log.name)
    _keep(replica.forest, log, command.quota)
    return answers.describe(replica, log)


def inherit(forest: Forest, fork: Log, parent: Log, given: Quota | None) -> None:
    assert fork.parent is parent
    quota = forest.quotas.get(parent.id) if given is None else given
    if quota is not None:
        _keep(forest, fork, quota)


def told(forest: Forest, logs: Iterable[LogId]) -> list[LogQuota]:
    """Of these logs, those that have one."""
    quotas = forest.quotas
    return [LogQuota(id, forest.logs[id].name, quotas[id]) for id in logs if id in quotas]


def _keep(forest: Forest, log: Log, quota: Quota) -> None:
    assert forest.logs[log.id] is log, "only what is alive has a quota"
    if quota.limits_nothing:
        forest.quotas.pop(log.id, None)
    else:
        forest.quotas[log.id] = quota
