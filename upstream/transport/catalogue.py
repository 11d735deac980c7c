"""Terms in which the clients tell every exchange's catalogue: a market's status, and slugs."""

import re
from typing import Literal

Status = Literal["ACTIVE", "CLOSED", "RESOLVED"]


def slugged(text: str) -> str:
    """Return `US-current-affairs` or `Pop-Culture ` as a tag's slug would be written."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
