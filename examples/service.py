"""Which service an example runs on: that which a command of `anabranch` would talk to."""

import os

from anabranch.cli.service import profiles
from anabranch.cli.service.choice import Given, choose
from anabranch.client.session.settings import Settings


def chosen(url: str | None) -> tuple[str, Settings]:
    """The address and what to show there: of the `--url` that was given, the environment's
    `ANABRANCH_URL`, a profile, or the default. The environment may name a token, too.
    """
    flags, known = Given(url), profiles.load(profiles.location())
    environment = Given(
        url=_named("ANABRANCH_URL"),
        profile=_named("ANABRANCH_PROFILE"),
        token=_named("ANABRANCH_TOKEN"),
        token_file=_named("ANABRANCH_TOKEN_FILE"),
    )
    where, token = choose(flags, Given(environment.url, environment.profile), known)
    if where.startswith("anabranch"):
        where, token = choose(flags, environment, known)
    # The address of a Belfast log by itself names its token.
    return where, Settings(token=token)


def _named(variable: str) -> str | None:
    """A variable that is empty names nothing, as on the command line."""
    return os.environ.get(variable) or None
