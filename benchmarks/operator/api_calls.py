"""One client of the API server in a process of its own: server-side applies, and what they cost.

`python -m benchmarks.operator.api_calls CLIENT KUBECONFIG NAMESPACE CALLS` prints one JSON object.
"""

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

AT_ONCE = 16

Apply = Callable[[dict[str, Any]], Awaitable[object]]


def manifest(namespace: str, number: int) -> dict[str, Any]:
    """About as large as a Service or an EndpointSlice."""
    labels = {"app.kubernetes.io/managed-by": "anabranch-operator", "anabranch.dev/fork": "f"}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": f"object-{number % 100}", "namespace": namespace, "labels": labels},
        "data": {"number": str(number), "words": "what an object of this size holds " * 12},
    }


async def measure(client: str, kubeconfig: str, namespace: str, calls: int) -> dict[str, float]:
    load_kopf()
    empty = resident_mib()
    apply, close = await CLIENTS[client](kubeconfig)
    # Connections are made, and the kind is looked up by whoever does that.
    await gathered(apply, namespace, AT_ONCE, AT_ONCE)
    alone = sorted(await gathered(apply, namespace, calls // 5, 1))
    cpu, wall = time.process_time(), time.perf_counter()
    await gathered(apply, namespace, calls, AT_ONCE)
    spent, passed = time.process_time() - cpu, time.perf_counter() - wall
    after = resident_mib()
    await close()
    return {
        "mib": after - empty,
        "p50_ms": alone[len(alone) // 2],
        "p99_ms": alone[len(alone) * 99 // 100],
        "cpu_ms": spent * 1e3 / calls,
        "per_s": calls / passed,
    }


def load_kopf() -> None:
    """The operator has it, and aiohttp with it. Where the official client is installed kopf loads
    that too: this would hide what it costs.
    """
    sys.modules["kubernetes"] = cast("Any", None)
    import kopf  # noqa: F401

    del sys.modules["kubernetes"]


async def gathered(apply: Apply, namespace: str, calls: int, at_once: int) -> list[float]:
    """How long each took, in ms."""
    numbers = iter(range(calls))
    took: list[float] = []

    async def worker() -> None:
        for number in numbers:
            began = time.perf_counter()
            await apply(manifest(namespace, number))
            took.append((time.perf_counter() - began) * 1e3)

    await asyncio.gather(*(worker() for _ in range(at_once)))
    return took


async def ours(kubeconfig: str) -> tuple[Apply, Callable[[], Awaitable[None]]]:
    from anabranch.shell.runtime.clock import Clock
    from anabranch_operator.kube.access import from_kubeconfig
    from anabranch_operator.kube.client import Client
    from anabranch_operator.kube.rate_limit import Pace
    from anabranch_operator.plan.engine.objects import Ref

    client = Client(from_kubeconfig(kubeconfig), Pace(Clock(), 10**6, 10**6), lambda: True)

    async def apply(manifest: dict[str, Any]) -> object:
        meta = manifest["metadata"]
        return await client.apply(Ref("ConfigMap", meta["namespace"], meta["name"]), manifest)

    return apply, client.close


async def official(kubeconfig: str) -> tuple[Apply, Callable[[], Awaitable[None]]]:
    from kubernetes.config import new_client_from_config
    from kubernetes.dynamic import DynamicClient

    threads = ThreadPoolExecutor(AT_ONCE)
    configured = new_client_from_config(kubeconfig)
    configured.configuration.connection_pool_maxsize = AT_ONCE
    client = DynamicClient(configured)
    resource = client.resources.get(api_version="v1", kind="ConfigMap")

    def call(manifest: dict[str, Any]) -> object:
        return client.server_side_apply(
            resource, body=manifest, field_manager="official", force_conflicts=True
        )

    async def apply(manifest: dict[str, Any]) -> object:
        return await asyncio.get_running_loop().run_in_executor(threads, call, manifest)

    async def close() -> None:
        threads.shutdown()
        configured.close()

    return apply, close


CLIENTS = {"ours": ours, "official": official}


def resident_mib() -> float:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * 4096 / 2**20


if __name__ == "__main__":
    chosen, config, home, count = sys.argv[1:]
    print(json.dumps(asyncio.run(measure(chosen, config, home, int(count)))))
