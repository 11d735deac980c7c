"""Routes of the API key endpoints."""

from __future__ import annotations

from api.endpoints.base.endpoint import Endpoint
from api.endpoints.keys.resource import Register, Registration, Rotate
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
        description="The key is shown only once. The free tier allows one active key per email address: a second "
        "request for the same address is refused; `POST /v1/keys/rotate` replaces a key.",
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
