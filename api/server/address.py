"""Determines a request's origin: the connection's address, or the one reported by a trusted proxy."""

from __future__ import annotations

import hmac
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

Address = IPv4Address | IPv6Address
SITE_TOKEN = "X-Presage-Site-Token"  # noqa: S105 (a header's name)


class Networks:
    """A set of addresses and networks, parsed from a comma-separated list."""

    def __init__(self, given: str = "") -> None:
        self._networks: list[IPv4Network | IPv6Network] = [
            ip_network(each.strip(), strict=False) for each in given.split(",") if each.strip()
        ]

    def __bool__(self) -> bool:
        """Return whether the set is not empty."""
        return bool(self._networks)

    def __contains__(self, address: Address | str) -> bool:
        """Return whether an address is in the set."""
        found = _address(address.partition("/")[0]) if isinstance(address, str) else address
        return found is not None and any(found in network for network in self._networks)


class Proxies:
    """The proxies whose X-Forwarded-For is trusted: by their addresses, or our own site by its token."""

    def __init__(self, given: str = "", site_token: str = "") -> None:
        self._networks = Networks(given)
        self._site_token = site_token.encode()

    def origin(self, remote: str, forwarded: str | None = None, token: str | None = None) -> str:
        """Return a request's address; IPv6 addresses are grouped by site (/64).

        X-Forwarded-For is read from its end, as far as the entries were added by trusted proxies.
        """
        hop = _address(remote)
        from_site = bool(self._site_token) and hmac.compare_digest((token or "").encode(), self._site_token)
        for said in reversed(forwarded.split(",") if forwarded else []):
            if hop is None or not (from_site or hop in self._networks):
                break
            if (before := _address(said.strip())) is None:
                break
            hop, from_site = before, False
        if hop is None:
            return "local"  # a Unix socket
        return str(hop) if isinstance(hop, IPv4Address) else str(IPv6Network((hop, 64), strict=False))


def _address(text: str) -> Address | None:
    try:
        address = ip_address(text)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address
