"""Webhooks: being told of what happens instead of asking. Managing them costs no credits."""

from __future__ import annotations

from functools import partial

from api.endpoints.base.endpoint import Endpoint
from api.endpoints.webhooks import records
from api.endpoints.webhooks.requests import DeliveriesOf, PageOf, RotationBody, WebhookBody, WebhookChanges
from api.endpoints.webhooks.resource import (
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

NONE = "There is no such webhook"
webhook = partial(
    Endpoint,
    tag="Webhooks",
    credits=0,
    explained={"id": "The webhook's `id`", "delivery_id": "The delivery's `id`"},
)
BODY = ("invalid_body", "missing_parameter", "body_too_large")

ENDPOINTS: tuple[Endpoint, ...] = (
    webhook(
        name="webhooks",
        path="/v1/webhooks",
        resource=Webhooks,
        parameters=PageOf,
        answers=records.WebhookPage,
        errors=("invalid_cursor",),
        summary="The account's webhooks",
        description="In the order in which they were made.",
    ),
    webhook(
        name="create_webhook",
        method="POST",
        path="/v1/webhooks",
        resource=Create,
        body=WebhookBody,
        answers=records.Webhook,
        status=201,
        errors=(*BODY, "forbidden"),
        summary="Have events sent to an address",
        description="Each event that it asks for is sent as a `POST`, signed as Standard Webhooks 1.0.0 has it: "
        "`secret`, shown this once, verifies it. Events come one after the other in the order of the stream; one that "
        "does not arrive (any answer but 2xx) is tried ten times within 76 hours, and the next ones wait for it. "
        "Addresses that are not on the public internet are refused.",
    ),
    webhook(
        name="webhook",
        path="/v1/webhooks/{id}",
        resource=One,
        answers=records.Webhook,
        errors=("not_found",),
        missing=NONE,
        summary="A webhook",
    ),
    webhook(
        name="change_webhook",
        method="PATCH",
        path="/v1/webhooks/{id}",
        resource=Change,
        body=WebhookChanges,
        answers=records.Webhook,
        errors=(*BODY, "not_found"),
        summary="Change, disable or enable a webhook",
        description="What is left out stays as it is; null takes a filter away. What happens while it is disabled is "
        "not told later; what waited before is kept, and delivered once it is enabled.",
    ),
    webhook(
        name="remove_webhook",
        method="DELETE",
        path="/v1/webhooks/{id}",
        resource=Remove,
        answers=records.Removed,
        errors=("not_found",),
        summary="End a webhook",
        description="What waits is not delivered any more, and the log is forgotten.",
    ),
    webhook(
        name="test_webhook",
        method="POST",
        path="/v1/webhooks/{id}/test",
        resource=Test,
        answers=records.Delivery,
        status=202,
        errors=("not_found", "forbidden"),
        summary="Send a test message",
        description="`webhook.test`, before all that waits, and tried once: the delivery tells what came of it.",
    ),
    webhook(
        name="rotate_webhook_secret",
        method="POST",
        path="/v1/webhooks/{id}/rotate-secret",
        resource=RotateSecret,
        body=RotationBody,
        answers=records.SecretRotation,
        errors=(*BODY, "not_found"),
        summary="Replace a webhook's secret, in two steps",
        description="`begin` gives a new secret, and both sign; when the receiver has it, `finish` ends the old one. "
        "`cancel` ends the new one instead. Without a body: `begin`.",
    ),
    webhook(
        name="webhook_deliveries",
        path="/v1/webhooks/{id}/deliveries",
        resource=Deliveries,
        parameters=DeliveriesOf,
        answers=records.DeliveryPage,
        errors=("not_found", "invalid_cursor"),
        missing=NONE,
        summary="What became of each message",
        description="The newest first, each with its attempts. Kept for a while after they are over.",
    ),
    webhook(
        name="redeliver",
        method="POST",
        path="/v1/webhooks/{id}/deliveries/{delivery_id}/redeliver",
        resource=Redeliver,
        answers=records.Delivery,
        status=202,
        errors=("not_found", "forbidden"),
        summary="Send a message once more",
        description="With the same `webhook-id`. What is over goes behind what waits and has ten attempts again; what "
        "waits is tried at once, when its turn is there.",
    ),
)
