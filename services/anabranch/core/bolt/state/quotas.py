"""Quotas as the metadata keep them: one for each log that was given one, or forked from one.

A fork begins with the quota that is given with it, else with its parent's as it is then; each is
used up and changed by itself. A promotion leaves the parent its own. The broker that serves a log
enforces its quota (see `broker/rate_limits`), and is told of it with every commit and look-up that
it asks for. The quota of a log of another engine is kept here too: whoever runs that log's
processes looks it up and hands it to them.
"""

from collections.abc import Iterable

from anabranch.core.bolt.logs.forest import Forest, Log
from anabranch.core.bolt.protocol.commands import Description, LogQuota, SetQuota
from anabranch.core.bolt.state import answers
from anabranch.core.bolt.state.replica import Replica
from anabranch.core.errors import BadRequest
from anabranch.core.quota import Quota
from anabranch.core.types import LogId


def allot(replica: Replica, command: SetQuota) -> Description:
    """Replace the log's quota as a whole; one that limits nothing takes it away."""
    log = replica.forest.find(command.log)
    command.quota.check(log.name)
    if log.engine and command.quota.read_bytes_per_s is not None:
        reason = f"reads of logs of the {log.engine} engine aren't limited: leave it out"
        raise BadRequest(f"read_bytes_per_s of {log.name}", reason)
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
