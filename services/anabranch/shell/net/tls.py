"""TLS for listeners and for those who dial them: certificates from files, and no choice of ciphers.

Between peers both sides show a certificate of the same authority. Clients show none, unless the
listener is given an authority to check theirs by.

The files are looked at before each handshake: what has been renewed is used from the next one on,
and connections that are open stay. Files that don't belong together are passed over until they do.
"""

import asyncio
import ssl
from functools import partial
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import cast

import msgspec

from anabranch.core.errors import BadRequest
from anabranch.shell.net.reload import Renewed
from anabranch.shell.telemetry.log import Log

_Certificate = dict[str, tuple[tuple[str, str], ...]]
_NAMES = "subjectAltName"


class TlsSettings(msgspec.Struct, frozen=True, kw_only=True):
    """None of the three: no TLS."""

    cert: str = ""
    """File with the certificate to show, in PEM, its chain behind it."""

    key: str = ""
    """File with the private key of that certificate."""

    ca: str = ""
    """File with the certificates of the authority that the other side's is checked by."""

    def __bool__(self) -> bool:
        return bool(self.cert or self.key or self.ca)

    @property
    def files(self) -> tuple[str, ...]:
        return tuple(filter(None, (self.cert, self.key, self.ca)))


def dialing(settings: TlsSettings, log: Log | None = None) -> Renewed[ssl.SSLContext] | None:
    """For who dials, again and again; None where nothing of TLS is set."""
    return trusting(settings, log) if settings else None


def trusting(settings: TlsSettings, log: Log | None = None) -> Renewed[ssl.SSLContext]:
    """For who dials; with no authority named, those of this machine are trusted."""
    return Renewed(settings.files, partial(_for_dialing, settings), log)


def listening(
    settings: TlsSettings, log: Log | None = None, *, strangers: bool = False
) -> ssl.SSLContext | None:
    """For a listener; with an authority, only those with a certificate of its are let in, or also
    strangers, who show none: then whoever listens has to look.

    A listener keeps the context it was given: this one hands each handshake to the newest.
    """
    if not settings:
        return None
    renewed = Renewed(settings.files, partial(_for_listening, settings, strangers), log)
    outer = _for_listening(settings, strangers)

    def hand_on(tls: ssl.SSLObject | ssl.SSLSocket, name: str | None, _: ssl.SSLContext) -> None:
        tls.context = renewed.current()

    outer.sni_callback = hand_on  # pyright: ignore[reportAttributeAccessIssue] - as documented
    return outer


def bears_name(transport: asyncio.Transport, name: str) -> bool:
    """Whether the certificate that the other side has shown was issued for this host or address.

    The authority alone proves too little: it may have signed for others too, such as clients, or
    for a whole company.
    """
    certificate = cast("_Certificate", transport.get_extra_info("peercert") or {})
    return any(_covers(kind, pattern, name) for kind, pattern in certificate.get(_NAMES, ()))


def _covers(kind: str, pattern: str, name: str) -> bool:
    """As RFC 9525 has it: a wildcard stands for the whole first label."""
    if kind == "IP Address":
        return _address(pattern) is not None and _address(pattern) == _address(name)
    if kind != "DNS":
        return False
    pattern, name = pattern.lower().rstrip("."), name.lower().rstrip(".")
    if pattern.startswith("*."):
        label, dot, rest = name.partition(".")
        return bool(label and dot) and rest == pattern[2:]
    return pattern == name


def _address(text: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(text.strip())
    except ValueError:
        return None


def check_mutual(settings: TlsSettings, name: str) -> None:
    """Both sides must be known to each other: half a configuration protects nothing."""
    if settings and not (settings.cert and settings.key and settings.ca):
        reason = "give all three of cert, key and ca, or none: both sides show a certificate"
        raise BadRequest(name, reason)


def _for_listening(settings: TlsSettings, strangers: bool) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    _load(context, settings)
    if settings.ca:
        context.verify_mode = ssl.CERT_OPTIONAL if strangers else ssl.CERT_REQUIRED
        # A session that is resumed isn't checked by the authority of today.
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.num_tickets = 0
    return context


def _for_dialing(settings: TlsSettings) -> ssl.SSLContext:
    """The listener's certificate must name the host that was dialed."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    _load(context, settings)
    if not settings.ca:
        context.load_default_certs()
    return context


def check_files(settings: TlsSettings) -> None:
    """Raises BadRequest if they can't be read, or don't belong together."""
    _load(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), settings)


def _load(context: ssl.SSLContext, settings: TlsSettings) -> None:
    if settings.key and not settings.cert:
        raise BadRequest("tls", f"the key {settings.key} has no certificate: give one")
    try:
        if settings.ca:
            context.load_verify_locations(settings.ca)
        if settings.cert:
            context.load_cert_chain(settings.cert, settings.key or None)
    except (OSError, ssl.SSLError) as error:
        files = ", ".join(settings.files)
        reason = f"{error.strerror or error}: they must be readable PEM files that belong together"
        raise BadRequest(f"the TLS files {files}", reason) from None
