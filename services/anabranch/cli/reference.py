"""docs/reference/cli.md, written from what the commands say of themselves.

`python -m anabranch.cli.reference` writes it anew; a test holds the page to it.
"""

from collections.abc import Iterator
from pathlib import Path

import click

from anabranch.cli.failure import MEANINGS
from anabranch.cli.main import CONTEXT, PROGRAM, cli

_WIDTH = 100

_HEAD = """# The command line

Written by `python -m anabranch.cli.reference` from the commands' own help.

Every command that talks to a service takes `--url`, `--profile`, `--token`, `--token-file` and
`--timeout`, and every one that has something to say `--output`. `-h` shows a command's help.
[How to use it](../howto/command-line.md).

**Which service.** The first of these that was given counts: `--url`, `--profile`, `ANABRANCH_URL`,
`ANABRANCH_PROFILE`, the profile in use, `anabranch://127.0.0.1:7420`. A profile's token is shown
to the profile's own address only.

**JSON.** With `--output json` a command prints one JSON document on stdout; `log list`, `read` and
`tail` print one a line. Fields are only ever added. A log and a record look as they do in
[HTTP](http.md#records): positions are numbers and times are milliseconds since 1970. The value, the
key and the headers' values of a record are text if all of them are UTF-8, and base64 if not;
`encoding` says which. `null` is no key or no value, `""` is an empty one. `append --json` takes the
same records, so that `anabranch read LOG -o json | anabranch append COPY --json` copies them.

**Times** are given as RFC 3339 (in the local zone if none is named), or relative to now: `-10m`,
`10m ago`.

**Errors** are printed on stderr: a line, the cause first, or with `--output json` a document
`{"error": {"code", "message", "advice", "facts"}}`, with `because` if something else caused it.
Mistakes in the command line itself have the code `usage`.

| variable | instead of |
|---|---|
| `ANABRANCH_URL` | `--url` |
| `ANABRANCH_PROFILE` | `--profile` |
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
    context = click.Context(group, **CONTEXT)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from _sections(command, f"{path} {name}")
        else:
            yield f"\n## {path} {name}\n\n```\n{_help(command, f'{path} {name}')}\n```\n"


def _help(command: click.Command, path: str) -> str:
    """A command's help, as wide as the page and without trailing blanks."""
    context = click.Context(command, info_name=path, terminal_width=_WIDTH, **CONTEXT)
    lines = command.get_help(context).splitlines()
    return "\n".join(line.rstrip().replace("\b", "") for line in lines)


def main() -> None:
    page = Path("docs/reference/cli.md")
    page.write_text(written(), encoding="utf-8")
    print(f"{page} is written")


if __name__ == "__main__":
    main()
