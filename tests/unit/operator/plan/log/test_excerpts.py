"""What is shown of a failed gate's log."""

import pytest

from anabranch_operator.plan.log.excerpts import REDACTED, excerpt

CHARS_MAX = 900
KEY = "-----BEGIN EC PRIVATE KEY-----\nMHcCAQEEIDummy\nAwEHoUQDQgAE\n-----END EC PRIVATE KEY-----"
SECRETS = {
    "a token of a service account": ("got eyJhbGciOiJSUzI1.eyJpc3Mi.c2ln from it", "eyJ"),
    "a private key": (f"key:\n{KEY}\n", "Dummy"),
    "the end of a private key": (KEY.partition("\n")[2], "AwEHo"),
    "the beginning of a private key": (KEY.rpartition("\n")[0], "Dummy"),
    "a password": ("password: hunter2", "hunter2"),
    "a quoted password": ('{"db_password": "hunter two"}', "two"),
    "a variable": ("ANABRANCH_S3_SECRET_KEY=hunter2", "hunter2"),
    "a flag": ("run --token=hunter2 --verbose", "hunter2"),
    "a query": ("GET /x?access_token=hunter2&limit=1", "hunter2"),
    "a header": ("Authorization: Bearer hunter2", "hunter2"),
    "a scheme alone": ("sent Bearer hunter2", "hunter2"),
    "an address": ("postgres://root:hunter2@db/orders", "hunter2"),
    "a cloud's key": ("used AKIAIOSFODNN7EXAMPLE", "AKIA"),
    "hex": ("digest " + "0a" * 32, "0a0a"),
    "base64": ("read " + "QUJD" * 12 + "==", "QUJD"),
}


@pytest.mark.parametrize("kind", SECRETS)
def test_what_looks_like_a_secret_is_left_out(kind: str) -> None:
    text, secret = SECRETS[kind]
    found = excerpt(text, CHARS_MAX)
    assert secret not in found
    assert REDACTED in found


def test_ordinary_text_stays_and_control_characters_go() -> None:
    text = '\x1b[31mrecord 17 of fork repriced:\x00 price {"price": -5} is negative\r\n'
    shown = 'record 17 of fork repriced: price {"price": -5} is negative'
    assert excerpt(text, CHARS_MAX) == shown


def test_the_end_is_kept_and_a_cut_spares_no_part_of_a_secret() -> None:
    assert excerpt("first\n" * 1_000 + "last", 9).endswith("last")
    secret = "password=" + "hunter2 " * 2
    assert "hunter2" not in excerpt("x" * CHARS_MAX + secret.replace(" ", "_"), 12)
    assert excerpt("s3cr3t" * 10_000, CHARS_MAX) == REDACTED


@pytest.mark.parametrize(
    "text",
    [
        "tok\x00en=hunter2xyz",
        "PGPASSWORD hunter2xyz",
        "with password hunter2xyz",
        "password is hunter2xyz",
        "the token was hunter2xyz",
        "secret_key_data: 'a hunter2xyz'",
        "DB\x1b[31m_PASSWORD\x1b[0m=hunter2xyz",
    ],
)
def test_a_secret_is_left_out_whatever_parts_it_from_its_name(text: str) -> None:
    assert "hunter2" not in excerpt(text, CHARS_MAX)


@pytest.mark.parametrize("piece", ["-", "--a", "eyJ", "-----BEGIN A", "token", "TOKEN", "a-", "A"])
def test_a_line_of_anything_is_shown_or_left_out_at_once(piece: str) -> None:
    assert len(excerpt(piece * 20_000 + "\nend", CHARS_MAX)) <= CHARS_MAX
    assert len(excerpt("first\n" + (piece * 8_000)[:8_100], CHARS_MAX)) <= CHARS_MAX
