"""Hosts as network namespaces on a bridge: each has an address and a cable that can be pulled. Needs root."""

from __future__ import annotations

import ctypes
import os
import secrets
import socket
import subprocess
import threading
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CLONE_NEWNET = 0x40000000
SUBNET = "10.77.0"
_libc = ctypes.CDLL(None, use_errno=True)


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


class Host:
    """A network namespace."""

    def __init__(self, name: str, number: int, prefix: str) -> None:
        self.name, self.address = f"{prefix}-{name}", f"{SUBNET}.{number}"
        self._cable = f"{prefix}v{number}"

    def plug_in(self, bridge: str) -> None:
        _ip("netns", "add", self.name)
        _ip("link", "add", self._cable, "type", "veth", "peer", "name", "eth0", "netns", self.name)
        _ip("link", "set", self._cable, "master", bridge, "up")
        _ip("-n", self.name, "addr", "add", f"{self.address}/24", "dev", "eth0")
        _ip("-n", self.name, "link", "set", "eth0", "up")
        _ip("-n", self.name, "link", "set", "lo", "up")

    def cut(self) -> None:
        """Pull the cable: what is sent to the host is lost, and nobody is told."""
        _ip("link", "set", self._cable, "down")

    def heal(self) -> None:
        """Plug the cable in again."""
        _ip("link", "set", self._cable, "up")

    def listen(self) -> socket.socket:
        """Return a socket that listens in the namespace, at a port that the system chooses."""
        made: list[socket.socket] = []

        def enter() -> None:
            file = os.open(f"/run/netns/{self.name}", os.O_RDONLY)
            try:
                if _libc.setns(file, CLONE_NEWNET) != 0:
                    raise OSError(ctypes.get_errno(), "setns")
            finally:
                os.close(file)
            made.append(socket.create_server((self.address, 0)))

        thread = threading.Thread(target=enter)  # a thread's namespace is its own
        thread.start()
        thread.join()
        return made[0]

    @contextmanager
    def relay(self, connect: Callable[[], socket.socket]) -> Iterator[int]:
        """Yield a port of this host that leads to what `connect` returns a connection to."""
        with self.listen() as listener:
            opened: list[socket.socket] = []

            def copy(source: socket.socket, target: socket.socket) -> None:
                with suppress(OSError):
                    while data := source.recv(65_536):
                        target.sendall(data)
                for each in (source, target):
                    with suppress(OSError):
                        each.shutdown(socket.SHUT_RDWR)

            def accept() -> None:
                while True:
                    try:
                        client, _ = listener.accept()
                    except OSError:
                        return
                    server = connect()
                    opened.extend((client, server))
                    for pair in ((client, server), (server, client)):
                        threading.Thread(target=copy, args=pair, daemon=True).start()

            thread = threading.Thread(target=accept, daemon=True)
            thread.start()
            try:
                yield listener.getsockname()[1]
            finally:
                listener.shutdown(socket.SHUT_RDWR)
                thread.join()
                for each in opened:
                    each.close()


@contextmanager
def hosts(*names: str) -> Iterator[list[Host]]:
    """Yield hosts on one bridge, which this machine is on as well; all of it is removed at the end."""
    prefix = f"p{secrets.token_hex(2)}"
    bridge = f"{prefix}b"
    made = [Host(name, number, prefix) for number, name in enumerate(names, start=1)]
    with ExitStack() as stack:
        _ip("link", "add", bridge, "type", "bridge")
        stack.callback(_ip, "link", "del", bridge)
        _ip("addr", "add", f"{SUBNET}.254/24", "dev", bridge)
        _ip("link", "set", bridge, "up")
        for host in made:
            stack.callback(subprocess.run, ["ip", "netns", "del", host.name], check=False, capture_output=True)
            host.plug_in(bridge)
        yield made
