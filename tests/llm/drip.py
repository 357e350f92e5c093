"""A server that sends a byte now and then, without an end, so that no wait for the next byte is
ever too long.
"""

from __future__ import annotations

import socket
import threading
from contextlib import suppress

PAUSE = 0.02
"""Seconds between two bytes."""


class Drip:
    """A server on loopback that sends `start` at once, and then blanks one by one to everybody who
    asks.
    """

    def __init__(self, start: bytes) -> None:
        self.start = start
        self.connections = 0
        self._closed = threading.Event()
        self._socket = socket.create_server(("127.0.0.1", 0))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._socket.getsockname()[1]}/v1"

    def __enter__(self) -> Drip:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closed.set()
        self._socket.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._socket.accept()
                self.connections += 1
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with suppress(OSError), connection:
            connection.recv(1 << 16)
            connection.sendall(self.start)
            while not self._closed.wait(PAUSE):
                connection.sendall(b" ")
