"""Where a request comes from: the address of the connection, or what a trusted proxy says of it."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

Address = IPv4Address | IPv6Address


class Networks:
    """Addresses and networks, given in a list."""

    def __init__(self, given: str = "") -> None:
        self._networks: list[IPv4Network | IPv6Network] = [
            ip_network(each.strip(), strict=False) for each in given.split(",") if each.strip()
        ]

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self._networks)

    def __contains__(self, address: Address | str) -> bool:
        """Whether an address is among them."""
        found = _address(address.partition("/")[0]) if isinstance(address, str) else address
        return found is not None and any(found in network for network in self._networks)


class Proxies:
    """The proxies whose X-Forwarded-For is believed."""

    def __init__(self, given: str = "") -> None:
        self._networks = Networks(given)

    def origin(self, remote: str, forwarded: str | None = None) -> str:
        """Name the address a request comes from: an IPv6 site (/64) counts as one.

        The list of a proxy is read from its end, as far as it was written by those who are trusted.
        """
        hop = _address(remote)
        for said in reversed(forwarded.split(",") if forwarded else []):
            if hop is None or hop not in self._networks:
                break
            if (before := _address(said.strip())) is None:
                break
            hop = before
        if hop is None:
            return "local"  # a Unix socket
        return str(hop) if isinstance(hop, IPv4Address) else str(IPv6Network((hop, 64), strict=False))


def _address(text: str) -> Address | None:
    try:
        address = ip_address(text)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address
