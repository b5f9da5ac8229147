"""Completion of commands, options and the names of logs, in three shells."""

import asyncio

import click
from click.shell_completion import CompletionItem, get_completion_class

from anabranch.cli.service.target import Target
from anabranch.core.errors import AnabranchError

PROGRAM = "anabranch"
VARIABLE = "_ANABRANCH_COMPLETE"
_WAIT_S = 1.0
_NAMES_MAX = 100


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script of a shell.

    \b
    bash:  eval "$(anabranch completion bash)"   in ~/.bashrc
    zsh:   eval "$(anabranch completion zsh)"    in ~/.zshrc
    fish:  anabranch completion fish > ~/.config/fish/completions/anabranch.fish
    """  # noqa: D301  # click wants the character itself
    from anabranch.cli.main import cli

    kind = get_completion_class(shell)
    assert kind is not None
    print(kind(cli, {}, PROGRAM, VARIABLE).source())


def complete_log(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """The names of logs that begin so; none if the server doesn't answer."""
    from anabranch.cli.options.service import target_of

    try:
        names = asyncio.run(_names(target_of(ctx, _WAIT_S), incomplete))
    except AnabranchError:
        return []
    return [CompletionItem(name) for name in names]


async def _names(target: Target, prefix: str) -> list[str]:
    names: list[str] = []
    async with target.connected() as service:
        async for each in service.logs(prefix):
            names.append(each.name)
            if len(names) == _NAMES_MAX:
                break
    return names
