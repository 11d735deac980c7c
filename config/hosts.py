"""The roles that a host may have."""

from __future__ import annotations

from typing import Literal, get_args

Role = Literal["database", "dagster", "runs", "feed", "api", "site"]
ROLES: tuple[Role, ...] = get_args(Role)
ONE_MACHINE: tuple[Role, ...] = ("database", "dagster", "api", "site")
"""Of a host without others: its feeds are runs of its Dagster, which executes all runs itself."""


def roles(text: str) -> tuple[Role, ...]:
    """Return the roles of a list such as `feed,api`, in their order; none: those of one machine. ValueError names them.

    Without `database` another host has it, or a server of yours.
    """
    named = {name for part in text.split(",") if (name := part.strip())}
    if unknown := named - set(ROLES):
        raise ValueError(f"unknown: {', '.join(sorted(unknown))[:80]}; allowed: {', '.join(ROLES)}")
    return tuple(role for role in ROLES if role in named) or ONE_MACHINE
