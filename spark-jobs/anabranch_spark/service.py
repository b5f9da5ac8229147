"""Which service a job talks to, and with whose rights."""

import os

import anabranch
from anabranch.errors import BadRequest

URL = "ANABRANCH_URL"
"""As of the command line and of gates on Kubernetes."""
TOKEN = "ANABRANCH_TOKEN"  # noqa: S105  # a variable's name
TOKEN_FILE = "ANABRANCH_TOKEN_FILE"  # noqa: S105

PATIENCE_S = 30.0
"""For a first answer: many tasks begin at once, on machines that Spark keeps busy."""


def address(given: str | None) -> str:
    """The service's URL: an option or argument if there is one, otherwise the environment's.

    Executors connect with this text, so the environment's token file is named in it: each process
    reads that file anew. A bare token stays in each process's own environment.
    """
    url = given or os.environ.get(URL, "")
    if not url:
        raise BadRequest("connect to the service", f"neither an option names it nor {URL}")
    file = os.environ.get(TOKEN_FILE, "")
    if file and "token_file=" not in url and "@" not in url:
        url += ("&" if "?" in url else "?") + f"token_file={file}"
    return url


def connect(url: str) -> anabranch.Service:
    """A connection of this process; close it, or use it with `with`."""
    settings = anabranch.Settings(token=os.environ.get(TOKEN) or None)
    return anabranch.connect(url, timeout=PATIENCE_S, settings=settings)
