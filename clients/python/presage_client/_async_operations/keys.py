"""Registering and rotating API keys.

Generated from the OpenAPI document: do not edit; run `make client`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import UNSET

from presage_client import _endpoints
from presage_client._async_operations.base import AsyncBaseOperations

if TYPE_CHECKING:
    from presage_client import records


class AsyncKeysOperations(AsyncBaseOperations):
    """Registering and rotating API keys."""

    async def register(self, app_name: str, email: str, *, use_case: str | None = None) -> records.NewKey:
        """Register an API key.

        The key is shown only once. The free tier allows one active key per email address: a second request for the
        same address is refused; `POST /v1/keys/rotate` replaces a key.

        Credits: 0.

        Args:
            app_name: What the key is for.
            use_case: More about the use.
        """
        return await self._call(
            _endpoints.REGISTER,
            {},
            {},
            {"app_name": app_name, "email": email, "use_case": UNSET if use_case is None else use_case},
        )

    async def rotate_key(self) -> records.Rotation:
        """Replace the API key.

        The new key has the same tier, limits and usage; the key of this request becomes invalid.

        Credits: 0.
        """
        return await self._call(_endpoints.ROTATE_KEY, {}, {})
