"""What errors advise somebody at a command line to do.

An error says of itself what a program can do. Those below say it in commands and options.
"""

WORDS = {
    "append-blocked": (
        "{log} takes no appends while promotable fork {fork} of an ancestor is undecided, and "
        "nothing was appended: decide it with `anabranch promote {fork}` or `anabranch squash "
        "{fork}`, or append to a promotable fork"
    ),
    "fork-moved": (
        "{log} has {found} records of its own where {expected} were expected, so it wasn't "
        "promoted: look at them again, and promote it with `anabranch promote {log} --expect-own "
        "{found}` or squash it with `anabranch squash {log}`"
    ),
    "is-root": "{log} is a root log, which can't be squashed: `anabranch log delete {log}`",
    "last-shard": (
        "shard {shard} is the last open one of its log: open another with `anabranch erwin "
        "open-shard`, or add one, before you close it"
    ),
    "log-exists": "{log} exists already: choose another name, or pass --if-missing",
    "log-has-forks": (
        "{log} has {forks} forks: squash them first, or pass --force, which squashes its "
        "continuous forks and lets severed ones keep what they need"
    ),
    "not-offered": (
        "{log} is a log of the {engine} engine, and these have no forks, cursors, "
        "sums and writers: only bolt logs have, which `anabranch log create NAME` makes"
    ),
    "not-root": "{log} is a fork, which can't be deleted as a log: `anabranch squash {log}`",
    "quota-exceeded": (
        "{log} may take {limit} ({quota}), and {used} are used at the moment: try again in "
        "{retry_after_ms} ms, send less, or have more allowed with `anabranch log quota {log}`"
    ),
    "read-blocked": (
        "{log} can't be read at {position} while promotable fork {fork} is undecided: read before "
        "its fork point, promote or squash it, or see the records as speculative with `anabranch "
        "tail {log} --speculative`"
    ),
    "receipt-pending": (
        "the position on {log} is withheld while promotable fork {fork} is undecided: redeem the "
        "receipt after `anabranch promote {fork}` or `anabranch squash {fork}`, or pass --wait"
    ),
    "request-reused": (
        "the --request-id was used before, for other records or by somebody else, and nothing was "
        "done now: choose another id, or repeat exactly what was sent first"
    ),
    "unauthenticated": (
        "the token isn't accepted: {reason}; show a service account's token for the audience "
        "{audience}: ?token_file=FILE of a projected one, or --token of one that `kubectl create "
        "token NAME --audience {audience}` makes"
    ),
    "unauthorized": (
        "no valid token was given: pass one with --token or ANABRANCH_TOKEN, or keep it in a "
        "profile (`anabranch profile add`)"
    ),
    "unknown-broker": "there is no broker {broker}: `anabranch brokers` shows the pool",
    "unknown-log": "there is no log {log}: `anabranch log list` shows what there is",
    "unknown-shard": "there is no shard {shard}: `anabranch status LOG` shows which there are",
    "wrong-engine/append": (
        "{log} is a log of the {engine} engine, where a request id goes with a shard: pass "
        "--shard as well, with one of those that `anabranch status {log}` shows"
    ),
}
