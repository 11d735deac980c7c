"""Real servers on loopback that misbehave on purpose."""

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator

Conversation = Callable[[socket.socket], None]


@contextlib.contextmanager
def serving(*conversations: Conversation) -> Iterator[str]:
    """A TCP server whose n-th connection is handled by the n-th conversation (the last one again for all later)."""
    done = threading.Event()
    threads: list[threading.Thread] = []
    open_sockets: list[socket.socket] = []
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(0.05)

    def talk(connection: socket.socket, conversation: Conversation) -> None:
        with connection, contextlib.suppress(OSError):
            conversation(connection)

    def accept() -> None:
        count = 0
        while not done.is_set():
            try:
                connection, _ = listener.accept()
            except TimeoutError:
                continue
            connection.settimeout(5)
            open_sockets.append(connection)
            conversation = conversations[min(count, len(conversations) - 1)]
            count += 1
            thread = threading.Thread(target=talk, args=(connection, conversation))
            thread.start()
            threads.append(thread)

    acceptor = threading.Thread(target=accept)
    acceptor.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        done.set()
        acceptor.join()
        for connection in open_sockets:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in threads:
            thread.join()
        listener.close()


def request(connection: socket.socket) -> bytes:
    """Read and return one request, head only."""
    head = b""
    while b"\r\n\r\n" not in head:
        piece = connection.recv(65536)
        if not piece:
            raise OSError("gone")
        head += piece
    return head


def answer(body: bytes, *headers: str, status: str = "200 OK", length: int | None = None) -> bytes:
    head = [f"HTTP/1.1 {status}", f"Content-Length: {len(body) if length is None else length}", *headers]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body
