"""What the commands' options have in common: where the server is, how output looks, how times and
positions are written.
"""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from getpass import getuser
from typing import Any, TypeVar

import click

from anabranch.cli.render.output import Output, OutputFormat
from anabranch.cli.service import Target
from anabranch.client.session.endpoint import endpoint
from anabranch.core.errors import BadRequest

DEFAULT_URL = "anabranch://127.0.0.1:7420"
_UNITS_S = {"ms": 0.001, "s": 1, "m": 60, "h": 3_600, "d": 86_400}
_UNITS_B = {"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
_AMOUNT = re.compile(r"(\d+(?:\.\d+)?)\s*(B|KiB|MiB|GiB)?")
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|[smhd])")

Command = TypeVar("Command", bound=Callable[..., Any])


class Duration(click.ParamType):  # pyright: ignore[reportMissingTypeArgument]
    """`90s`, `10m`, `1h30m`, `250ms`; as seconds."""

    name = "duration"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        if isinstance(value, float):
            return value
        text = str(value)
        if not re.fullmatch(f"(?:{_PART.pattern})+", text):
            self.fail(f"{text!r} is no duration: write 90s, 10m, 1h30m or 250ms", param, ctx)
        return sum(float(number) * _UNITS_S[unit] for number, unit in _PART.findall(text))


class PointInLog(click.ParamType):  # pyright: ignore[reportMissingTypeArgument]
    """A position, or a time: RFC 3339 (local if it names no zone), or a duration `ago`."""

    name = "position|time"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> "int | datetime | timedelta":
        if isinstance(value, int | datetime | timedelta):
            return value
        text = str(value).strip()
        if text.isdecimal():
            return int(text)
        if text.endswith(" ago"):
            return timedelta(seconds=DURATION.convert(text.removesuffix(" ago"), param, ctx))
        try:
            return datetime.fromisoformat(text).astimezone(UTC)
        except ValueError:
            self.fail(
                f"{text!r} is neither a position nor a time: write 1234, 2026-01-31T12:00:00Z or"
                " '10m ago'",
                param,
                ctx,
            )


class Rate(click.ParamType):  # pyright: ignore[reportMissingTypeArgument]
    """`1MiB/s`, `500/s`, `1000`; as a whole number a second. `none` is no limit, and -1 here."""

    name = "rate"
    NONE = -1

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        text = str(value).strip().removesuffix("/s")
        if text == "none":
            return self.NONE
        found = _AMOUNT.fullmatch(text)
        amount = round(float(found[1]) * _UNITS_B[found[2] or ""]) if found else 0
        if amount < 1:
            self.fail(f"{value!r} is no rate: write 1MiB/s, 500/s or none", param, ctx)
        return amount


class Url(click.ParamType):  # pyright: ignore[reportMissingTypeArgument]
    name = "url"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            endpoint(str(value))
        except BadRequest as wrong:
            self.fail(wrong.message, param, ctx)
        # As it was given: what an endpoint shows of itself leaves the token out.
        return str(value)


DURATION = Duration()
RATE = Rate()
POINT = PointInLog()
FORMATS = [each.value for each in OutputFormat]

_OUTPUT = click.option(
    "--output",
    "-o",
    type=click.Choice(FORMATS),
    default=OutputFormat.TABLE.value,
    envvar="ANABRANCH_OUTPUT",
    show_default=True,
    help="A table for people, or JSON for programs.",
)
_URL = click.option(
    "--url",
    type=Url(),
    default=DEFAULT_URL,
    envvar="ANABRANCH_URL",
    show_default=True,
    help="Where the server listens (ANABRANCH_URL).",
)
_TOKEN = click.option(
    "--token", envvar="ANABRANCH_TOKEN", help="The server's token (ANABRANCH_TOKEN)."
)
_TOKEN_FILE = click.option(
    "--token-file",
    type=click.Path(dir_okay=False),
    envvar="ANABRANCH_TOKEN_FILE",
    help="A file that holds it, read for each connection (ANABRANCH_TOKEN_FILE).",
)
_TIMEOUT = click.option(
    "--timeout",
    type=DURATION,
    default="30s",
    show_default=True,
    help="How long to try before giving up.",
)


def prints(command: Command) -> Command:
    """The command gets `out`: tables or JSON."""

    def folded(output: str, **given: Any) -> Any:
        return command(out=Output(OutputFormat(output)), **given)

    return _OUTPUT(_like(folded, command))


def talks(command: Command) -> Command:
    """The command gets `out`, and `target`: the server it talks to."""

    def folded(
        url: str,
        token: str | None,
        token_file: str | None,
        timeout: float,
        output: str,
        **given: Any,
    ) -> Any:
        where = url if token else with_token(url, token_file)
        target = Target(where, token, timeout, user())
        return command(target=target, out=Output(OutputFormat(output)), **given)

    return _URL(_TOKEN(_TOKEN_FILE(_TIMEOUT(_OUTPUT(_like(folded, command))))))


def with_token(url: str, file: str | None) -> str:
    """What the address itself says of a token goes before."""
    where = endpoint(url)
    if not file or where.token or where.token_file:
        return url
    return str(where._replace(token_file=file))


def user() -> str:
    """Who runs this: noted in every log and fork that is made."""
    try:
        return getuser()
    except (KeyError, OSError):
        return "anabranch-cli"


def log_argument(name: str = "log") -> Callable[[Any], Any]:
    """An argument that is a log's full name, completed by asking the server."""
    from anabranch.cli.commands.completion import complete_log

    return click.argument(name, shell_complete=complete_log)


def _like(folded: Callable[..., Any], command: Callable[..., Any]) -> Any:
    """Options that were added below, and help, stay the command's."""
    folded.__doc__ = command.__doc__
    folded.__name__ = command.__name__
    folded.__dict__.update(command.__dict__)
    return folded
