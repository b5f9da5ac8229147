"""The end of a log as it may be shown: bounded, printable, and without what looks like a secret.

Nobody can tell every secret from other text. So logs are shown only where somebody has asked for
that, and this takes out the forms that credentials usually have.
"""

import re

from anabranch_operator.api.anabranch_names import IS, NAMED, VALUE, printable, redacted, replaced

REDACTED = "[redacted]"

_CHARS_MAX = 8_192
"""What is looked at; the patterns below take time for each."""
_WIDE = tuple(
    re.compile(each)
    for each in (
        # A key between its lines, of which the first or the last may be missing.
        r"(?s)-----BEGIN [A-Z0-9 ]{1,40}-----.*?(?:-----END [A-Z0-9 ]{1,40}-----|\Z)",
        r"(?s)\A.*?-----END [A-Z0-9 ]{1,40}-----",
        # Long runs of what keys are written in: base64, or hex.
        r"[A-Za-z0-9+/_=-]{32,}",
        # Names that go on behind what makes them secret, as in `secret_key_file: x`.
        rf"(?i)(?P<kept>(?:{NAMED}|pass|authorization)[\w.-]{{0,64}}{IS}){VALUE}",
        r"(?i)(?P<kept>\b(?:token|secret|credentials?|key)\s{1,8}(?:is|was)[\s:]{1,8})\S+",
        r"(?i)(?P<kept>\b(?:bearer|basic)[\s:=]{1,8})\S+",
        r"(?i)(?P<kept>\b\w{0,40}(?:password|passwd|passphrase)[ \t]{1,8})\S+",
        # The name of a variable and its value.
        r"(?P<kept>\b[A-Z0-9_]{0,40}(?:PWD|SECRET|TOKEN|KEY)[ \t]{1,8})\S+",
    )
)
"""Ordinary text looks like this as well; whoever may read a Fork may read an excerpt."""


def excerpt(text: str, chars_max: int) -> str:
    """The last characters, cut after redaction: half of a secret wouldn't be recognized.

    What nobody sees is taken out before that: it could part a secret from its name.
    """
    if len(text) > _CHARS_MAX:
        # The first line that is left may begin within a secret.
        text = text[-_CHARS_MAX:].partition("\n")[2] or REDACTED
    text = redacted(printable(text), REDACTED)
    for shape in _WIDE:
        text = replaced(shape, text, REDACTED)
    return text.strip()[-chars_max:]
