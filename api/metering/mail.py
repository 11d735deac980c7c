"""Sends mail over SMTP, from a queue that requests do not wait for."""

from __future__ import annotations

import logging
import queue
import smtplib
import ssl
import threading
from dataclasses import dataclass
from email.message import EmailMessage
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from api.data.pool import overloaded

if TYPE_CHECKING:
    from collections.abc import Callable

TIMEOUT_S = 20.0
MAX_QUEUED = 1_000  # jobs of a worker: a burst of registrations waits for the mail server, and is not refused
PORTS = {"smtp": 25, "smtp+starttls": 587, "smtps": 465}

log = logging.getLogger("presage.api")


@dataclass(frozen=True)
class MailServer:
    """The SMTP server that mail is handed to."""

    scheme: str
    host: str
    port: int
    user: str | None
    password: str | None
    sender: str

    @classmethod
    def of(cls, url: str, sender: str) -> MailServer:
        """Parse `smtps://user:password@host:port`; raise ValueError without repeating the password."""
        parts = urlsplit(url)
        if parts.scheme not in PORTS or not parts.hostname:
            raise ValueError(f"PRESAGE_SMTP_URL: expected one of {', '.join(f'{each}://host' for each in PORTS)}")
        if parts.username and parts.scheme == "smtp":
            raise ValueError("PRESAGE_SMTP_URL: a password is sent over smtps:// or smtp+starttls:// only")
        if not sender:
            raise ValueError("PRESAGE_MAIL_FROM: the sender's address is needed with PRESAGE_SMTP_URL")
        user, password = (None if each is None else unquote(each) for each in (parts.username, parts.password))
        return cls(parts.scheme, parts.hostname, parts.port or PORTS[parts.scheme], user, password, sender)

    def send(self, to: str, subject: str, text: str) -> None:
        """Hand over one message."""
        message = EmailMessage()
        message["From"], message["To"], message["Subject"] = self.sender, to, subject
        message["Auto-Submitted"] = "auto-generated"
        message.set_content(text)
        with self._connected() as server:
            if self.scheme == "smtp+starttls":
                server.starttls(context=ssl.create_default_context())
            if self.user is not None:
                server.login(self.user, self.password or "")
            server.send_message(message)

    def _connected(self) -> smtplib.SMTP:
        if self.scheme == "smtps":
            return smtplib.SMTP_SSL(self.host, self.port, timeout=TIMEOUT_S, context=ssl.create_default_context())
        return smtplib.SMTP(self.host, self.port, timeout=TIMEOUT_S)


class MailQueue:
    """Runs jobs that send mail, one after the other, so that no answer's duration tells what a job has found."""

    def __init__(self) -> None:
        self._jobs: queue.Queue[Callable[[], object]] = queue.Queue(MAX_QUEUED)
        self._starting = threading.Lock()
        self._started = False

    def put(self, job: Callable[[], object]) -> None:
        """Queue a job; raise `overloaded` if too many wait."""
        try:
            self._jobs.put_nowait(job)
        except queue.Full:
            raise overloaded("Too many mails are waiting to be sent", 60) from None
        with self._starting:
            if not self._started:
                self._started = True
                threading.Thread(target=self._run, name="mail", daemon=True).start()

    def _run(self) -> None:
        while True:
            job = self._jobs.get()
            try:
                job()
            except Exception as error:  # noqa: BLE001 (the next mail is sent all the same)
                log.warning("a mail could not be sent: %s", type(error).__name__)  # its text may name the address
