"""Which service a command talks to: by its flags, the environment, a profile, or by default."""

from dataclasses import dataclass

from anabranch.cli.service.profiles import Profile, Profiles
from anabranch.client.session.endpoint import endpoint

DEFAULT_URL = "anabranch://127.0.0.1:7420"


@dataclass(frozen=True, slots=True)
class Given:
    """What was given, by flags or by the environment."""

    url: str | None = None
    profile: str | None = None
    token: str | None = None
    token_file: str | None = None


def choose(flags: Given, environment: Given, profiles: Profiles) -> tuple[str, str | None]:
    """Choose the address, and the token to show there.

    Flags go before the environment, and that before the profile in use. A profile's token is only
    ever shown to the profile's own address.
    """
    profile: Profile | None = None
    if flags.url is not None:
        url = flags.url
    elif flags.profile is not None:
        profile = profiles.find(flags.profile)
        url = profile.url
    elif environment.url is not None:
        url = environment.url
    else:
        name = environment.profile or profiles.current
        profile = profiles.find(name) if name else None
        url = profile.url if profile else DEFAULT_URL
    own = Given() if profile is None else Given(None, None, profile.token, profile.token_file)
    order = (flags, own, environment) if flags.profile else (flags, environment, own)
    for each in order:
        if each.token:
            return url, each.token
        if each.token_file:
            return with_token(url, each.token_file), None
    return url, None


def with_token(url: str, file: str) -> str:
    """Add a token file to an address that names no token."""
    where = endpoint(url)
    return url if where.token or where.token_file else str(where._replace(token_file=file))
