"""Routes that manage webhooks. They cost no credits."""

from __future__ import annotations

from functools import partial

from api.endpoints.base.endpoint import Endpoint
from api.endpoints.webhooks import records
from api.endpoints.webhooks.requests import (
    DeliveryParameters,
    PageParameters,
    RotationBody,
    WebhookBody,
    WebhookChanges,
)
from api.endpoints.webhooks.resource import (
    ChangeWebhook,
    CreateWebhook,
    Deliveries,
    Redeliver,
    RemoveWebhook,
    RotateSecret,
    SendTest,
    VerifyWebhook,
    WebhookDetail,
    WebhookList,
)

NONE = "The webhook does not exist"
webhook = partial(
    Endpoint,
    tag="Webhooks",
    credits=0,
    path_descriptions={"id": "The webhook's `id`", "delivery_id": "The delivery's `id`"},
)
BODY = ("invalid_body", "missing_parameter", "body_too_large")

ENDPOINTS: tuple[Endpoint, ...] = (
    webhook(
        name="webhooks",
        path="/v1/webhooks",
        resource=WebhookList,
        parameters=PageParameters,
        answers=records.WebhookPage,
        errors=("invalid_cursor",),
        summary="List webhooks",
        description="The account's webhooks, in order of creation.",
    ),
    webhook(
        name="create_webhook",
        method="POST",
        path="/v1/webhooks",
        resource=CreateWebhook,
        body=WebhookBody,
        answers=records.Webhook,
        status=201,
        errors=(*BODY, "forbidden"),
        summary="Create a webhook",
        description="Each selected event is sent as a `POST`, signed as Standard Webhooks 1.0.0 defines: `secret`, "
        "shown only "
        "once, verifies it. Events are delivered one at a time in stream order; a failed delivery (any response but "
        "2xx) "
        "is attempted ten times within 76 hours, and later events wait for it. "
        "First of all the receiver is sent `webhook.challenge` and has to answer with `data.challenge`, as plain text "
        'or as `{"challenge": "…"}`; until then the webhook is `pending` and receives nothing else. '
        "Below the top tier, `trade` needs `markets` or a `min_usd` of at least 100, and `onchain_trade` one of these "
        "or `wallets`. "
        "Addresses that are not on the public internet are refused.",
    ),
    webhook(
        name="webhook",
        path="/v1/webhooks/{id}",
        resource=WebhookDetail,
        answers=records.Webhook,
        errors=("not_found",),
        missing=NONE,
        summary="Get a webhook",
    ),
    webhook(
        name="change_webhook",
        method="PATCH",
        path="/v1/webhooks/{id}",
        resource=ChangeWebhook,
        body=WebhookChanges,
        answers=records.Webhook,
        errors=(*BODY, "not_found"),
        summary="Change, disable or enable a webhook",
        description="Omitted fields are unchanged; null removes a filter. Events that occur while it is disabled are "
        "never "
        "delivered; deliveries pending before are kept, and delivered once it is enabled. A new `url` is challenged "
        "as at creation; meanwhile deliveries wait.",
    ),
    webhook(
        name="remove_webhook",
        method="DELETE",
        path="/v1/webhooks/{id}",
        resource=RemoveWebhook,
        answers=records.Removed,
        errors=("not_found",),
        summary="Remove a webhook",
        description="Pending deliveries are discarded and the log is deleted.",
    ),
    webhook(
        name="verify_webhook",
        method="POST",
        path="/v1/webhooks/{id}/verify",
        resource=VerifyWebhook,
        answers=records.Webhook,
        status=202,
        errors=("not_found", "forbidden"),
        summary="Challenge a webhook's receiver again",
        description="Sends `webhook.challenge`, with a single attempt, if the webhook is `pending`. Any earlier "
        "challenge is no longer accepted. An account can send ten a day for each webhook that its tier allows.",
    ),
    webhook(
        name="test_webhook",
        method="POST",
        path="/v1/webhooks/{id}/test",
        resource=SendTest,
        answers=records.Delivery,
        status=202,
        errors=("not_found", "forbidden"),
        summary="Send a test message",
        description="Sends `webhook.test` ahead of all pending deliveries, with a single attempt; the delivery shows "
        "the result.",
    ),
    webhook(
        name="rotate_webhook_secret",
        method="POST",
        path="/v1/webhooks/{id}/rotate-secret",
        resource=RotateSecret,
        body=RotationBody,
        answers=records.SecretRotation,
        errors=(*BODY, "not_found"),
        summary="Rotate a webhook's secret, in two steps",
        description="`begin` returns a new secret, and both sign; once the receiver has it, `finish` retires the old "
        "one. "
        "`cancel` discards the new one instead. Without a body: `begin`.",
    ),
    webhook(
        name="webhook_deliveries",
        path="/v1/webhooks/{id}/deliveries",
        resource=Deliveries,
        parameters=DeliveryParameters,
        answers=records.DeliveryPage,
        errors=("not_found", "invalid_cursor"),
        missing=NONE,
        summary="List a webhook's deliveries",
        description="Newest first, each with its attempts. Finished deliveries are kept for a limited time.",
    ),
    webhook(
        name="redeliver",
        method="POST",
        path="/v1/webhooks/{id}/deliveries/{delivery_id}/redeliver",
        resource=Redeliver,
        answers=records.Delivery,
        status=202,
        errors=("not_found", "forbidden"),
        summary="Redeliver a message",
        description="With the same `webhook-id`. A finished delivery is queued behind the pending ones with ten new "
        "attempts; "
        "a pending one is attempted as soon as it is next in order.",
    ),
)
