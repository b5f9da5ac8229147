"""What is told of a port where something else listens than was expected: HTTP, TLS, or no TLS."""

import ssl

from anabranch.client.session.endpoint import SCHEME, TLS_SCHEME

_HTTP = b"HTTP"
_TLS = (b"\x15\x03", b"\x16\x03")
"""An alert or a handshake."""


def guess(begin: bytes, *, over_tls: bool) -> str | None:
    """What it is, by how it began to speak; None if that is how frames begin, or unknown."""
    if begin.startswith(_HTTP):
        return "HTTP is spoken there: give the port of the binary protocol instead"
    if begin.startswith(_TLS):
        return f"TLS is spoken there: write {TLS_SCHEME}://"
    if not begin and not over_tls:
        return (
            "the server closed the connection without a word; if TLS is spoken there, write "
            f"{TLS_SCHEME}://"
        )
    return None


def untrusted(error: ssl.SSLError) -> str:
    """Why no TLS came about."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return (
            f"its certificate isn't trusted ({error.verify_message}): name the authority with "
            "?ca=FILE"
        )
    return f"it doesn't speak TLS ({error.reason}): if it speaks plainly, write {SCHEME}://"
