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

from ranktilt.cli.notes import say
from ranktilt.errors import UserError

HOST = "127.0.0.1"
_CLIENT_TIMEOUT = 10.0
"""Seconds that a client may say nothing, or take nothing, before it is dropped."""
_CLOSED = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; "
_OPEN = f"{_CLOSED}script-src 'unsafe-inline'; img-src data: blob:; "
_POLICY = f"{_OPEN}frame-ancestors 'none'"
# A page of somebody else's may lack a policy of its own, and its scripts could lead away, with what they have read in
# the address. So it runs in a frame, of which the page around it says where it may lead: nowhere.
_FRAMED = f"{_OPEN}frame-ancestors 'self'; sandbox allow-scripts"
_FRAME = f"{_CLOSED}frame-src 'self'; frame-ancestors 'none'"
_OUTER_PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>A finished report, in a frame</title>
<style>body {{ margin: 0 }} iframe {{ border: 0; width: 100vw; height: 100vh; display: block }}</style>
</head><body><iframe sandbox="allow-scripts" title="The report" src="{}"></iframe></body></html>
"""
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "X-DNS-Prefetch-Control": "off",
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
_HTTP = 80


class PageServer(ThreadingMixIn, TCPServer):
    """A server of one page on loopback (port 0: any that is free), listening from the moment that it is made."""

    daemon_threads = True
    block_on_close = False
    allow_reuse_address = os.name == "posix"  # elsewhere two servers would share a port
    request_queue_size = 64

    def __init__(self, port: int = 0) -> None:
        self.page = b""
        self.framed = False
        """Whether the page is somebody else's, and is shown in a frame that it cannot leave."""
        self.path = f"/{secrets.token_urlsafe(16)}"
        try:
            super().__init__((HOST, port), _Answer)
        except OSError as error:
            raise UserError(
                f"--port {port}: {_reason(error)}; choose another, or leave it out for a free one"
            ) from error

    @property
    def port(self) -> int:
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
        """Answer until the process is interrupted or told to end."""
        with _until_ended():
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
    timeout = _CLIENT_TIMEOUT
    policy = _POLICY
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
        elif hmac.compare_digest(self.path.encode(), self.server.path.encode()):
            framed = self.server.framed
            self._send(
                _OUTER_PAGE.format(f"{self.server.path}/page").encode() if framed else self.server.page,
                _FRAME if framed else _POLICY,
            )
        elif self._in_frame() and hmac.compare_digest(self.path.encode(), f"{self.server.path}/page".encode()):
            self._send(self.server.page, _FRAMED)
        else:
            self.send_error(HTTPStatus.NOT_FOUND)

    def _in_frame(self) -> bool:
        """Whether a page is asked for by our frame; a browser that does not say so is taken at its frame's word."""
        return self.server.framed and self.headers.get("Sec-Fetch-Dest", "iframe") == "iframe"

    def _send(self, page: bytes, policy: str) -> None:
        self.policy = policy
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(page)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Refuse in a line; what came is not repeated."""
        unknown_verb = code == HTTPStatus.NOT_IMPLEMENTED
        found = HTTPStatus.METHOD_NOT_ALLOWED if unknown_verb else HTTPStatus(code)
        super().send_error(found, found.phrase, "")

    def end_headers(self) -> None:
        for name, value in {"Content-Security-Policy": self.policy, **_HEADERS}.items():
            self.send_header(name, value)
        super().end_headers()

    def version_string(self) -> str:
        return "RankTilt"

    def log_message(self, format: str, *args: Any) -> None:
        """Requests are nobody's news."""


@contextmanager
def _until_ended() -> Iterator[None]:
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
    return f"is unavailable on {HOST}: {error.strerror or error}"
