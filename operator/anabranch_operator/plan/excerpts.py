"""The end of a log as it may be shown: bounded, printable, and without what looks like a secret.

Nobody can tell every secret from other text. So logs are shown only where somebody has asked for
that, and this takes out the forms that credentials usually have.
"""

import re

REDACTED = "[redacted]"

_CHARS_MAX = 8_192
"""What is looked at; the patterns below take time for each."""
_LABELLED = r"pass(?:word|wd|phrase)?|secret|token|(?:api|access|private)[-_]?key"
_RULES: tuple[tuple[re.Pattern[str], str], ...] = (
    # A key between its lines, of which the first or the last may be missing.
    (re.compile(r"(?s)-----BEGIN [A-Z0-9 ]+-----.*?(?:-----END [A-Z0-9 ]+-----|\Z)"), REDACTED),
    (re.compile(r"(?s)\A.*?-----END [A-Z0-9 ]+-----"), REDACTED),
    # Long runs of what keys are written in: base64, or hex.
    (re.compile(r"[A-Za-z0-9+/_=-]{32,}"), REDACTED),
    # The user's part of an address.
    (re.compile(r"(?<=://)[^\s/@]+@"), f"{REDACTED}@"),
    (re.compile(r"(?i)\b(bearer|basic)\s+\S+"), rf"\1 {REDACTED}"),
    # `password: x`, `"api_key": "x"`, `--token=x`, `?token=x`, also where the name goes on.
    (
        re.compile(
            rf"(?i)((?:{_LABELLED}|credentials?|authorization)[\w.-]{{0,64}}[\"']?\s{{0,8}}[:=]\s*)"
            r"(\"[^\"\n]*\"?|'[^'\n]*'?|[^\s,;&]+)"
        ),
        rf"\1{REDACTED}",
    ),
    # A JSON Web Token, as service accounts have.
    (re.compile(r"\beyJ[\w-]+(?:\.[\w-]*)*"), REDACTED),
    # Access keys of clouds, and tokens with well-known prefixes.
    (re.compile(r"\b(?:AKIA|ASIA|ghp_|gho_|ghs_|github_pat_|glpat-|xox[abp]-|sk-)\w+"), REDACTED),
)
_CONTROL = re.compile(r"[^\n\t\x20-\x7e\u00a0-\ud7ff\ue000-\uffef\U00010000-\U0010ffff]")


def excerpt(text: str, chars_max: int) -> str:
    """The last characters, cut after redaction: half of a secret may not be told as one."""
    if len(text) > _CHARS_MAX:
        # The first line that is left may begin within a secret.
        text = text[-_CHARS_MAX:].partition("\n")[2] or REDACTED
    for pattern, instead in _RULES:
        text = pattern.sub(instead, text)
    return _CONTROL.sub("", text).strip()[-chars_max:]
