"""Profiles: services by name, so that nobody types their addresses.

They are kept in one file of the user's alone, since a profile may hold a token.
"""

import json
import os
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import msgspec

from anabranch.core.errors import BadRequest

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_HEAD = "# Written by `anabranch profile`.\n"


class Profile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Where a service listens, and how to be let in."""

    url: str
    token: str | None = None
    token_file: str | None = None


class Profiles(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All profiles, and the name of the one in use."""

    current: str = ""
    profiles: dict[str, Profile] = {}

    def find(self, name: str) -> Profile:
        try:
            return self.profiles[name]
        except KeyError:
            known = ", ".join(sorted(self.profiles)) or "none: `anabranch profile add` makes one"
            raise BadRequest(f"profile {name}", f"there is no such profile, only {known}") from None

    def added(self, name: str, profile: Profile, *, use: bool) -> "Profiles":
        if not _NAME.fullmatch(name):
            reason = "letters, digits, '.', '_' and '-' are allowed, 63 at most"
            raise BadRequest(f"profile {name!r}", reason)
        current = name if use or not self.profiles else self.current
        return Profiles(current, {**self.profiles, name: profile})

    def removed(self, name: str) -> "Profiles":
        self.find(name)
        rest = {each: found for each, found in self.profiles.items() if each != name}
        return Profiles("" if self.current == name else self.current, rest)

    def using(self, name: str) -> "Profiles":
        self.find(name)
        return Profiles(name, self.profiles)


def location() -> Path:
    """The file below XDG_CONFIG_HOME; a relative path there is ignored, as the XDG rules demand."""
    config = Path(os.environ.get("XDG_CONFIG_HOME", ""))
    home = config if config.is_absolute() else Path.home() / ".config"
    return home / "anabranch" / "profiles.toml"


def load(path: Path) -> Profiles:
    """Read the profiles; there are none if there is no file."""
    try:
        if path.exists() and not path.is_file():
            # A pipe or a device might never end.
            raise BadRequest(f"the profiles in {path}", "it isn't a file")
        found = tomllib.loads(path.read_text(encoding="utf-8"))
        return msgspec.convert(found, Profiles)
    except FileNotFoundError:
        return Profiles()
    except (OSError, ValueError, RecursionError) as wrong:
        raise BadRequest(f"the profiles in {path}", str(wrong)) from None


def save(path: Path, profiles: Profiles) -> None:
    """Replace the file at once; only the user can read it, from its first byte on."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    new = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write("".join(_toml(profiles)).encode())
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)


def _toml(profiles: Profiles) -> Iterator[str]:
    yield _HEAD
    if profiles.current:
        yield f"current = {_quoted(profiles.current)}\n"
    for name, profile in sorted(profiles.profiles.items()):
        yield f"\n[profiles.{_quoted(name)}]\n"
        for field, value in msgspec.to_builtins(profile).items():
            yield f"{field} = {_quoted(value)}\n"


def _quoted(text: str) -> str:
    """A string of JSON is a basic string of TOML, but for DEL, which TOML wants escaped."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
