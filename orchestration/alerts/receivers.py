"""The ways to reach people: a webhook, and whatever Apprise can reach."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import httpx

if TYPE_CHECKING:
    from collections.abc import Callable

    from config.settings import Settings
    from orchestration.alerts.outbox import Message

TIMEOUT_S = 5.0

log = logging.getLogger(__name__)


def receivers(settings: Settings) -> dict[str, Callable[[Message], bool]]:
    """Name whom the settings tell of; each takes a message and says whether it was accepted. No name holds a secret."""
    found: dict[str, Callable[[Message], bool]] = {}
    if (url := settings.alert_webhook_url) is not None:
        found["webhook"] = lambda message: post(url.get_secret_value(), message)
    if (urls := settings.alert_apprise_urls) is not None:
        for number, each in enumerate(urls.get_secret_value().split(), 1):
            found[f"apprise {number}"] = lambda message, each=each: notify(each, message)  # type: ignore[misc]
    return found


def post(url: str, message: Message) -> bool:
    """Post a message as JSON; `text` is what chat services show."""
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
    except httpx.HTTPError as error:  # its text may hold the address, and the address a secret
        log.warning("the alert webhook cannot be reached: %s", type(error).__name__)
        return False
    if not answer.is_success:
        log.warning("the alert webhook answers %s", answer.status_code)
    return answer.is_success


def notify(url: str, message: Message) -> bool:
    """Send a message by Apprise."""
    import apprise  # noqa: PLC0415 (it takes longer to load than everything else here, and few have it configured)

    sender = apprise.Apprise()
    if not sender.add(url):
        log.warning("an address of PRESAGE_ALERT_APPRISE_URLS is none that Apprise understands")
        return False
    return bool(sender.notify(title=message.title, body=message.text, body_format=apprise.NotifyFormat.TEXT))
