"""Webhooks: being told of what happens instead of asking. Managing them costs no credits."""

from __future__ import annotations

from api import records_webhooks as records
from api.endpoint import Endpoint
from api.parameters_webhooks import DeliveriesOf, PageOf, RotationBody, WebhookBody, WebhookChanges
from api.resources.webhooks import (
    Change,
    Create,
    Deliveries,
    One,
    Redeliver,
    Remove,
    RotateSecret,
    Test,
    Webhooks,
)

WHICH = {"id": "The webhook's `id`", "delivery_id": "The delivery's `id`"}
NONE = "There is no such webhook"
BODY = ("invalid_body", "missing_parameter", "body_too_large")

ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        name="webhooks",
        path="/v1/webhooks",
        resource=Webhooks,
        parameters=PageOf,
        answers=records.WebhookPage,
        credits=0,
        errors=("invalid_cursor",),
        tag="Webhooks",
        summary="The account's webhooks",
        description="In the order in which they were made.",
    ),
    Endpoint(
        name="create_webhook",
        method="POST",
        path="/v1/webhooks",
        resource=Create,
        body=WebhookBody,
        answers=records.Webhook,
        credits=0,
        status=201,
        errors=(*BODY, "forbidden"),
        tag="Webhooks",
        summary="Have events sent to an address",
        description="Each event that it asks for is sent as a `POST`, signed as Standard Webhooks 1.0.0 has it: "
        "`secret`, shown this once, verifies it. Events come one after the other in the order of the stream; one that "
        "does not arrive (any answer but 2xx) is tried ten times within 76 hours, and the next ones wait for it. "
        "Addresses that are not on the public internet are refused.",
    ),
    Endpoint(
        name="webhook",
        path="/v1/webhooks/{id}",
        resource=One,
        answers=records.Webhook,
        credits=0,
        errors=("not_found",),
        missing=NONE,
        explained=WHICH,
        tag="Webhooks",
        summary="A webhook",
    ),
    Endpoint(
        name="change_webhook",
        method="PATCH",
        path="/v1/webhooks/{id}",
        resource=Change,
        body=WebhookChanges,
        answers=records.Webhook,
        credits=0,
        errors=(*BODY, "not_found"),
        explained=WHICH,
        tag="Webhooks",
        summary="Change, disable or enable a webhook",
        description="What is left out stays as it is; null takes a filter away. What happens while it is disabled is "
        "not told later; what waited before is kept, and delivered once it is enabled.",
    ),
    Endpoint(
        name="remove_webhook",
        method="DELETE",
        path="/v1/webhooks/{id}",
        resource=Remove,
        answers=records.Removed,
        credits=0,
        errors=("not_found",),
        explained=WHICH,
        tag="Webhooks",
        summary="End a webhook",
        description="What waits is not delivered any more, and the log is forgotten.",
    ),
    Endpoint(
        name="test_webhook",
        method="POST",
        path="/v1/webhooks/{id}/test",
        resource=Test,
        answers=records.Delivery,
        credits=0,
        status=202,
        errors=("not_found", "forbidden"),
        explained=WHICH,
        tag="Webhooks",
        summary="Send a test message",
        description="`webhook.test`, before all that waits, and tried once: the delivery tells what came of it.",
    ),
    Endpoint(
        name="rotate_webhook_secret",
        method="POST",
        path="/v1/webhooks/{id}/rotate-secret",
        resource=RotateSecret,
        body=RotationBody,
        answers=records.SecretRotation,
        credits=0,
        errors=(*BODY, "not_found"),
        explained=WHICH,
        tag="Webhooks",
        summary="Replace a webhook's secret, in two steps",
        description="`begin` gives a new secret, and both sign; when the receiver has it, `finish` ends the old one. "
        "`cancel` ends the new one instead. Without a body: `begin`.",
    ),
    Endpoint(
        name="webhook_deliveries",
        path="/v1/webhooks/{id}/deliveries",
        resource=Deliveries,
        parameters=DeliveriesOf,
        answers=records.DeliveryPage,
        credits=0,
        errors=("not_found", "invalid_cursor"),
        missing=NONE,
        explained=WHICH,
        tag="Webhooks",
        summary="What became of each message",
        description="The newest first, each with its attempts. Kept for a while after they are over.",
    ),
    Endpoint(
        name="redeliver",
        method="POST",
        path="/v1/webhooks/{id}/deliveries/{delivery_id}/redeliver",
        resource=Redeliver,
        answers=records.Delivery,
        credits=0,
        status=202,
        errors=("not_found", "forbidden"),
        explained=WHICH,
        tag="Webhooks",
        summary="Send a message once more",
        description="With the same `webhook-id`. What is over goes behind what waits and has ten attempts again; what "
        "waits is tried at once, when its turn is there.",
    ),
)
