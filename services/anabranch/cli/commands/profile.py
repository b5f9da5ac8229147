"""`anabranch profile ...`: services by name."""

import os

import click

from anabranch.cli.grammar import Group
from anabranch.cli.options.service import prints
from anabranch.cli.options.values import URL
from anabranch.cli.render.output import Output
from anabranch.cli.service.profiles import Profile, Profiles, load, location, save
from anabranch.client.session.endpoint import endpoint


@click.group(cls=Group)
def profile() -> None:
    """Name services, so that nobody types their addresses.

    A command talks to the service that --url or --profile names, or ANABRANCH_URL or
    ANABRANCH_PROFILE, or else to the profile in use. Profiles are kept in
    anabranch/profiles.toml of XDG_CONFIG_HOME (~/.config), for nobody else to read.
    """


@profile.command()
@click.argument("name")
@click.option("--url", type=URL, required=True, help="Where the service listens.")
@click.option("--token", help="The token to show there; --token-file is safer.")
@click.option(
    "--token-file",
    type=click.Path(dir_okay=False),
    help="A file that holds the token, read for each connection.",
)
@click.option("--use", is_flag=True, help="Use it from now on. The first one is used anyway.")
@prints
def add(
    out: Output, name: str, url: str, token: str | None, token_file: str | None, use: bool
) -> None:
    """Name a service, or replace the profile of this name."""
    if token and token_file:
        raise click.UsageError("give --token or --token-file, not both")
    path = location()
    file = os.path.abspath(token_file) if token_file else None
    before = load(path)
    made = before.added(name, Profile(url, token, file), use=use)
    save(path, made)
    old = before.profiles.get(name)
    _say(out, made, name, f"; it was {endpoint(old.url)}" if old and old.url != url else "")


@profile.command()
@click.argument("name")
@prints
def use(out: Output, name: str) -> None:
    """Use a profile wherever nothing else is said."""
    path = location()
    chosen = load(path).using(name)
    save(path, chosen)
    _say(out, chosen, name)


@profile.command(name="list")
@prints
def list_profiles(out: Output) -> None:
    """List the profiles; tokens aren't shown."""
    found = load(location())
    if out.json:
        out.document([_document(found, name) for name in sorted(found.profiles)])
    elif not found.profiles:
        out.say("there are no profiles: `anabranch profile add NAME --url URL` makes one")
    else:
        out.table(
            ["NAME", "URL", "TOKEN", "IN USE"],
            (
                (name, str(endpoint(each.url)), _token(each), "yes" * (name == found.current))
                for name, each in sorted(found.profiles.items())
            ),
        )


@profile.command()
@click.argument("name", required=False)
@prints
def show(out: Output, name: str | None) -> None:
    """Show a profile, by default the one in use; its token isn't shown."""
    found = load(location())
    chosen = name or found.current
    if not chosen:
        raise click.UsageError("no profile is in use: name one")
    each = found.find(chosen)
    if out.json:
        out.document(_document(found, chosen))
        return
    rows = [
        ("name", chosen),
        ("url", str(endpoint(each.url))),
        ("token", _token(each)),
        ("in use", "yes" if chosen == found.current else "no"),
        ("file", str(location())),
    ]
    out.table(["", ""], rows)


@profile.command()
@click.argument("name")
@prints
def remove(out: Output, name: str) -> None:
    """Forget a profile."""
    path = location()
    left = load(path).removed(name)
    save(path, left)
    if out.json:
        out.document({"removed": name, "current": left.current or None})
    else:
        out.say(f"{name} is removed" + ("" if left.current else "; no profile is in use"))


def _say(out: Output, profiles: Profiles, name: str, more: str = "") -> None:
    if out.json:
        out.document(_document(profiles, name))
        return
    used = "in use" if profiles.current == name else f"not in use: {profiles.current} is"
    out.say(f"profile {name}: {endpoint(profiles.find(name).url)}, {used}{more}")


def _document(profiles: Profiles, name: str) -> dict[str, str | bool | None]:
    each = profiles.find(name)
    return {
        "name": name,
        "url": str(endpoint(each.url)),
        "token": each.token is not None or endpoint(each.url).token is not None,
        "token_file": each.token_file,
        "current": profiles.current == name,
    }


def _token(profile: Profile) -> str:
    if profile.token_file:
        return f"in {profile.token_file}"
    return "kept here" if profile.token or endpoint(profile.url).token else "-"
