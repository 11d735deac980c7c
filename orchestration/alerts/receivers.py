"""Alert receivers: a webhook, and every service that Apprise supports."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import httpx

if TYPE_CHECKING:
    from collections.abc import Callable

    from config.settings import Settings
    from orchestration.alerts.outbox import AlertMessage

TIMEOUT_S = 5.0

log = logging.getLogger(__name__)


def receivers(settings: Settings) -> dict[str, Callable[[AlertMessage], bool]]:
    """Return the receivers, by names without secrets; each takes a message and returns whether it was accepted."""
    found: dict[str, Callable[[AlertMessage], bool]] = {}
    if (url := settings.alert_webhook_url) is not None:
        found["webhook"] = lambda message: post(url.get_secret_value(), message)
    if (urls := settings.alert_apprise_urls) is not None:
        for number, each in enumerate(urls.get_secret_value().split(), 1):
            found[f"apprise {number}"] = lambda message, each=each: notify(each, message)  # type: ignore[misc]
    return found


def post(url: str, message: AlertMessage) -> bool:
    """Post a message as JSON; chat services show the field `text`."""
    body = {
        "text": f"{message.title}\n{message.text}",
        "title": message.title,
        "alerts": [
            {"key": note.key, "kind": note.kind, "severity": note.severity, "said": note.said, "since": note.since}
            for note in message.notes
        ],
    }
    try:
        answer = httpx.post(url, json=body, timeout=TIMEOUT_S, follow_redirects=False)
    except httpx.HTTPError as error:  # the error's text may contain the address, and the address a secret
        log.warning("the alert webhook cannot be reached: %s", type(error).__name__)
        return False
    if not answer.is_success:
        log.warning("the alert webhook answers %s", answer.status_code)
    return answer.is_success


def notify(url: str, message: AlertMessage) -> bool:
    """Send a message through Apprise."""
    import apprise  # noqa: PLC0415 (it takes longer to load than everything else here, and few have it configured)

    logging.getLogger("apprise").disabled = True  # it logs URLs that it cannot read, with their secrets
    sender = apprise.Apprise()
    if not sender.add(url):
        log.warning("PRESAGE_ALERT_APPRISE_URLS contains a URL that Apprise does not support")
        return False
    accepted = bool(sender.notify(title=message.title, body=message.text, body_format=apprise.NotifyFormat.TEXT))
    if not accepted:
        log.warning("a receiver of PRESAGE_ALERT_APPRISE_URLS cannot be reached, or refuses the message")
    return accepted
