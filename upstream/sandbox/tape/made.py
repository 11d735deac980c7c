"""Gamma objects for markets that a recording has without describing them; assigned values are stated in the object."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from upstream.polymarket.identity import ASSIGNED
from upstream.sandbox.exchange.catalogue import Gamma, listed, words

if TYPE_CHECKING:
    from collections.abc import Sequence

MADE = "Made from a recording"


def assigned_condition(slug: str, market_id: str = "") -> str:
    """Return a deterministic condition id for a market recorded without one."""
    return "0x" + hashlib.sha256(f"{slug}|{market_id}".encode()).hexdigest()


def assigned_token(condition_id: str, outcome: int) -> str:
    """Return a deterministic token id for an outcome recorded without one."""
    return str(int(hashlib.sha256(f"{condition_id}|{outcome}".encode()).hexdigest(), 16))


def assigned_id(name: str) -> str:
    """Return a Gamma id of ten digits, which real ones do not have."""
    return str(1_000_000_000 + int(hashlib.sha256(f"{name}|id".encode()).hexdigest()[:12], 16) % 9_000_000_000)


def assigned_tx(*what: object) -> str:
    """Return a hash for a trade recorded without one: the same for the same trade, and never a real one's."""
    return ASSIGNED + hashlib.sha256("|".join(map(str, what)).encode()).hexdigest()[:32]


def made(
    source: str,
    *,
    slug: str,
    question: str,
    outcomes: Sequence[str],
    tokens: Sequence[str],
    condition_id: str,
    gamma_id: str = "",
    assigned: Sequence[str] = (),
    tick: float = 0.01,
    description: str = "",
) -> Gamma:
    """Return the Gamma object of an open market."""
    given = list(assigned) + ([] if gamma_id else ["id"])
    note = f"{MADE} ({source})." + (f" Assigned, as not recorded: {', '.join(given)}." if given else "")
    return {
        "id": gamma_id or assigned_id(condition_id),
        "question": question,
        "conditionId": condition_id,
        "slug": slug,
        "description": f"{note} {description}".strip(),
        "outcomes": listed(outcomes),
        "outcomePrices": listed(["0.5", "0.5"]),
        "clobTokenIds": listed(tokens),
        "active": True,
        "closed": False,
        "archived": False,
        "acceptingOrders": True,
        "enableOrderBook": True,
        "orderPriceMinTickSize": tick,
        "orderMinSize": 5,
        "negRisk": False,
        "volume": "0",
        "volumeNum": 0,
        "liquidity": "0",
        "liquidityNum": 0,
        "sandboxMadeFrom": source,
        "sandboxAssigned": given,
    }


def complete(known: Gamma, other: Gamma) -> list[str]:
    """Replace a made market's assigned tokens with those that another recording has; return the new ones."""
    condition_id = known.get("conditionId") or ""
    assigned = [assigned_token(condition_id, outcome) for outcome in (0, 1)]
    tokens, outcomes = words(known.get("clobTokenIds")), words(known.get("outcomes"))
    names = words(other.get("outcomes"))
    found = []
    for place, token in enumerate(words(other.get("clobTokenIds"))):
        free = [at for at, held in enumerate(tokens) if held in assigned]
        if token not in tokens and token not in assigned and free:
            at = place if place in free else free[0]
            tokens[at], outcomes[at] = token, names[place]
            found.append(token)
    if found:
        known |= {"clobTokenIds": listed(tokens), "outcomes": listed(outcomes)}
        known["sandboxAssigned"] = [one for one in known["sandboxAssigned"] if not one.startswith("clobTokenIds")]
    return found


def made_event(slug: str) -> Gamma:
    """Return the event of a market that was recorded with its event's slug only."""
    return {
        "id": assigned_id(slug),
        "ticker": slug,
        "slug": slug,
        "title": slug.replace("-", " ").title(),
        "active": True,
        "closed": False,
        "archived": False,
        "sandboxAssigned": ["id", "title"],
    }


def tag(slug: str, label: str) -> Gamma:
    """Return a tag for a label recorded without its id."""
    return {"id": str(int(hashlib.sha256(slug.encode()).hexdigest()[:8], 16)), "label": label, "slug": slug}


CRYPTO = [tag("crypto", "Crypto"), tag("up-or-down", "Up or Down")]


def up_down_group(first_ms: int) -> str:
    """Return the group of what was recorded together: books and trades of a day keep their distance in time."""
    return f"up-down-{datetime.fromtimestamp(first_ms / 1000, UTC):%Y-%m-%d}"
