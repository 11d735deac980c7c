"""Routes of keys."""

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
        summary="Get an API key",
        description="The key is shown this once. The free tier has one active key an email address: a second "
        "request for the same address is refused, and `POST /v1/keys/rotate` replaces a key.",
    ),
    Endpoint(
        name="rotate_key",
        method="POST",
        path="/v1/keys/rotate",
        resource=Rotate,
        answers=records.Rotation,
        credits=0,
        errors=("not_found",),
        missing="The key's record is gone",
        tag="Keys",
        summary="Replace the API key",
        description="The new key has the same tier, limits and use; the one this was asked with is no longer valid.",
    ),
)
