"""Which addresses may be spoken to on behalf of somebody else: those of the public internet, and no way round it.

A name is resolved once, every address that it stands for is judged, and a connection goes to one of these, never to the
name: a server of names that answers differently the second time is not asked a second time.
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
LONGEST = 2000
NAME = re.compile(r"(?=.{1,253}\Z)[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*\.?\Z")
# What of the unicast addresses of IPv6 stands for something else, or for nothing: assignments to protocols (Teredo
# among them), 6to4, examples. All that carries an address of IPv4 inside is either here or not unicast.
RESERVED = tuple(map(ipaddress.ip_network, ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")))
UNICAST = ipaddress.ip_network("2000::/3")
RELAYS = ipaddress.ip_network("192.88.99.0/24")  # of 6to4: they lead into networks


class Forbidden(ValueError):  # noqa: N818 (says what it is)
    """An address that is not to be spoken to."""


def networks(text: str) -> tuple[Network, ...]:
    """Read networks as a setting names them: `10.0.0.0/8, fd00::/8`."""
    return tuple(ipaddress.ip_network(each) for each in text.replace(",", " ").split())


def is_public(address: str, allowed: Iterable[Network] = ()) -> bool:
    """Tell whether an address is of the public internet, or of a network that is allowed all the same.

    >>> is_public("8.8.8.8"), is_public("127.0.0.1"), is_public("::ffff:8.8.8.8"), is_public("169.254.169.254")
    (True, False, False, False)
    """
    try:
        found = ipaddress.ip_address(address)
    except ValueError:  # with a scope: of this link
        return False
    if any(found in network for network in allowed):
        return True
    if isinstance(found, ipaddress.IPv6Address):
        return found in UNICAST and not any(found in network for network in RESERVED)
    return found.is_global and not found.is_multicast and found not in RELAYS


def parse(url: str) -> httpx.URL:
    """Read a URL of http or https; whatever two programs might read differently is refused."""
    if not url.isascii() or any(ord(character) <= 32 or character in "\\\x7f" for character in url):
        raise Forbidden("a URL is of visible ASCII characters; other names are written in Punycode, the rest escaped")
    if len(url) > LONGEST:
        raise Forbidden(f"a URL is at most {LONGEST} characters long")
    try:
        read = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise Forbidden(f"not a URL: {error}") from None
    if read.scheme not in PORTS:
        raise Forbidden("a URL begins with https:// or http://")
    host = read.raw_host.decode()
    if not host.strip("."):
        raise Forbidden("the URL names no host")
    if not (NAME.match(host) or _is_ipv6(host)):
        raise Forbidden("the host's name is not as names are: 1 to 63 of a-z, 0-9, - and _ between dots")
    if read.userinfo or "@" in url.partition("://")[2].partition("/")[0]:
        raise Forbidden("a URL holds no user name or password")
    if read.port is not None and not 0 < read.port < 65536:
        raise Forbidden(f"there is no port {read.port}")
    if read.fragment or url.endswith("#"):
        raise Forbidden("a URL has no fragment: it is never sent")
    return read


def _is_ipv6(host: str) -> bool:
    try:
        return ipaddress.IPv6Address(host).scope_id is None
    except ValueError:
        return False


def resolve(host: str, port: int) -> list[str]:
    """Ask the system for the addresses of a host; OSError if there are none."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(where[0]) for *_, where in found))


def checked(host: str, port: int, allowed: Collection[Network] = (), resolve: Resolve = resolve) -> list[str]:
    """Give the addresses of a host, or refuse them all if one is not to be spoken to; OSError if there are none."""
    found = resolve(host.rstrip("."), port)  # with the dot at its end no resolver takes it for a number
    for address in found:
        if not is_public(address, allowed):
            raise Forbidden(f"{host} is at {address}, which is not on the public internet")
    if not found:
        raise OSError(f"{host} has no address")
    return found
