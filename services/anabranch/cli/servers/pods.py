"""`anabranch metadata`, `broker`, `gateway`, `sequencer` and `shard`: what pods run.

Their flags are their settings, field by field, with the prose of the fields as help.
"""

import os
from collections.abc import Mapping
from importlib import import_module
from typing import Any, cast

import click

from anabranch.cli.render.output import OutputFormat

PACKAGES = "pip install 'anabranch[cluster]'"


class PodCommand(click.Command):
    """A command whose flags aren't known before the packages of a cluster are loaded."""

    def __init__(self, name: str, settings: str, says: str, home: str = "bolt_settings") -> None:
        super().__init__(name, callback=self._start, help=says)
        self._settings = settings
        self._home = home
        self._made = False

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        if not self._made:
            self._made = True
            self.params = [*self.params, *flags(self._kind), *_COMMON]
        return super().get_params(ctx)

    @property
    def _kind(self) -> Any:
        return getattr(module(self._home), self._settings)

    def _start(self, limit: tuple[str, ...], **flags: Any) -> None:
        chosen = module(self._home).load(self._kind, {**limits_of(limit), **flags}, os.environ)
        module(str(self.name)).main(chosen)


class StoredCommand(PodCommand):
    """A command on what is stored: by a data directory, or by the settings of a cluster."""

    home: str
    settings: str

    def __init__(self, name: str, says: str) -> None:
        super().__init__(name, self.settings, says, self.home)

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """For a data directory the packages of a cluster aren't needed."""
        try:
            return super().get_params(ctx)
        except click.ClickException:
            self.params = [*self.params, *_COMMON]
            return super().get_params(ctx)


def module(name: str) -> Any:
    try:
        return import_module(f"anabranch.apps.pods.{name}")
    except ModuleNotFoundError as missing:
        if (missing.name or "").startswith("anabranch"):
            raise
        needs = f"a cluster's processes need the package {missing.name}: {PACKAGES}"
        raise click.ClickException(needs) from None


def flags(kind: Any) -> list[click.Parameter]:
    """A flag for each setting; limits share --limit, because there are too many."""
    from anabranch.apps.settings import LIMITS, options

    return [_flag(each) for each in options(kind) if each.path[0] != LIMITS]


def _flag(setting: Any) -> click.Option:
    if setting.kind is bool:
        names = [f"{setting.flag}/--no{setting.flag[1:]}"]
        return click.Option(names, default=None, help=setting.prose)
    metavar = "NUMBER" if setting.kind in {int, float} else "TEXT"
    shown = _shown(setting)
    says = f"{setting.prose}  [{shown}]" if shown else setting.prose
    return click.Option([setting.flag, setting.name], metavar=metavar, help=says)


def _shown(setting: Any) -> str:
    if setting.required:
        return "required"
    if setting.default in ("", None, ()):
        return ""
    value: Any = setting.default
    return ",".join(cast("tuple[str, ...]", value)) if type(value) is tuple else str(value)


def limits_of(given: tuple[str, ...]) -> Mapping[str, str]:
    limits: dict[str, str] = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not equals:
            raise click.UsageError(f"--limit {each}: write it as NAME=VALUE")
        limits[name] = value
    return limits


_COMMON: list[click.Parameter] = [
    click.Option(
        ["--limit"],
        multiple=True,
        metavar="NAME=VALUE",
        help="Any of the limits, as often as you like: --limit linger_ms=5.",
    ),
    click.Option(
        ["--config"],
        type=click.Path(exists=True, dir_okay=False),
        envvar="ANABRANCH_CONFIG",
        help="A TOML file with settings and limits; flags and ANABRANCH_... variables win over it.",
    ),
]

OUTPUT = click.Option(
    ["--output", "-o"],
    type=click.Choice([each.value for each in OutputFormat]),
    default=OutputFormat.TABLE.value,
    envvar="ANABRANCH_OUTPUT",
    help="Tables for people, JSON for programs.",
)

metadata = PodCommand(
    "metadata",
    "MetadataSettings",
    "Run one metadata member of a cluster.\n\n"
    "It works on etcd and a bucket until it is told to end. On SIGTERM it hands over what it "
    "leads. The second signal ends it at once.",
)
gateway = PodCommand(
    "gateway",
    "GatewaySettings",
    "Serve HTTP before the brokers of a cluster.\n\n"
    "It keeps nothing: any number of them may run, and any may end at any time.",
)
broker = PodCommand(
    "broker",
    "BrokerSettings",
    "Run one broker of a cluster.\n\n"
    "It keeps nothing itself. On SIGTERM its logs are placed elsewhere first. The second signal "
    "ends it at once.",
)
sequencer = PodCommand(
    "sequencer",
    "SequencerSettings",
    "Run one sequencer of a Belfast or Erwin log.\n\n"
    "Belfast: a majority of them decides on windows and cuts. Erwin: all members of a view hold an "
    "append, and one of them orders. On SIGTERM it hands over what it leads. The second signal "
    "ends it at once.",
    home="log_settings",
)
shard = PodCommand(
    "shard",
    "ShardSettings",
    "Run one replica of a shard of a Belfast or Erwin log.\n\n"
    "It joins the log by itself. On SIGTERM a Belfast log's takes no more appends, and ends when "
    "those it has are confirmed; an Erwin log's ends when its shard goes on without it. The second "
    "signal ends it at once.",
    home="log_settings",
)
