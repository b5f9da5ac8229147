"""What only HTTP can get wrong, as errors of the one hierarchy."""

from anabranch.core.errors import Mistake, Retry


class NoSuchPath(Mistake):
    code = "no-such-path"
    status = 404
    says = "nothing is served at {path}: GET / says what is, /openapi.json describes all of it"

    def __init__(self, path: str) -> None:
        super().__init__(path=path)


class MethodNotAllowed(Mistake):
    code = "method-not-allowed"
    status = 405
    says = "{path} doesn't take {method}: use {allowed}"

    def __init__(self, path: str, method: str, allowed: str) -> None:
        super().__init__(path=path, method=method, allowed=allowed)


class MalformedBody(Mistake):
    code = "malformed-body"
    status = 400
    says = "the request's body can't be read: {reason}; nothing was done"

    def __init__(self, reason: str) -> None:
        super().__init__(reason=reason)


class BodyTooLarge(Mistake):
    code = "body-too-large"
    status = 413
    says = (
        "a body of {size} bytes or more is over the limit of {limit} at {path}: send less at once"
    )

    def __init__(self, path: str, size: int, limit: int) -> None:
        super().__init__(path=path, size=size, limit=limit)


class BodyTooSlow(Retry):
    code = "body-too-slow"
    status = 408
    says = "the request's body didn't arrive within {limit_ms} ms; nothing was done, send it again"

    def __init__(self, limit_ms: int) -> None:
        super().__init__(limit_ms=limit_ms)


class HeadersTooLarge(Mistake):
    code = "headers-too-large"
    status = 431
    says = "path and headers of {size} bytes are over the limit of {limit}: send fewer"

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(size=size, limit=limit)


class UnsupportedMedia(Mistake):
    code = "unsupported-media"
    status = 415
    says = "a body with {header} {given!r} isn't taken at {path}: send {wanted}"

    def __init__(self, path: str, header: str, given: str, wanted: str) -> None:
        super().__init__(path=path, header=header, given=given, wanted=wanted)


class ForeignOrigin(Mistake):
    """A page from elsewhere makes its reader's browser ask: without a token that must not work."""

    code = "foreign-origin"
    status = 403
    says = (
        "{header} {given!r} isn't this server's own: call it as localhost or by its address, or "
        "start it with a token and send that"
    )

    def __init__(self, header: str, given: str) -> None:
        super().__init__(header=header, given=given)


class EventOfAnotherLog(Mistake):
    """An `EventSource` doesn't reconnect after it: else it would go on in a log it never read."""

    code = "event-of-another-log"
    status = 410
    says = (
        "Last-Event-ID {event} is of another log than {log} is now, whose events have ids that "
        "begin with {id}: forget what that one gave, and subscribe anew with from="
    )

    def __init__(self, event: str, log: str, id: int) -> None:
        super().__init__(event=event, log=log, id=id)


class UnknownCursor(Mistake):
    code = "unknown-cursor"
    status = 404
    says = "{log} keeps no cursor {cursor}: PUT one first"

    def __init__(self, log: str, cursor: str) -> None:
        super().__init__(log=log, cursor=cursor)


class UnknownWriter(Mistake):
    code = "unknown-writer"
    status = 404
    says = (
        "{log} itself remembers no writer {writer}: GET /v1/logs/{log}/writers lists those that it "
        "does, and a log above it may know more"
    )

    def __init__(self, log: str, writer: str) -> None:
        super().__init__(log=log, writer=writer)


class ClientGone(Retry):
    """Said to nobody: whoever asked has hung up."""

    code = "client-gone"
    status = 499
    says = "the client hung up before its answer was there"

    def __init__(self) -> None:
        super().__init__()
