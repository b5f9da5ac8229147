"""What errors advise somebody who speaks HTTP to do.

An error says of itself what a program of our client can do. Those below say it in paths, fields and
headers.
"""

_NO_SUCH = "{log} is a log of the {engine} engine, and these have no "
_BOLT_ONLY = ": only bolt logs have, which POST /v1/logs makes"

WORDS = {
    "fork-moved": (
        "{log} has {found} records of its own where {expected} were expected, so it wasn't "
        "promoted: judge it as it is now, and POST /v1/logs/{log}/promote with expect_own {found}, "
        "or POST /v1/logs/{log}/squash"
    ),
    "is-root": "{log} is a root log, which can't be squashed: DELETE /v1/logs/{log}",
    "lazy-appends-only": (
        "appends to {log} were made lazy while this one was on its way, and it wasn't appended: "
        "repeat it"
    ),
    "log-has-forks": (
        "{log} has {forks} forks: squash them first, or DELETE it with ?force=true, which squashes "
        "its continuous forks and lets severed ones keep what they need"
    ),
    "not-root": "{log} is a fork, which can't be deleted as a log: POST /v1/logs/{log}/squash",
    "quota-exceeded": (
        "{log} may take {limit} ({quota}), and {used} are used at the moment: try again in "
        "{retry_after_ms} ms, send less, or have more allowed with PUT /v1/logs/{log}/quota"
    ),
    "read-blocked": (
        "{log} can't be read at {position} while promotable fork {fork} is undecided: promote or "
        "squash it, read before its fork point, or GET /v1/logs/{log}/subscribe, which gives these "
        "records as speculative"
    ),
    "receipt-pending": (
        "the position on {log} is withheld while promotable fork {fork} is undecided: ask again "
        "after it is promoted or squashed, or with wait_ms"
    ),
    "request-reused": (
        "this Idempotency-Key was used before, for something else or by somebody else, and nothing "
        "was done now: choose another key, or repeat exactly what was asked first"
    ),
    "unauthenticated": (
        "the token isn't accepted: {reason}; send `Authorization: Bearer TOKEN` with a service "
        "account's token for the audience {audience}"
    ),
    "unauthorized": "no valid token was given: send `Authorization: Bearer TOKEN`",
    "unknown-broker": "there is no broker {broker}: GET /v1/brokers shows the pool",
    "unknown-log": "there is no log {log}: GET /v1/logs lists what there is",
    "wrong-engine": (
        "{log} is a log of the {engine} engine, which takes no {asked} over HTTP: use the Python "
        "client or the command line"
    ),
    "wrong-engine/comparison": _NO_SUCH + "forks that could be compared" + _BOLT_ONLY,
    "wrong-engine/cursor": _NO_SUCH + "cursors" + _BOLT_ONLY,
    "wrong-engine/fork": _NO_SUCH + "forks" + _BOLT_ONLY,
    "wrong-engine/look-up by time": _NO_SUCH + "positions by time" + _BOLT_ONLY,
    "wrong-engine/scan": _NO_SUCH + "scan plans" + _BOLT_ONLY,
    "wrong-engine/set sum": _NO_SUCH + "set sums" + _BOLT_ONLY,
    "wrong-engine/version to complete": _NO_SUCH + "writers" + _BOLT_ONLY,
    "wrong-engine/writer mark": _NO_SUCH + "writers" + _BOLT_ONLY,
    "wrong-engine/writer to release": _NO_SUCH + "writers" + _BOLT_ONLY,
}
