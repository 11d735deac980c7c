"""A mail server on a real port, and what was mailed to it."""

from __future__ import annotations

import email
import email.policy
import re
from contextlib import contextmanager

from aiosmtpd.controller import Controller

from tests.patience import until


class AnyPort(Controller):
    """A mail server on a port that the system chooses."""

    def _trigger_server(self):
        self.port = self.server.sockets[0].getsockname()[1]
        super()._trigger_server()


class Mailbox:
    """The messages that the server has accepted."""

    def __init__(self):
        self.messages = []

    async def handle_DATA(self, _server, _session, envelope):  # noqa: N802 (aiosmtpd's name)
        message = email.message_from_bytes(envelope.content, policy=email.policy.default)
        self.messages.append((envelope.rcpt_tos, message))
        return "250 OK"

    def tokens(self):
        """The tokens of all links, in the order of the mails."""
        return [re.search(r"/confirm\?token=([\w-]+)", message.get_content())[1] for _, message in self.messages]

    def token(self, number):
        """The token of the mail of a number, counted from 1, once it has come."""
        until(lambda: len(self.messages) >= number)
        return self.tokens()[number - 1]


@contextmanager
def receiving():
    """Run a mail server; yields its mailbox, with its `url`."""
    box = Mailbox()
    controller = AnyPort(box, hostname="127.0.0.1", port=0)
    controller.start()
    try:
        box.url = f"smtp://127.0.0.1:{controller.port}"
        yield box
    finally:
        controller.stop()
