"""Only addresses on the public internet are connected to on a user's behalf, however they are written."""

from __future__ import annotations

import doctest

import pytest
from hypothesis import given
from hypothesis import strategies as st

from upstream.transport import addresses
from upstream.transport.addresses import PORTS, ForbiddenAddress, is_public, networks, parse, resolve_allowed

# Loopback, in forty notations that some program understands.
LOOPBACK = [
    *("127.0.0.1", "127.0.0.2", "127.255.255.254", "127.1", "127.0.1", "2130706433", "0x7f000001", "0x7F.0x0.0x0.0x1"),
    *(
        "0x7f.1",
        "0177.0.0.1",
        "0177.1",
        "017700000001",
        "00000000177.0.0.1",
        "127.0.0.1.",
        "2130706433.",
        "0x7f000001.",
    ),
    *("0", "0.0.0.0", "0x0", "00", "localhost", "LOCALHOST", "localhost.", "[::1]", "[::]", "[0:0:0:0:0:0:0:1]"),
    *("[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[0:0:0:0:0:ffff:127.0.0.1]", "[::127.0.0.1]", "[::ffff:0:127.0.0.1]"),
    *(
        "[64:ff9b::7f00:1]",
        "[64:ff9b:1::7f00:1]",
        "[2002:7f00:1::]",
        "[2001:0:7f00:1::]",
        "[fe80::1%25lo]",
        "①②⑦.⓪.⓪.①",
    ),
    *("127。0。0。1", "%31%32%37.0.0.1", "127.0.0.1%00.example.com", "user@127.0.0.1", "example.com\\@127.0.0.1"),
]
PRIVATE = [
    *("10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "169.254.169.254", "100.64.0.1", "100.127.255.255"),
    *(
        "192.0.0.1",
        "192.0.2.1",
        "192.88.99.1",
        "198.18.0.1",
        "198.51.100.1",
        "203.0.113.1",
        "224.0.0.1",
        "239.255.255.250",
    ),
    *("240.0.0.1", "255.255.255.255", "0.1.2.3", "fc00::1", "fd00:ec2::254", "fe80::1", "fec0::1", "ff02::1", "100::1"),
    *("2001:db8::1", "2001::1", "2001:10::1", "2002:a00:1::", "3fff::1", "5f00::1", "4000::1", "::", "::8.8.8.8"),
    *("::ffff:8.8.8.8", "64:ff9b::808:808", "fe80::1%lo", "", "somewhere"),
]
PUBLIC = ["8.8.8.8", "1.1.1.1", "100.63.255.255", "172.32.0.1", "2606:4700::1111", "2a00:1450:4001:800::200e"]


def test_examples():
    assert doctest.testmod(addresses).failed == 0


def test_there_are_forty_encodings():
    assert len(set(LOOPBACK)) >= 40


@pytest.mark.parametrize("host", LOOPBACK)
def test_loopback_is_refused_however_it_is_written(host):
    def spoken_to():
        url = parse(f"http://{host}/")
        return resolve_allowed(url.raw_host.decode(), url.port or PORTS[url.scheme])

    with pytest.raises((ForbiddenAddress, OSError)):  # OSError: no resolver makes an address of it
        spoken_to()


@pytest.mark.parametrize("address", PRIVATE)
def test_an_address_that_is_not_public_is_none_to_speak_to(address):
    assert not is_public(address)


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_is(address):
    assert is_public(address)


@given(st.ip_addresses(v=4))
def test_property_no_form_of_ipv4_in_ipv6_is_a_way_round(inner):
    number = int(inner)
    carried = [
        f"::{inner}",
        f"::ffff:{inner}",
        f"64:ff9b::{inner}",
        f"2002:{number >> 16:x}:{number & 0xFFFF:x}::1",
        f"2001:0:{number >> 16:x}:{number & 0xFFFF:x}::",
    ]

    assert [address for address in carried if is_public(address)] == []


@pytest.mark.parametrize(
    "url",
    [
        *("", "x", "//8.8.8.8/", "8.8.8.8", "http:8.8.8.8", "http:///x", "http://", "http://.", "http://:80/"),
        *("ftp://8.8.8.8/", "file:///etc/passwd", "gopher://8.8.8.8/", "javascript:alert(1)", "httpx://8.8.8.8/"),
        *("http://8.8.8.8:0/", "http://8.8.8.8:65536/", "http://8.8.8.8:80:80/", "http://8.8.8.8:x/"),
        *("http://a@8.8.8.8/", "http://a:b@8.8.8.8/", "http://8.8.8.8#@a/", "http://8.8.8.8/#", "http://8.8.8.8/#a"),
        *(
            "http://8.8.8.8/a b",
            "http://8.8.8.8/\r\nX: y",
            "http://8.8.8.8/\t",
            "http://8.8.8.8\\@a/",
            "http://ä.example/",
        ),
        *(
            "http://[::1/",
            "http://[1]/",
            "http://a_b%20c/",
            "http://" + "a" * 300 + "/",
            "http://8.8.8.8/" + "a" * 2000,
        ),
    ],
)
def test_what_two_programs_might_read_differently_is_refused(url):
    with pytest.raises(ForbiddenAddress):
        parse(url)


@pytest.mark.parametrize(
    "url",
    [
        *("https://example.com", "http://example.com:8080/a/b?c=d&e=%20", "https://xn--mnchen-3ya.example/"),
        *("https://[2606:4700::1111]:8443/", "HTTPS://EXAMPLE.com/A", "https://my_host.example/~x;y=@z"),
    ],
)
def test_ordinary_addresses_are_read(url):
    assert parse(url).scheme in PORTS


def test_one_private_address_among_public_ones_is_enough():
    with pytest.raises(ForbiddenAddress, match=r"10\.0\.0\.1"):
        resolve_allowed("two.example", 443, resolve=lambda _host, _port: ["8.8.8.8", "10.0.0.1"])


def test_a_network_that_is_allowed_is_spoken_to_and_no_other():
    allowed = networks("10.1.0.0/16, fd00::/8")

    assert resolve_allowed("hooks.internal", 80, allowed, lambda _host, _port: ["10.1.2.3", "fd00::1"])
    for address in ("10.2.0.1", "127.0.0.1", "::ffff:10.1.2.3"):
        assert not is_public(address, allowed)


def test_a_name_without_an_address_is_no_permission():
    with pytest.raises(OSError, match="no address"):
        resolve_allowed("empty.example", 80, resolve=lambda _host, _port: [])
