"""Checks of the base URL and of secrets. Their errors never show the value: it may be or contain a secret."""

from __future__ import annotations

from urllib.parse import SplitResult, urlsplit


def split_address(address: str, schemes: set[str]) -> SplitResult:
    """Return the parts of a base URL, or raise `ValueError`."""
    address = address.strip().rstrip("/")
    try:
        parts = urlsplit(address)
        valid = parts.scheme in schemes and bool(parts.hostname) and parts.port != 0
    except ValueError:  # its text may hold a part of a password
        valid = False
    if not valid:
        raise ValueError("not an http or https address")
    if "?" in address or "#" in address:
        raise ValueError("the address has a query or a fragment")
    return parts


def host_of(parts: SplitResult) -> str:
    """Return host and port, without a user and password."""
    return parts.netloc.rpartition("@")[2]


def checked_secret(name: str, value: str) -> str:
    """Return a secret without surrounding whitespace, or raise `ValueError` if no header can carry it."""
    value = value.strip()
    if not all(" " <= character <= "~" for character in value):
        raise ValueError(f"{name} has characters other than printable ASCII")
    return value
