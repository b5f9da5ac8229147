"""What is told of a port where something else listens than was expected: HTTP, TLS, or no TLS."""

import ssl

_HTTP = b"HTTP"
_TLS = (b"\x15\x03", b"\x16\x03")
"""An alert or a handshake."""


def guess(begin: bytes, tls_scheme: str | None) -> str | None:
    """What listens there, by how it began to speak; None if that is how frames begin, or unknown.

    `tls_scheme`: what to write for TLS; None where TLS is used already.
    """
    if begin.startswith(_HTTP):
        return "HTTP is spoken there: give the port of the binary protocol instead"
    if tls_scheme is not None and begin.startswith(_TLS):
        return f"TLS is spoken there: write {tls_scheme}://"
    if tls_scheme is not None and not begin:
        return (
            "the server closed the connection without a word; if TLS is spoken there, write "
            f"{tls_scheme}://"
        )
    return None


def untrusted(error: ssl.SSLError, plain_scheme: str) -> str:
    """Why no TLS came about."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return (
            f"its certificate isn't trusted ({error.verify_message}): name the authority with "
            "?ca=FILE"
        )
    return f"it doesn't speak TLS ({error.reason}): if it speaks plainly, write {plain_scheme}://"
