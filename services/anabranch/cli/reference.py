"""docs/reference/cli.md, written from what the commands say of themselves.

`python -m anabranch.cli.reference` writes it anew; a test holds the page to it.
"""

from collections.abc import Iterator
from pathlib import Path

import click

from anabranch.cli.failure import MEANINGS
from anabranch.cli.main import PROGRAM, cli

_WIDTH = 100

_HEAD = """# The command line

Written by `python -m anabranch.cli.reference` from the commands' own help.

Every command that talks to a server takes `--url`, `--token` and `--timeout`, and every one that
has something to say `--output`. With `--output json` a command prints one JSON document on stdout;
`log list`, `read` and `tail` print one a line. Fields are only ever added. Positions are numbers,
times RFC 3339 in UTC, keys and values text; where they aren't valid UTF-8 they are base64, and
`encoding` says so. Errors are printed on stderr: a line, or with `--output json` a document
`{"error": {"code", "message", "advice", "facts"}}`.

| variable | instead of |
|---|---|
| `ANABRANCH_URL` | `--url` |
| `ANABRANCH_TOKEN` | `--token` |
| `ANABRANCH_TOKEN_FILE` | `--token-file` |
| `ANABRANCH_OUTPUT` | `--output` |
| `ANABRANCH_DATA` | `--data` |
| `ANABRANCH_CONFIG` | `--config` |

| exit code | meaning |
|---|---|
"""


def written() -> str:
    """The whole page."""
    codes = "".join(f"| {int(code)} | {says} |\n" for code, says in MEANINGS.items())
    return _HEAD + codes + "".join(_sections(cli, PROGRAM))


def _sections(group: click.Group, path: str) -> Iterator[str]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from _sections(command, f"{path} {name}")
        else:
            yield f"\n## {path} {name}\n\n```\n{_help(command, f'{path} {name}')}\n```\n"


def _help(command: click.Command, path: str) -> str:
    """As wide as a page, whatever the terminal is; without trailing blanks."""
    context = click.Context(
        command, info_name=path, terminal_width=_WIDTH, max_content_width=_WIDTH
    )
    lines = command.get_help(context).splitlines()
    return "\n".join(line.rstrip().replace("\b", "") for line in lines)


def main() -> None:
    page = Path("docs/reference/cli.md")
    page.write_text(written(), encoding="utf-8")
    print(f"{page} is written")


if __name__ == "__main__":
    main()
