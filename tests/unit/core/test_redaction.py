"""What is taken out of any text that people will read."""

import pytest

from anabranch.core.redaction import credentials_in, printable, redacted

INSTEAD = "[redacted]"
SECRET = "hunter2xyz"
TEXTS = (
    "tok\x00en=hunter2xyz",
    "tok\u200ben=hunter2xyz",
    "token=\x1b[31mhunter2xyz\x1b[0m",
    "\x1b[1mpass\x1b[0mword\x1b[32m:\x1b[0m hunter2xyz",
    "\x1b]0;title\x07to\x9b1mken=hunter2xyz",
    "password is hunter2xyz",
    "Password was: hunter2xyz",
    "mysql -u root -phunter2xyz orders",
    "PWD=hunter2xyz",
    "db_pass: hunter2xyz",
    "HTTP_COOKIE=a=b; c=hunter2xyz",
    "connect user=a pwd=hunter2xyz",
    "GET /?auth=hunter2xyz&x=1",
    "https://store/blob?sv=1&sig=hunter2xyz%3D",
    "password => hunter2xyz",
    "password -> hunter2xyz",
    "password := hunter2xyz",
    "<password>hunter2xyz</password>",
    "?q=password%3Dhunter2xyz",
    "Bearer: hunter2xyz",
    "Cookie: session=hunter2xyz; theme=dark",
    "Set-Cookie: a=b; id=hunter2xyz",
    "found hf_hunter2xyz there",
    "found npm_hunter2 there",
    "found ghp_hunter2xyz there",
    "found glpat-hunter2xyz there",
    "found xoxb-1-hunter2xyz there",
    "found sk-hunter2xyz there",
    "https://user:pa/hunter2xyz@host/path",
    "postgres://u:p@hunter2xyz@host/db",
    "https://hunter2xyz@host",
    '{"password": "a\\"hunter2xyz", "x": 1}',
    r'{"msg": "{\"password\": \"a hunter2xyz\"}"}',
    r'{"msg": "{\"password\": \"a\\\"hunter2xyz\"}"}',
    "{'token': 'a hunter2xyz'}",
    "password=one,hunter2xyz",
    "Authorization: token hunter2xyz",
    "authorization: Negotiate hunter2xyz",
    'Authorization: Digest username="a", response="hunter2xyz"',
    '{"Authorization": "token hunter2xyz", "x": 1}',
    "Proxy-Authorization: Basic hunter2xyz",
    "run --db-password hunter2xyz",
    "-----BEGIN EC PRIVATE KEY-----\nhunter2xyz\n",
)


@pytest.mark.parametrize("text", TEXTS)
def test_a_secret_is_taken_out(text: str) -> None:
    found = redacted(printable(text), INSTEAD)
    assert "hunter2" not in found
    assert INSTEAD in found


@pytest.mark.parametrize(
    "text",
    [
        "secretName: demo-peer-tls",
        "image digest sha256:0a1b",
        "https://host:443/path?from=3",
        "author: somebody",
        "npm_config_cache is set",
        "task-number-seventeen",
        "the password isn't set",
        "line one\n\tline two, café",
    ],
)
def test_ordinary_text_stays(text: str) -> None:
    assert redacted(printable(text), INSTEAD) == text


def test_what_follows_a_secret_stays() -> None:
    assert redacted("https://u:p@ss@host/db up", INSTEAD) == "https://[redacted]@host/db up"
    assert redacted('{"token": "a\\"b", "x": 1}', INSTEAD) == '{"token": [redacted], "x": 1}'
    assert redacted("GET /?token=a&limit=1", INSTEAD) == "GET /?token=[redacted]&limit=1"


def test_credentials_of_urls_are_found_to_their_end() -> None:
    assert list(credentials_in("a http://u:p/a@h:1/x, http://h/ http://t@h")) == ["u:p/a", "t"]


PIECES = (
    "-", "--a", "eyJ", "eyJa.", "-eyJaaaaa", "token", "token=\\\"", "token ", "token=>", "bearer:",
    "://", "://a@",
    "-----BEGIN ", "-----BEGIN PRIVATE KEY-----", "bearer ", "cookie:", "authorization: \"",
    "password is ", "mysql ", "mysql -p ", "sk-", "xoxb-", "AKIA", "password=\"\\\\", "\\\"", "\\",
    " ", "\x1b", "\x1b[", "\x1b]", "\x9b0", "sig=", "api", "a.", "=",
)  # fmt: skip


@pytest.mark.parametrize("piece", PIECES)
def test_a_long_line_takes_time_in_proportion_to_its_length(piece: str) -> None:
    """With a search that begins anew at each character this would take minutes."""
    text = piece * 20_000
    assert len(redacted(printable(text), INSTEAD)) <= len(text) + len(INSTEAD) * 20_000
