"""Classification of nodes' errors by text: codes differ between nodes and are ambiguous.

Every text here was seen from a public or paid endpoint; anything else is treated as a transient fault.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from upstream.transport.errors import RateLimited, TooLarge, Unavailable, UpstreamError

if TYPE_CHECKING:
    from re import Match


class RangeTooLarge(TooLarge):
    """A smaller range would be accepted; up to `suggested`, if the node sent one."""

    def __init__(self, message: str, suggested: tuple[int, int] | None = None) -> None:
        super().__init__(message)
        self.suggested = suggested


class BatchTooLarge(TooLarge):
    """Fewer calls per request would be accepted."""


class NodeBehind(Unavailable):
    """The node does not know the block yet."""


class NoSuchTag(Unavailable):
    """The node does not support the `finalized` tag."""


RATE = re.compile(
    r"too many requests|rate.?limit|compute units|request(s)? (count )?(limit|exceeded)|daily request|capacity"
    r"|throughput|credits|quota|slow down"
)
BATCH = re.compile(r"batch.*(large|limit|exceed|size|not (supported|allowed)|disabled|maximum)|too many.*batch")
RANGE = re.compile(
    r"more than \d+ (results|logs)|exceed(s|ed)? (the )?(max(imum)?|limit)|response size|block range|range (is )?too"
    r"|ranges? over|limited to|too many blocks|too (many|large)|max(imum)? (block )?(range|results)|timeout|timed out"
    r"|too wide|query (is )?too|try with this|response is too big"
)
BEHIND = re.compile(
    r"header not found|beyond (current )?head|unknown block|block not found|cannot be found"
    r"|after last (accepted )?block|(from|to)block.*(greater|higher|beyond|future)|invalid block range"
    r"|not yet available|is in the future|no block"
)
TAG = re.compile(r"(finalized|safe).*(not found|not support|unknown|invalid)|unknown block|invalid.*(tag|argument|hex)")
SUGGESTED = re.compile(r"\[\s*(0x[0-9a-f]+)\s*,\s*(0x[0-9a-f]+)\s*\]")
RATE_CODES = {429, -32029, -32097}


def classify(method: str, code: int, message: str) -> UpstreamError:
    """Return the error that a call's failure means; for eth_getLogs, most mean that the range must shrink."""
    text = message.lower()
    said = f"{method}: {code} {message[:300]}"
    if code in RATE_CODES or RATE.search(text):
        return RateLimited(said)
    if BATCH.search(text):
        return BatchTooLarge(said)
    if BEHIND.search(text):
        return NodeBehind(said)
    if method == "eth_getLogs" and RANGE.search(text):
        return RangeTooLarge(said, _suggested(SUGGESTED.search(text)))
    return Unavailable(said)


def _suggested(found: Match[str] | None) -> tuple[int, int] | None:
    return None if found is None else (int(found[1], 16), int(found[2], 16))
