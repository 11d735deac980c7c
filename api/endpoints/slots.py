"""What is counted apart: endpoints and codes of problems, by their numbers in the memory that workers share."""

from __future__ import annotations

from api.endpoints.table import ENDPOINTS
from api.errors import CATALOGUE
from api.metrics.counts import CODES, PLACES

NAMES = [*(endpoint.name for endpoint in ENDPOINTS), "none"]  # of places; the last is where there is no endpoint
NOWHERE = len(ENDPOINTS)
CODE = {code: number for number, code in enumerate(CATALOGUE)}

PLACE: dict[tuple[str, str | None], int] = {
    (endpoint.method, endpoint.path): place for place, endpoint in enumerate(ENDPOINTS)
}
"""By method and path, as the router has it."""
PLACE |= {("HEAD", path): place for (method, path), place in PLACE.items() if method == "GET"}

assert len(NAMES) <= PLACES
assert len(CODE) <= CODES
