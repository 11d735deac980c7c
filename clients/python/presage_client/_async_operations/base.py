"""The base of the operations of all tags.

Generated from the OpenAPI document: do not edit; run `make client`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from presage_client._transport import Endpoint, Page, Parameter

T = TypeVar("T")


class AsyncBaseOperations(ABC):
    """Sends the requests of operations."""

    @abstractmethod
    async def _call(
        self,
        endpoint: Endpoint[T],
        path: Mapping[str, Parameter],
        query: Mapping[str, Parameter],
        body: Mapping[str, Any] | None = None,
    ) -> T: ...

    @abstractmethod
    def _pages(
        self, endpoint: Endpoint[Page[T]], path: Mapping[str, Parameter], query: Mapping[str, Parameter]
    ) -> AsyncIterator[T]: ...
