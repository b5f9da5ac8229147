"""docs/reference/{errors,limits,pods,settings}.md, written from what the code says of itself.

`python -m anabranch.apps.reference` writes them anew; a test holds the pages to it. In metrics.md
it writes the help texts, between the prose that groups the metrics.
"""

import inspect
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import msgspec

from anabranch.apps.http import refusals
from anabranch.apps.pods import bolt_settings as pods
from anabranch.apps.pods import log_settings
from anabranch.apps.settings import LIMITS, Option, Settings, options
from anabranch.core import errors
from anabranch.core.errors import AnabranchError, Damage, Fenced, Mistake, Refresh, Retry
from anabranch.core.limits import KIB, MIB, REPLICATED, Limits
from anabranch.shell.telemetry.metric_help import HELP

_UNITS_MS = (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1_000), ("ms", 1))
_FAMILIES = {Retry: 4, Refresh: 1, Fenced: 1, Mistake: 1, Damage: 5}
"""With the command line's exit code, which it can't be asked for from here."""

_METRIC_ROW = re.compile(r"^\| `(?P<name>anabranch_\w+)` \|(?: [^|]*\|)+$", re.MULTILINE)

_ERRORS = """# Errors

Written by `python -m anabranch.apps.reference` from `core/errors/`.

A refusal has a `code` that never changes, a `message` that says what was asked, what stood in the
way and what to do, and `facts`, which are what stands in braces below. They are the same in
[frames](protocol.md), in [HTTP](http.md), where they come with the status, in Python, where they
are classes of `anabranch.errors`, and on the command line, where a family has its
[exit code](cli.md). What the client tries again by itself is in [its reference](client.md).

| advice | code of its family | the command line exits with |
|---|---|---|
"""

_LIMITS = """# Limits

Written by `python -m anabranch.apps.reference` from `core/limits.py`.

Each can be set where the server is started, as an environment variable in capitals
(`ANABRANCH_LINGER_MS=5`) or in the [settings file](settings.md). What is over a limit is refused,
and the error names the limit. Sizes and times are plain numbers there: bytes and milliseconds, as
the name says.

Those with a *j* judge commands, and so are written to the journal when a server starts with other
ones: what was decided under the old ones stays decided. The rest may differ from start to start.

Refused at the start: `record_bytes_max` not below `batch_bytes_max`; `batch_bytes_max` not below
`batch_unpacked_bytes_max` and `frame_bytes_max`; anything below 1, but for times, which may be 0
where nothing is repeated by them, and what 0 turns off; objects, batches, frames and groups above
512 MiB.

| name | default | | |
|---|---|---|---|
"""

_SETTINGS = """# Settings of the server

Written by `python -m anabranch.apps.reference` from `apps/settings.py`. The client's are in
[its reference](client.md).

A flag of [`anabranch up`](cli.md) wins over an environment variable, and that over the file,
which is named by `--config` or `ANABRANCH_CONFIG`. A name that isn't known is refused, also one in
the environment that begins with `ANABRANCH_` (`ANABRANCH_URL` and `ANABRANCH_OUTPUT` are the
command line's, and passed over).

Tokens change without a restart where they come from a file: `tokens_file`, one token a line, any of
which lets in. `ANABRANCH_SECRETS` names a folder in which such files are called as the variables
are, `ANABRANCH_TOKEN` and `ANABRANCH_PEER_TOKEN`: a Secret that Kubernetes has mounted.

The file is TOML; [limits](limits.md) stand in a table of their own:

```toml
data = "/var/lib/anabranch"
http_port = -1

[limits]
linger_ms = 5
cache_bytes = 1_073_741_824
```

| name | variable | default | |
|---|---|---|---|
"""

_PODS = """# Settings of a cluster's processes

Written by `python -m anabranch.apps.reference` from `apps/pods/bolt_settings.py`.

A flag of a [command](cli.md) wins over an environment variable, and that over the file, which is
named by `--config` or `ANABRANCH_CONFIG`. All processes of a cluster can share one file and one
environment: each takes its own of it, and passes over what only another kind knows. What nobody
knows is refused. Lists are written with commas where there are none: `--metadata a:7430,b:7430`.

Tokens change without a restart where they come from a file: `tokens_file` and `peer_tokens_file`,
one token a line, any of which lets in; a process shows others the first. `ANABRANCH_SECRETS` names
a folder in which such files are called as the variables are, `ANABRANCH_TOKEN` and
`ANABRANCH_PEER_TOKEN`: a Secret that Kubernetes has mounted, as the chart does.

The file is TOML. Where a name below has a dot, what stands before it is a table; the flag and the
variable have a dash or an underscore in its place (`--s3-bucket`, `ANABRANCH_S3_BUCKET`).
[Limits](limits.md) are a table too, by flag `--limit linger_ms=5` and by variable
`ANABRANCH_LINGER_MS`.

```toml
cluster = "production"
metadata = ["metadata-0.metadata:7430", "metadata-1.metadata:7430", "metadata-2.metadata:7430"]
archive = "sync"

[etcd]
endpoints = ["etcd-0:2379", "etcd-1:2379", "etcd-2:2379"]

[s3]
bucket = "logs"
region = "eu-central-1"

[limits]
linger_ms = 5
```

Members and brokers answer three questions over HTTP at their `probe_port`: `/healthz` (200 while
they live), `/readyz` (200 when they are ready, else 503, with `why` not as sentences) and
`/metrics` ([which there are](metrics.md)). Each question takes a connection of its own, of which
64 may be open at once beside all others of the process; the oldest makes room for a new one. Ten
pages of metrics are rendered at once, and then one a second: until then the last one is repeated.

At SIGTERM they finish what they have in hand, within `drain_ms`: a leader hands over, a broker has
its logs placed elsewhere first. A second signal ends them at once.
"""

_TABLE = """
| name | default | |
|---|---|---|
"""


def pages() -> dict[str, str]:
    """Every page that is written here, by its name."""
    return {
        "errors.md": _ERRORS + "".join(_errors()),
        "limits.md": _LIMITS + "".join(_limits()),
        "pods.md": _PODS + "".join(_pods()),
        "settings.md": _SETTINGS + "".join(_settings()),
    }


def _errors() -> Iterator[str]:
    meanings = dict(re.findall(r"^[|`]-- (\w+) +(.+)$", inspect.getdoc(errors) or "", re.MULTILINE))
    for family, exit_code in _FAMILIES.items():
        yield f"| {family.advice} | `{family.code}` | {exit_code} |\n"
    yield (
        f"\n`{AnabranchError.code}` ({AnabranchError.status}, "
        f"{AnabranchError.advice}) is none of these: it is a fault of the program. HTTP has "
        "[a few codes of its own](http.md#refusals), and the command line `unreachable`. "
        "`journal-behind` has an exit code of its own, 6.\n"
    )
    for family in _FAMILIES:
        yield f"\n## {family.__name__}: {meanings[family.__name__]}\n"
        for kind in errors.BY_CODE.values():
            if issubclass(kind, family) and kind is not family and not _only_http(kind):
                yield _error(kind)


def _error(kind: type[AnabranchError]) -> str:
    prose = inspect.cleandoc(kind.__doc__ or "")
    meaning = f"{_flat(prose)}\n\n" if prose else ""
    return f"\n### `{kind.code}`\n\n{meaning}> {kind.says}\n\n{kind.status}, `{kind.__name__}`\n"


def _only_http(kind: type[AnabranchError]) -> bool:
    return kind.__module__ == refusals.__name__


def _limits() -> Iterator[str]:
    for each in options(Limits):
        journaled = "j" if each.name in REPLICATED else ""
        amount = _amount(each.name, each.default)
        yield f"| `{each.name}` | {amount} | {journaled} | {each.prose} |\n"


def _settings() -> Iterator[str]:
    for each in options(Settings):
        if each.path[0] != LIMITS:
            shown = _default(each.default)
            yield f"| `{each.name}` | `{each.variable}` | {shown} | {each.prose} |\n"


def _pods() -> Iterator[str]:
    yield from _processes("Metadata members and brokers", pods.PodSettings, pods.KINDS)
    shared, kinds = log_settings.NodeSettings, log_settings.KINDS
    yield from _processes("Sequencers and shards of a Belfast or Erwin log", shared, kinds)


def _processes(
    what: str, shared: type[msgspec.Struct], kinds: Sequence[type[msgspec.Struct]]
) -> Iterator[str]:
    """What several kinds have in common, and then each kind's own."""
    common = [each for each in options(shared) if each.path[0] != LIMITS]
    yield f"\n## {what}\n{_TABLE}"
    yield from map(_pod_row, common)
    for kind in kinds:
        above = {each.name for each in common} if issubclass(kind, shared) else set[str]()
        own = [each for each in options(kind) if each.path[0] != LIMITS and each.name not in above]
        yield f"\n## `anabranch {kind.__name__.removesuffix('Settings').lower()}`\n{_TABLE}"
        yield from map(_pod_row, own)


def _pod_row(option: Option) -> str:
    return f"| `{'.'.join(option.path)}` | {_default(option.default)} | {option.prose} |\n"


def _default(value: Any) -> str:
    if value is msgspec.NODEFAULT:
        return "must be given"
    if value is None or value in ("", ()):
        return "none"
    shown = ",".join(cast("tuple[str, ...]", value)) if type(value) is tuple else str(value)
    return f"`{shown.lower()}`"


def metrics(page: str) -> str:
    """The page with the help text of each metric that has a row in one of its tables."""
    return _METRIC_ROW.sub(_metric_row, page)


def metric_rows(page: str) -> list[str]:
    """The metrics that have a row in one of the page's tables; a histogram has several."""
    found = (_metric(match["name"]) for match in _METRIC_ROW.finditer(page))
    return list(dict.fromkeys(found))


def _metric_row(row: re.Match[str]) -> str:
    metric = _metric(row["name"])
    if metric not in HELP:  # a test says so
        return row[0]
    return f"| `{row['name']}` | {HELP[metric]} |"


def _metric(served: str) -> str:
    histogram = served.removesuffix("_bucket").removesuffix("_count").removesuffix("_sum")
    return histogram if histogram in HELP else served


def _flat(prose: str) -> str:
    return " ".join(prose.split())


def _amount(name: str, value: int) -> str:
    """As people say it, and as it is set."""
    if name.endswith("_ms") or "_ms_" in name:
        unit, size = next((unit, size) for unit, size in _UNITS_MS if value % size == 0)
        return f"{value:,} ({value // size:,} {unit})" if size > 1 else f"{value:,}"
    if "bytes" in name:
        unit, size = ("MiB", MIB) if value % MIB == 0 else ("KiB", KIB)
        return f"{value:,} ({value // size:,} {unit})"
    return f"{value:,}"


def main() -> None:
    for name, page in pages().items():
        Path("docs/reference", name).write_text(page, encoding="utf-8")
    page = Path("docs/reference/metrics.md")
    page.write_text(metrics(page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
