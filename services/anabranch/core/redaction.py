"""Takes credentials out of text that people will read: logs, events, reports.

Nobody can tell every secret from other text. This knows the forms that credentials usually have.
Texts come from anybody, so every pattern takes time in proportion to the text's length: a match
consumes what it scanned, or the scan is bounded.
"""

import re
from collections.abc import Iterator

NAMED = (
    r"(?:token|secret|password|passwd|passphrase|credentials?"
    r"|(?:secret|access|api|private)[_-]?key)"
)
"""How the name of a variable, a flag or a field that holds a secret ends."""

_QUOTE = r"(?:\\{0,8}[\"'])?"
IS = rf"{_QUOTE}\s{{0,8}}(?:[:=]{{1,2}}>?|-?>|%3[ADad])\s{{0,8}}"
"""What stands between a field's name and its value: in JSON within JSON, XML and URLs as well."""
VALUE = (
    # Within a string of JSON: up to the quote that is escaped as often as the first one.
    r"(?:(?P<quote>\\{1,8}[\"'])[^\n]{0,512}?(?<!\\)(?P=quote)"
    r"|\"(?:[^\"\\\n]|\\.)*\"?|'(?:[^'\\\n]|\\.)*'?|[^\s&]+)"
)

_ESCAPES = re.compile(
    r"\x1b\][^\x07\x1b\n]*(?:\x07|\x1b\\)?"  # commands to the terminal, such as its title
    r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"  # colours, and movements of the cursor
    r"|\x1b[ -/]*[0-Z\\-~]?"
)
_INVISIBLE = re.compile(
    r"[^\n\t\x20-\x7e\u00a0-\ud7ff\ue000-\uffef\U00010000-\U0010ffff]"
    # Soft hyphens, characters of no width, and those that turn the direction of writing.
    r"|[\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff"
    r"\U000e0000-\U000e0fff]"
)

_URL = re.compile(r"(?<=://)[^\s\"'<>]+")

_SHAPES = tuple(
    re.compile(each)
    for each in (
        (
            r"(?s)-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY-----"
            r".*?(?:-----END [A-Z0-9 ]{0,40}-----|\Z)"
        ),
        # A JSON Web Token.
        r"(?<![A-Za-z0-9])eyJ[\w-]{5,}(?:\.[\w-]*)*",
        # Access keys of clouds, and tokens with well-known prefixes.
        (
            r"(?<![A-Za-z0-9])(?:(?:AKIA|ASIA)[A-Z0-9]{8,}|AIza[\w-]{16,}"
            r"|npm_(?!config|package|lifecycle)[A-Za-z0-9]{6,}"
            r"|(?:gh[oprsu]_|github_pat_|glpat-|hf_|pypi-|xapp-|xox[a-z]-|sk[-_])[\w-]{6,})"
        ),
        # Headers whose whole value is secret, whatever its scheme.
        (
            rf"(?i)(?P<kept>(?<![A-Za-z])(?:authorization|cookie){IS})"
            r"(?:\"(?:[^\"\\\n]|\\.)*\"?|'(?:[^'\\\n]|\\.)*'?|[^\n]+)"
        ),
        r"(?i)(?P<kept>\b(?:bearer|basic)[\s:=]{1,8})[\w.~+/=-]{6,}",
        rf"(?i)(?P<kept>(?:{NAMED}|signature){IS}){VALUE}",
        rf"(?i)(?P<kept>(?:pass|(?<![A-Za-z])(?:pwd|auth|sig)){IS}){VALUE}",
        r"(?i)(?P<kept>\b(?:password|passphrase)\s{1,8}(?:is|was)[\s:]{1,8})\S+",
        # Nothing like a flag stands before a flag: a line of dashes costs no more than others.
        rf"(?i)(?P<kept>(?<![\w-])--[\w-]{{0,40}}{NAMED}\s{{1,8}})[^\s-]\S*",
        r"(?P<kept>\b(?:mysql|mariadb)[\w-]{0,20}[^\n]{0,200}?\s-p)\S+",
    )
)


def printable(text: str) -> str:
    """Without commands to terminals and without what nobody sees, which could hide a secret."""
    return _INVISIBLE.sub("", _ESCAPES.sub("", text))


def redacted(text: str, instead: str) -> str:
    """Printable text without what looks like a credential."""
    text = _URL.sub(lambda found: _without_user(found[0], instead), text)
    for shape in _SHAPES:
        text = replaced(shape, text, instead)
    return text


def replaced(shape: re.Pattern[str], text: str, instead: str) -> str:
    """Each match is replaced, but for the group `kept` where the shape has one."""
    keeps = "kept" in shape.groupindex
    return shape.sub(lambda found: (found["kept"] if keeps else "") + instead, text)


def credentials_in(text: str) -> Iterator[str]:
    """What stands before the hosts of URLs: tokens, or names with passwords."""
    for url in _URL.findall(text):
        user, at, _ = url.rpartition("@")
        if at:
            yield user


def _without_user(rest: str, instead: str) -> str:
    """Of a URL behind its `://`. A password may hold `/` and `@`, so the last `@` counts."""
    _, at, host = rest.rpartition("@")
    return f"{instead}@{host}" if at else rest
