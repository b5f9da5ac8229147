"""Who is shown a user's password, and what a file that says so may hold."""

import os
from pathlib import Path

import pytest
from tests.certificates import Issuer

from anabranch.core.errors import BadRequest
from anabranch.shell.kafka.access import KafkaAccess, check

SERVERS = ("a:1", "b:1")
USER = 'mechanism = "SCRAM-SHA-256"\nuser = "me"\npassword_file = "password"\n'


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "password").write_text("secret\n")
    return tmp_path / "kafka.toml"


def say(file: Path, told: str, servers: str = '"a:1", "b:1", "c:1"') -> str:
    file.write_text(f"[[kafka]]\nservers = [{servers}]\n{told}")
    return str(file)


def test_a_user_is_shown_to_the_servers_beside_it_and_to_no_other(file: Path) -> None:
    access = KafkaAccess(SERVERS, say(file, USER)).current()
    assert access == {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "SCRAM-SHA-256",
        "sasl_plain_username": "me",
        "sasl_plain_password": "secret",
    }
    assert KafkaAccess(("elsewhere:1",), str(file)).current() == {}
    assert KafkaAccess(SERVERS).current() == {}
    with pytest.raises(BadRequest, match="but not elsewhere:1: add them"):
        KafkaAccess(("a:1", "elsewhere:1"), str(file))


def test_a_password_that_was_changed_is_shown_from_then_on(file: Path) -> None:
    access = KafkaAccess(SERVERS, say(file, USER))
    before = access.current()
    assert access.current() is before
    renewed = file.parent / "renewed"
    renewed.write_text("another")
    os.replace(renewed, file.parent / "password")
    assert access.current() is not before
    assert access.current()["sasl_plain_password"] == "another"


def test_with_tls_servers_are_checked_by_the_authority_of_the_file(file: Path) -> None:
    shown = Issuer(file.parent / "certificates").issue("me")
    names = f'ca = "{shown.ca}"\ncert = "certificates/me/cert"\nkey = "certificates/me/key"\n'
    access = KafkaAccess(SERVERS, say(file, f"tls = true\n{names}")).current()
    assert access["security_protocol"] == "SSL"
    (authority,) = access["ssl_context"].get_ca_certs()
    assert authority["subject"] == ((("commonName", "ca"),),)
    assert access["ssl_context"].check_hostname


@pytest.mark.parametrize(
    ("told", "complaint"),
    [
        ('mechanism = "PLAIN"\nuser = "me"\npassword = "p"', "set tls = true"),
        ('mechanism = "GSSAPI"\nuser = "me"\npassword = "p"', "mechanism"),
        ('mechanism = "SCRAM-SHA-512"\nuser = "me"', "user or user_file, and password or"),
        (USER + 'password = "p"', "user or user_file, and password or"),
        ('user = "me"\npassword = "p"', "a user needs a mechanism"),
        ('ca = "ca.crt"', "are for tls = true"),
        ('tls = true\ncert = "c"', "both of cert and key"),
        ('tls = true\nca = "nowhere"', "its certificates can't be used"),
        (USER.replace('"password"', '"nowhere"'), "nowhere: No such file"),
        ('secret = "hunter2"', "unknown field"),
        ("tls = maybe", "it isn't TOML"),
    ],
)
def test_what_can_not_be_used_is_refused_without_repeating_a_password(
    file: Path, told: str, complaint: str
) -> None:
    with pytest.raises(BadRequest, match=complaint) as refused:
        check(say(file, told))
    assert "hunter2" not in refused.value.message
    assert "secret" not in refused.value.message.replace("`secret`", "")


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadRequest, match=r"kafka\.toml: No such file"):
        KafkaAccess(SERVERS, str(tmp_path / "kafka.toml"))
