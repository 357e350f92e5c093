"""One page on loopback: for this machine only, nothing but that page, and never held up by a client."""

from __future__ import annotations

import errno
import hmac
import os
import secrets
import signal
import sys
import threading
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from socketserver import TCPServer, ThreadingMixIn
from typing import Any

from ranktilt.cli.output import say
from ranktilt.errors import UserError

HOST = "127.0.0.1"
_PATIENCE = 10.0
"""Seconds that a client may say nothing, or take nothing, before it is dropped."""
_HEADERS = {
    # Beside the page's own, which a finished page of somebody else's may lack: no network, whatever it holds.
    "Content-Security-Policy": "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "img-src data: blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
_HTTP = 80


class PageServer(ThreadingMixIn, TCPServer):
    """A server of one page, which listens from the moment that it is made.

    Parameters
    ----------
    port : int
        1 to 65535; 0 for any that is free.

    Raises
    ------
    UserError
        If the port is in use or not allowed.
    """

    daemon_threads = True
    block_on_close = False
    allow_reuse_address = os.name == "posix"  # elsewhere two servers would share a port
    request_queue_size = 64

    def __init__(self, port: int = 0) -> None:
        self.page = b""
        self.path = f"/{secrets.token_urlsafe(16)}"
        try:
            super().__init__((HOST, port), _Answer)
        except OSError as error:
            raise UserError(
                f"--port {port}: {_reason(error)}; choose another, or leave it out for a free one"
            ) from error

    @property
    def port(self) -> int:
        """The port it listens on."""
        return int(self.server_address[1])

    @property
    def address(self) -> str:
        """Where the page is; nobody can guess it, for a port on loopback is open to every user of the machine."""
        return f"http://{HOST}:{self.port}{self.path}"

    @property
    def names(self) -> set[str]:
        """What a client may call it; any other name was made to point here by someone else's name server."""
        hosts = {HOST, "localhost"}
        return {f"{host}:{self.port}" for host in hosts} | (hosts if self.port == _HTTP else set())

    def serve(self, *, browser: bool) -> None:
        """Answer until the process is interrupted or told to end.

        Parameters
        ----------
        browser : bool
            Open the user's browser at the page.
        """
        with _until_told():
            if browser:
                threading.Thread(target=self._show, daemon=True).start()  # a browser in a terminal does not return
            self.serve_forever()

    def _show(self) -> None:
        if not webbrowser.open(self.address):
            say("no browser could be opened; open the address in yours")

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of clients that go away or stay silent; anything else is our own mistake."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


class _Answer(BaseHTTPRequestHandler):
    server: PageServer
    timeout = _PATIENCE
    error_content_type = "text/plain; charset=utf-8"
    error_message_format = "%(code)d %(message)s\n"

    def do_GET(self) -> None:
        self._answer()

    def do_HEAD(self) -> None:
        self._answer()

    def _answer(self) -> None:
        named = self.headers.get_all("Host", [])
        if len(named) != 1 or named[0].strip().lower() not in self.server.names:
            self.send_error(HTTPStatus.MISDIRECTED_REQUEST)
        elif not hmac.compare_digest(self.path.encode(), self.server.path.encode()):
            self.send_error(HTTPStatus.NOT_FOUND)
        else:
            self.send_response(HTTPStatus.OK)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(self.server.page)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(self.server.page)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Refuse in a line; what came is not repeated."""
        unknown_verb = code == HTTPStatus.NOT_IMPLEMENTED
        found = HTTPStatus.METHOD_NOT_ALLOWED if unknown_verb else HTTPStatus(code)
        super().send_error(found, found.phrase, "")

    def end_headers(self) -> None:
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        super().end_headers()

    def version_string(self) -> str:
        return "RankTilt"

    def log_message(self, format: str, *args: Any) -> None:
        """Requests are nobody's news."""


@contextmanager
def _until_told() -> Iterator[None]:
    """Take SIGTERM as Ctrl-C, and either as the usual end."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    except KeyboardInterrupt:
        pass
    finally:
        signal.signal(signal.SIGTERM, before)


def _reason(error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"in use on {HOST}"
    return f"cannot be had on {HOST}: {error.strerror or error}"
