"""Markets of other exchanges that may ask the same question.

Generated from the OpenAPI document: do not edit; run `make client`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from presage_client import _endpoints
from presage_client._operations.base import BaseOperations

if TYPE_CHECKING:
    from presage_client import records


class EquivalentsOperations(BaseOperations):
    """Markets of other exchanges that may ask the same question."""

    def market_equivalents(
        self,
        id: str,
        *,
        verdict: Literal["different", "identical", "inverted", "related", "subset", "unreadable"] | None = None,
        limit: int | None = None,
    ) -> records.Equivalents:
        """Markets of other exchanges that may ask the same question.

        Judged clause by clause from both texts, once an hour; docs/equivalents.md has what a verdict means and how
        often it is right. `unreadable` is a refusal, not a finding.

        Credits: 1.

        Args:
            id: The market: its market_id, its slug, or the exchange's numeric id.
            verdict: Only this verdict; without it, all but `different` and `unreadable`.
            limit: Maximum number of markets in the response. Default: 20. At most 100.
        """
        return self._call(_endpoints.MARKET_EQUIVALENTS, {"id": id}, {"verdict": verdict, "limit": limit})
