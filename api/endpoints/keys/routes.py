"""Routes of the API key endpoints."""

from __future__ import annotations

from api.endpoints.base.endpoint import Endpoint
from api.endpoints.keys.resource import (
    Confirm,
    ConfirmationRequest,
    Recover,
    RecoveryRequest,
    Register,
    Registration,
    Rotate,
)
from api.schemas import records

ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        name="register",
        method="POST",
        path="/register",
        resource=Register,
        body=Registration,
        answers=records.NewKey,
        key="none",
        credits=0,
        status=201,
        errors=("invalid_body", "missing_parameter", "body_too_large", "burst_exceeded"),
        tag="Keys",
        summary="Register an API key",
        description="The key is shown only once, and belongs to a new account. The free tier allows one active key per "
        "email address: a second request for the same address is refused, and so is one for an address whose keys the "
        "operator has revoked. `POST /v1/keys/rotate` replaces a key, `POST /recover` a lost one. If the service sends "
        "mail, the address gets a link that verifies it.",
    ),
    Endpoint(
        name="recover_key",
        method="POST",
        path="/recover",
        resource=Recover,
        body=RecoveryRequest,
        answers=records.RecoveryRequested,
        key="none",
        credits=0,
        status=202,
        errors=("invalid_body", "missing_parameter", "body_too_large", "burst_exceeded", "not_found"),
        missing="This service sends no mail",
        hint="Its operator can replace a lost key",
        tag="Keys",
        summary="Recover a lost API key by mail",
        description="Mails a link, valid for an hour and once, if the address has an account; at most three mails a "
        "day are sent to an address. The answer does not tell whether it has one. If the address was verified, the "
        "link replaces the account's newest key. Otherwise it gives the address a new account with a key of the free "
        "tier, and the old account keeps its keys.",
    ),
    Endpoint(
        name="confirm_mail",
        method="POST",
        path="/confirm",
        resource=Confirm,
        body=ConfirmationRequest,
        answers=records.Confirmation,
        key="none",
        credits=0,
        errors=("invalid_body", "missing_parameter", "body_too_large", "burst_exceeded", "not_found"),
        missing="This service sends no mail",
        hint="Its operator can replace a lost key",
        tag="Keys",
        summary="Use a link that was mailed",
        description="Verifies an email address, or recovers a key, by the token of a mailed link. A token works once.",
    ),
    Endpoint(
        name="rotate_key",
        method="POST",
        path="/v1/keys/rotate",
        resource=Rotate,
        answers=records.Rotation,
        credits=0,
        errors=("not_found",),
        missing="The key no longer exists",
        tag="Keys",
        summary="Replace the API key",
        description="The new key has the same tier, limits and usage; the key of this request becomes invalid.",
    ),
)
