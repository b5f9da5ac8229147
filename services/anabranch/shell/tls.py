"""TLS for listeners and for those who dial them: certificates from files, and no choice of ciphers.

Between peers both sides show a certificate of the same authority. Clients show none, unless the
listener is given an authority to check theirs by.
"""

import ssl

import msgspec

from anabranch.core.errors import BadRequest


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


def listening(settings: TlsSettings) -> ssl.SSLContext | None:
    """For a listener; with an authority, only those with a certificate of its are let in."""
    if not settings:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    _load(context, settings)
    if settings.ca:
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def dialing(settings: TlsSettings) -> ssl.SSLContext | None:
    """For who dials: the listener's certificate must name the host that was dialed."""
    if not settings:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    _load(context, settings)
    if not settings.ca:
        context.load_default_certs()
    return context


def check_mutual(settings: TlsSettings, name: str) -> None:
    """Both sides must be known to each other: half a configuration protects nothing."""
    if settings and not (settings.cert and settings.key and settings.ca):
        reason = "give all three of cert, key and ca, or none: both sides show a certificate"
        raise BadRequest(name, reason)


def _load(context: ssl.SSLContext, settings: TlsSettings) -> None:
    if settings.key and not settings.cert:
        raise BadRequest("tls", f"the key {settings.key} has no certificate: give one")
    try:
        if settings.ca:
            context.load_verify_locations(settings.ca)
        if settings.cert:
            context.load_cert_chain(settings.cert, settings.key or None)
    except (OSError, ssl.SSLError) as error:
        files = ", ".join(filter(None, (settings.cert, settings.key, settings.ca)))
        reason = f"{error.strerror or error}: they must be readable PEM files that belong together"
        raise BadRequest(f"the TLS files {files}", reason) from None
