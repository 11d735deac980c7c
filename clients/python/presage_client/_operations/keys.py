"""Registering and rotating API keys.

Generated from the OpenAPI document: do not edit; run `make client`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import UNSET

from presage_client import _endpoints
from presage_client._operations.base import BaseOperations

if TYPE_CHECKING:
    from presage_client import records


class KeysOperations(BaseOperations):
    """Registering and rotating API keys."""

    def register(self, app_name: str, email: str, *, use_case: str | None = None) -> records.NewKey:
        """Register an API key.

        The key is shown only once, and belongs to a new account. The free tier allows one active key per email
        address: a second request for the same address is refused, and so is one for an address whose keys the
        operator has revoked. `POST /v1/keys/rotate` replaces a key, `POST /recover` a lost one. If the service
        sends mail, the address gets a link that verifies it.

        Credits: 0.

        Args:
            app_name: What the key is for.
            use_case: More about the use.
        """
        return self._call(
            _endpoints.REGISTER,
            {},
            {},
            {"app_name": app_name, "email": email, "use_case": UNSET if use_case is None else use_case},
        )

    def recover_key(self, email: str) -> records.RecoveryRequested:
        """Recover a lost API key by mail.

        Mails a link, valid for an hour and once, if the address has an account; at most three mails a day are sent
        to an address. The answer does not tell whether it has one. If the address was verified, the link replaces
        the account's newest key. Otherwise it gives the address a new account with a key of the free tier, and the
        old account keeps its keys.

        Credits: 0.
        """
        return self._call(_endpoints.RECOVER_KEY, {}, {}, {"email": email})

    def confirm_mail(self, token: str) -> records.Confirmation:
        """Use a link that was mailed.

        Verifies an email address, or recovers a key, by the token of a mailed link. A token works once.

        Credits: 0.
        """
        return self._call(_endpoints.CONFIRM_MAIL, {}, {}, {"token": token})

    def rotate_key(self) -> records.Rotation:
        """Replace the API key.

        The new key has the same tier, limits and usage; the key of this request becomes invalid.

        Credits: 0.
        """
        return self._call(_endpoints.ROTATE_KEY, {}, {})
