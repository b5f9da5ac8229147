"""The doctor's visit: look, judge, write down."""

import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

from anabranch.apps.doctor.archive import write
from anabranch.apps.doctor.cluster import Cluster
from anabranch.apps.doctor.collection import Collected, collect
from anabranch.apps.doctor.findings import Finding, findings

_FILE = "anabranch-doctor-%Y%m%d-%H%M%S.tar.gz"


def visit(
    kubeconfig: str | None,
    context: str | None,
    namespace: str | None,
    release: str,
    file: Path | None,
    brokers: Callable[[], Any] | None,
) -> tuple[Collected, list[Finding], Path]:
    """And the file that was written. `brokers`: asks the log service itself, if its address is
    known.
    """
    cluster = Cluster(kubeconfig, context)
    found = collect(cluster, namespace or cluster.namespace, release)
    found.versions["anabranch"] = version("anabranch")
    if brokers is not None:
        found.objects["brokers"] = brokers()
    now_s = time.time()
    said = findings(found, now_s)
    file = file or Path(time.strftime(_FILE, time.localtime(now_s)))
    write(file, found, said, now_s)
    return found, said, file
