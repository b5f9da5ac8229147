"""Options that commands have in common: which service they talk to, and how they print."""

from collections.abc import Callable
from dataclasses import replace
from getpass import getuser
from typing import Any, TypeVar, cast

import click
from click.core import ParameterSource

from anabranch.cli.options.values import DURATION, URL
from anabranch.cli.render.output import Output, OutputFormat
from anabranch.cli.service import profiles
from anabranch.cli.service.choice import DEFAULT_URL, Given, choose
from anabranch.cli.service.target import FIRST_ANSWER_S, Target

TIMEOUT_S = 30.0
FORMATS = [each.value for each in OutputFormat]

Command = TypeVar("Command", bound=Callable[..., Any])

_OUTPUT = click.option(
    "--output",
    "-o",
    type=click.Choice(FORMATS),
    default=OutputFormat.TABLE.value,
    envvar="ANABRANCH_OUTPUT",
    show_default=True,
    help="A table for people, or JSON for programs.",
)
SERVICE = (
    click.option(
        "--url",
        type=URL,
        envvar="ANABRANCH_URL",
        help="Where the server listens (ANABRANCH_URL).  [default: the profile's, or "
        f"{DEFAULT_URL}]",
    ),
    click.option(
        "--profile",
        envvar="ANABRANCH_PROFILE",
        help="A service by the name that `anabranch profile add` gave it (ANABRANCH_PROFILE).",
    ),
    click.option("--token", envvar="ANABRANCH_TOKEN", help="The server's token (ANABRANCH_TOKEN)."),
    click.option(
        "--token-file",
        type=click.Path(dir_okay=False),
        envvar="ANABRANCH_TOKEN_FILE",
        help="A file that holds the token, read for each connection (ANABRANCH_TOKEN_FILE).",
    ),
    click.option(
        "--timeout",
        type=DURATION,
        help="How long to try before giving up.  [default: "
        f"{TIMEOUT_S:g}s, and {FIRST_ANSWER_S:g}s for a server that never answered]",
    ),
)
_OF_SERVICE = ("url", "profile", "token", "token_file")


def prints(command: Command) -> Command:
    """The command gets `out`: tables or JSON."""

    def folded(output: str, **given: Any) -> Any:
        require_text(click.get_current_context())
        return command(out=Output(OutputFormat(output)), **given)

    return _OUTPUT(folded_into(folded, command))


def talks(command: Command) -> Command:
    """The command gets `out`, and `target`: the service it talks to."""

    def folded(timeout: float | None, output: str, **given: Any) -> Any:
        context = click.get_current_context()
        require_text(context)
        for name in _OF_SERVICE:
            given.pop(name)
        out = Output(OutputFormat(output))
        target = replace(target_of(context, timeout), reports=not out.json)
        return command(target=target, out=out, **given)

    made = _OUTPUT(folded_into(folded, command))
    for option in reversed(SERVICE):
        made = option(made)
    return made


def require_text(context: click.Context) -> None:
    """Refuse bytes that aren't UTF-8 where a text is wanted; files and `BYTES` may have any."""
    for parameter in context.command.params:
        for each in _each(context.params.get(parameter.name or "")):
            free = isinstance(parameter.type, click.Path) and parameter.name != "token_file"
            if isinstance(each, str) and not free and not _is_utf8(each):
                raise click.BadParameter(f"{each!a} isn't UTF-8", context, parameter)


def _each(given: Any) -> tuple[Any, ...]:
    """What was given, once or several times."""
    return cast("tuple[Any, ...]", given) if isinstance(given, tuple) else (given,)


def _is_utf8(text: str) -> bool:
    """Bytes of the command line that aren't UTF-8 come as surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def target_of(context: click.Context, timeout_s: float | None = None) -> Target:
    """The service that flags, the environment, a profile or the default name."""
    url, token = choose(
        _given(context, ParameterSource.COMMANDLINE),
        _given(context, ParameterSource.ENVIRONMENT),
        profiles.load(profiles.location()),
    )
    return Target(
        url=url,
        token=token,
        timeout_s=TIMEOUT_S if timeout_s is None else timeout_s,
        first_answer_s=FIRST_ANSWER_S if timeout_s is None else timeout_s,
        by=user(),
    )


def _given(context: click.Context, source: ParameterSource) -> Given:
    found = {
        name: context.params.get(name)
        for name in _OF_SERVICE
        if context.get_parameter_source(name) is source
    }
    return Given(**found)


def user() -> str:
    """The user's name, which every log and fork that is made keeps."""
    try:
        return getuser()
    except (KeyError, OSError):
        return "anabranch-cli"


def log_argument(name: str = "log") -> Callable[[Any], Any]:
    """An argument that is a log's full name, completed by asking the server."""
    from anabranch.cli.commands.completion import complete_log

    return click.argument(name, shell_complete=complete_log)


def folded_into(folded: Callable[..., Any], command: Callable[..., Any]) -> Any:
    """Let a wrapper keep the command's help, and the options that it has already."""
    folded.__doc__ = command.__doc__
    folded.__name__ = command.__name__
    folded.__dict__.update(command.__dict__)
    return folded
