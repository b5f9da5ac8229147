"""Exit codes, and how a command that can't do what it should says so."""

import io
import json
import os
import sys
from collections.abc import Sequence
from enum import IntEnum
from typing import Any

import click
import msgspec

from anabranch.cli.advice import WORDS
from anabranch.cli.render.words import printable
from anabranch.core.errors import AnabranchError, Damage, JournalBehind, Retry, restore, reworded

USAGE_CODE = "usage"
"""What errors in the command line itself have for a code."""


class Exit(IntEnum):
    OK = 0
    REFUSED = 1
    USAGE = 2
    UNREACHABLE = 3
    BLOCKED = 4
    DAMAGE = 5
    BEHIND = 6
    INTERRUPTED = 130
    UNREAD = 141


MEANINGS = {
    Exit.OK: "done",
    Exit.REFUSED: "refused or failed: the message says why and what to do",
    Exit.USAGE: "the command line itself is wrong",
    Exit.UNREACHABLE: "the server can't be reached",
    Exit.BLOCKED: "blocked, overloaded or out of time: the same command may succeed later",
    Exit.DAMAGE: "stored bytes are not what was written",
    Exit.BEHIND: "the journal is older than the objects beside it, so nothing is served",
    Exit.INTERRUPTED: "interrupted by Ctrl-C",
    Exit.UNREAD: "whatever read the output stopped reading",
}

_AGAIN = "; try again"

EPILOGUE = "Exit codes: " + "; ".join(f"{code} {says}" for code, says in MEANINGS.items()) + "."


class Unreachable(AnabranchError):
    """The server didn't answer at all; what was asked of it wasn't done."""

    code = "unreachable"
    status = 503
    advice = "retry"
    says = (
        "{url} can't be reached: {reason}. Start a server with `anabranch up`, or name another "
        "with --url, ANABRANCH_URL or --profile"
    )

    def __init__(self, url: str, reason: str) -> None:
        super().__init__(url=url, reason=reason)


class NotUsable(Unreachable):
    """Something listens there, so another server needn't be started."""

    code = "not-usable"
    says = "{url} can't be used: {reason}"


def advised(error: AnabranchError, advice: str) -> AnabranchError:
    """The same error with advice for the command line, not for a program. An error of another
    version may lack facts: then it speaks for itself.
    """
    facts = {**error.facts, "advice": advice}
    try:
        message = type(error).says.format(**facts)
    except LookupError:
        message = error.message
    return restore(error.code, message, facts)


def exit_code(error: AnabranchError) -> Exit:
    match error:
        case Unreachable():
            return Exit.UNREACHABLE
        case Retry():
            return Exit.BLOCKED
        case JournalBehind():
            return Exit.BEHIND
        case Damage():
            return Exit.DAMAGE
        case _:
            return Exit.REFUSED


def run(command: click.Command, program: str, arguments: Sequence[str]) -> int:
    """Run it; never a traceback for what can be expected. Returns the exit code."""
    try:
        left = command.main(list(arguments), prog_name=program, standalone_mode=False)
        sys.stdout.flush()
    except click.ClickException as wrong:
        if _wants_json(arguments):
            _print_json(USAGE_CODE, wrong.format_message(), "change the command", {})
        else:
            _show_usage(wrong)
        return wrong.exit_code
    except AnabranchError as error:
        show(error, as_json=_wants_json(arguments))
        return exit_code(error)
    except (KeyboardInterrupt, click.Abort):
        return Exit.INTERRUPTED
    except BrokenPipeError:
        return stop_output()
    return left if isinstance(left, int) else Exit.OK


def stop_output() -> Exit:
    """Drop what is still buffered: nobody reads it, and Python would try once more at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return Exit.UNREAD


def _show_usage(wrong: click.ClickException) -> None:
    """Print what is wrong with the command line; its words may be a stranger's."""
    written = io.StringIO()
    wrong.show(written)
    for line in written.getvalue().splitlines():
        print(printable(line), file=sys.stderr)


def show(error: AnabranchError, *, as_json: bool) -> None:
    """Print on stderr: lines for people, the cause first, or one JSON document."""
    message, cause = reworded(error, WORDS), error.__cause__
    because = reworded(cause, WORDS) if isinstance(cause, AnabranchError) else ""
    if as_json:
        more = {"because": because} if because else {}
        _print_json(error.code, message, error.advice, error.facts, **more)
        return
    if message.endswith(_AGAIN):
        because = because.removesuffix(_AGAIN)  # the advice is said once
    label = click.style("error", fg="red", bold=True) if sys.stderr.isatty() else "error"
    print(f"{label}: {printable(because or message)}", file=sys.stderr)
    if because:
        print(f"  therefore: {printable(message)}", file=sys.stderr)


def _print_json(code: str, message: str, advice: str, facts: Any, **more: str) -> None:
    said = {"code": code, "message": message, "advice": advice, "facts": facts, **more}
    document = {"error": msgspec.to_builtins(said)}
    # In ASCII: a name of a file that isn't UTF-8 can stand in it, and nothing moves the cursor.
    print(json.dumps(document, separators=(",", ":")), file=sys.stderr)


def _wants_json(arguments: Sequence[str]) -> bool:
    """Was JSON asked for? Also answers if the command line couldn't be parsed."""
    joined = " ".join(arguments).replace("=", " ")
    asked = "--output json" in joined or "-o json" in joined or "-ojson" in joined
    return asked or ("--output" not in joined and os.environ.get("ANABRANCH_OUTPUT") == "json")
