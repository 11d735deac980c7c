"""SSRF protection: which addresses we may connect to on behalf of a user: the public internet only, without exception.

A name is resolved once, every address it resolves to is checked, and the connection goes to one of these, never to the
name: a DNS server that answers differently the second time is not asked a second time.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from typing import TYPE_CHECKING

import httpx

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    Network = ipaddress.IPv4Network | ipaddress.IPv6Network
    Resolve = Callable[[str, int], list[str]]

PORTS = {"http": 80, "https": 443}
MAX_URL_LENGTH = 2000
NAME = re.compile(r"(?=.{1,253}\Z)[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*\.?\Z")
# IPv6 unicast ranges that map to something else, or to nothing: protocol assignments (Teredo
# included), 6to4, documentation. Every range that embeds an IPv4 address is either here or not unicast.
RESERVED = tuple(map(ipaddress.ip_network, ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")))
UNICAST = ipaddress.ip_network("2000::/3")
RELAYS = ipaddress.ip_network("192.88.99.0/24")  # 6to4 relays: they lead into networks


class ForbiddenAddress(ValueError):  # noqa: N818 (says what it is)
    """An address that must not be connected to."""


def networks(text: str) -> tuple[Network, ...]:
    """Parse networks from a setting: `10.0.0.0/8, fd00::/8`."""
    return tuple(ipaddress.ip_network(each) for each in text.replace(",", " ").split())


def is_public(address: str, allowed: Iterable[Network] = ()) -> bool:
    """Return whether an address is on the public internet, or in a network that is explicitly allowed.

    >>> is_public("8.8.8.8"), is_public("127.0.0.1"), is_public("::ffff:8.8.8.8"), is_public("169.254.169.254")
    (True, False, False, False)
    """
    try:
        found = ipaddress.ip_address(address)
    except ValueError:  # scoped: link-local
        return False
    if any(found in network for network in allowed):
        return True
    if isinstance(found, ipaddress.IPv6Address):
        return found in UNICAST and not any(found in network for network in RESERVED)
    return found.is_global and not found.is_multicast and found not in RELAYS


def parse(url: str) -> httpx.URL:
    """Parse an http or https URL; anything two parsers might read differently is refused."""
    if not url.isascii() or any(ord(character) <= 32 or character in "\\\x7f" for character in url):
        raise ForbiddenAddress(
            "a URL has only visible ASCII characters; other names are written in Punycode, the rest is escaped"
        )
    if len(url) > MAX_URL_LENGTH:
        raise ForbiddenAddress(f"a URL is at most {MAX_URL_LENGTH} characters long")
    try:
        read = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise ForbiddenAddress(f"not a URL: {error}") from None
    if read.scheme not in PORTS:
        raise ForbiddenAddress("a URL begins with https:// or http://")
    host = read.raw_host.decode()
    if not host.strip("."):
        raise ForbiddenAddress("the URL names no host")
    if not (NAME.match(host) or _is_ipv6(host)):
        raise ForbiddenAddress("invalid host name: 1 to 63 of a-z, 0-9, - and _ between dots")
    if read.userinfo or "@" in url.partition("://")[2].partition("/")[0]:
        raise ForbiddenAddress("a URL holds no user name or password")
    if read.port is not None and not 0 < read.port < 65536:
        raise ForbiddenAddress(f"there is no port {read.port}")
    if read.fragment or url.endswith("#"):
        raise ForbiddenAddress("a URL has no fragment: it is never sent")
    return read


def _is_ipv6(host: str) -> bool:
    try:
        return ipaddress.IPv6Address(host).scope_id is None
    except ValueError:
        return False


def resolve(host: str, port: int) -> list[str]:
    """Return the addresses that the system resolves a host to; OSError if there are none."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(where[0]) for *_, where in found))


def resolve_allowed(host: str, port: int, allowed: Collection[Network] = (), resolve: Resolve = resolve) -> list[str]:
    """Return the addresses of a host; ForbiddenAddress if any of them is not allowed, OSError if there are none."""
    found = resolve(host.rstrip("."), port)  # with a trailing dot no resolver mistakes it for a number
    for address in found:
        if not is_public(address, allowed):
            raise ForbiddenAddress(f"{host} is at {address}, which is not on the public internet")
    if not found:
        raise OSError(f"{host} has no address")
    return found
