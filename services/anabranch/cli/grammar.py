"""How commands are found and listed: by groups, loaded on first use, with a guess at what a
mistyped name was meant to be.
"""

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from importlib import import_module

import click

from anabranch.cli.failure import stop_output

Section = Mapping[str, tuple[str, str]]
"""Commands by name: where each is, and what the list of commands says of it."""

OTHER_NAMES = {
    "branch": "fork",
    "consume": "read",
    "create": "log create",
    "delete": "log delete",
    "describe": "log show",
    "list": "log list",
    "logs": "log list",
    "ls": "log list",
    "merge": "promote",
    "produce": "append",
    "quota": "log quota",
    "rm": "log delete",
    "serve": "up",
    "show": "log show",
    "start": "up",
    "topic": "log",
    "topics": "log list",
}
"""What the commands of other tools are called here."""

_OF_COMMANDS = ("--url", "--profile", "--token", "--token-file", "--timeout", "--output", "-o")


def similar(name: str, known: Sequence[str]) -> list[str]:
    """The commands that somebody may have meant, best first."""
    if name in OTHER_NAMES and OTHER_NAMES[name].split()[0] in known:
        return [OTHER_NAMES[name]]
    others = {other: says for other, says in OTHER_NAMES.items() if says.split()[0] in known}
    found = get_close_matches(name, [*known, *others])
    return list(dict.fromkeys(others.get(each, each) for each in found))


class Group(click.Group):
    """A group that suggests commands in place of one that it doesn't have."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name.startswith("-") or self.get_command(ctx, name) is not None:
            return super().resolve_command(ctx, args)
        meant = similar(name, self.list_commands(ctx))
        guess = f" Did you mean {' or '.join(map(repr, meant))}?" if meant else ""
        raise click.UsageError(f"No such command {name!r}.{guess}", ctx)


class Commands(Group):
    """The commands by sections, each imported on first use, so that `--help` is quick."""

    sections: Mapping[str, Section] = {}

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Options of commands stand behind the command, which other tools do otherwise."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as wrong:
            if wrong.option_name not in _OF_COMMANDS:
                raise
            reason = f"{wrong.option_name} goes behind the command, as in `anabranch log list "
            raise click.UsageError(f"{reason}{wrong.option_name} ...`", ctx) from None

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for section in self.sections.values() for name in section]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        for section in self.sections.values():
            if cmd_name in section:
                module, attribute = section[cmd_name][0].split(":")
                found = getattr(import_module(f"anabranch.cli.{module}"), attribute)
                assert isinstance(found, click.Command)
                return found
        return None

    def invoke(self, ctx: click.Context) -> object:
        """Exit with a code of our own if the reader of a pipe has gone: click would exit with 1."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise click.exceptions.Exit(stop_output()) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        widest = max(map(len, self.list_commands(ctx)))
        for title, section in self.sections.items():
            with formatter.section(title):
                listed = [(f"{name:{widest}}", says) for name, (_, says) in section.items()]
                formatter.write_dl(listed)
