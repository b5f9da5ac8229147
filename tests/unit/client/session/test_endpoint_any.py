"""Addresses as any text: read, or refused as an address; and shown so that they are read again."""

from string import ascii_letters, digits
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from anabranch.client.session.endpoint import (
    Address,
    Endpoint,
    address,
    belfast_endpoint,
    endpoint,
)
from anabranch.core.errors import BadRequest
from anabranch.shell.net.tls import TlsSettings

labels = st.text(ascii_letters.lower() + digits, min_size=1, max_size=8)
hosts = st.one_of(
    st.lists(labels, min_size=1, max_size=3).map(".".join),
    st.ip_addresses(v=4).map(str),
    st.ip_addresses(v=6).map(str),
)
addresses = st.builds(Address, hosts, st.integers(0, 65_535))
files = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)
tls = st.none() | st.builds(TlsSettings, ca=files, cert=files, key=files)


@st.composite
def endpoints(draw: st.DrawFn) -> Endpoint:
    over = draw(tls)
    return Endpoint(
        tuple(draw(st.lists(addresses, min_size=1, max_size=3))),
        None,
        over,
        draw(files),
        (draw(hosts) if draw(st.booleans()) else None) if over is not None else None,
        draw(st.just("") | labels),
    )


@settings(max_examples=150)
@given(endpoints())
def test_an_endpoint_that_is_shown_is_read_as_the_same(shown: Endpoint) -> None:
    read = belfast_endpoint if shown.cluster else endpoint
    assert read(str(shown)) == shown


@given(st.text("abcXYZ019-_.~", min_size=1, max_size=12), endpoints())
def test_a_token_is_read_and_never_shown(token: str, where: Endpoint) -> None:
    scheme, _, rest = str(where._replace(token_file="")).partition("://")
    read = belfast_endpoint if where.cluster else endpoint
    found = read(f"{scheme}://{token}@{rest}")
    assert found.token == token
    assert str(found) == str(where._replace(token_file=""))


texts = st.one_of(
    st.text(max_size=30),
    st.text("ab01:/@?#&=,.[]%", max_size=30),
    st.text("ab01:/@?#&=,.[]%", max_size=20).map("anabranch://".__add__),
    st.text("ab01:/@?#&=,.[]%", max_size=20).map("belfasts://a:1/c?".__add__),
)


@settings(max_examples=300)
@given(texts)
@example("anabranch://[")
@example("anabranch://a:99999999999999999999")
@example("host:\u00b2")
@example("a?token_file=%ff")
@example("\ud800")
@example("//")
@example("a\tb:1")
def test_any_text_is_an_address_or_refused_as_one(text: str) -> None:
    for read in (endpoint, belfast_endpoint):
        try:
            found = read(text)
        except BadRequest:
            continue
        assert found.addresses
        assert all(each.host and 0 <= each.port < 65_536 for each in found.addresses)
        assert bool(found.cluster) == (read is belfast_endpoint)


@settings(max_examples=300)
@given(st.text(max_size=20) | st.text("ab01:.[]%@/,", max_size=20))
@example("a:65536")
@example("[::1]:-1")
@example("a:1:2")
@example("\u3002")
def test_any_text_that_a_broker_is_advertised_as_is_one_address_or_refused(text: str) -> None:
    try:
        found = address(text)
    except BadRequest:
        return
    assert address(str(found)) == found
    assert "," not in found.host


@pytest.mark.parametrize("wrong", [None, b"host", 7, ["host"]])
def test_what_is_no_text_is_refused(wrong: Any) -> None:
    for read in (endpoint, belfast_endpoint):
        with pytest.raises(BadRequest):
            read(wrong)
