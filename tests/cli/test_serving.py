"""The server of one page: what it answers, whom, and what it does about clients that misbehave."""

import http.client
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest

from ranktilt.cli.serving import PageServer, _Answer
from ranktilt.errors import UserError

PAGE = "<!DOCTYPE html><title>Σ</title>".encode() + b"x" * 3_000_000


@pytest.fixture
def server() -> Iterator[PageServer]:
    with PageServer() as one:
        one.page = PAGE
        thread = threading.Thread(target=one.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield one
        one.shutdown()
        thread.join()


def asked(
    server: PageServer, method: str = "GET", path: str | None = None, **headers: str
) -> tuple[int, dict[str, str], bytes]:
    line = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    try:
        line.request(method, server.path if path is None else path, headers=headers)
        answer = line.getresponse()
        return answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read()
    finally:
        line.close()


def raw(server: PageServer, request: bytes) -> bytes:
    """Send bytes as they are; return all that comes back."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as line:
        with suppress(OSError):  # it may be refused while it is still being sent
            line.sendall(request)
            line.shutdown(socket.SHUT_WR)
        try:
            return b"".join(iter(lambda: line.recv(1 << 16), b""))
        except ConnectionResetError:
            return b""


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


def test_page_is_at_its_address_whole(server: PageServer) -> None:
    code, headers, body = asked(server)
    assert (code, body) == (200, PAGE)
    assert headers["content-type"] == "text/html; charset=utf-8"
    assert headers["content-length"] == str(len(PAGE))


def test_head_tells_the_same_without_the_page(server: PageServer) -> None:
    code, headers, body = asked(server, "HEAD")
    assert (code, body) == (200, b"")
    assert headers["content-length"] == str(len(PAGE))


@pytest.mark.parametrize("path", [None, "/", "/favicon.ico"])
def test_every_answer_carries_the_headers_that_protect_it(server: PageServer, path: str | None) -> None:
    headers = asked(server, path=path)[1]
    policy = headers["content-security-policy"].split("; ")
    assert {"default-src 'none'", "form-action 'none'", "frame-ancestors 'none'"} < set(policy)
    assert not [rule for rule in policy if "http" in rule or "*" in rule or "'self'" in rule]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cache-control"] == "no-store"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert headers["server"] == "RankTilt"


def rules(headers: dict[str, str]) -> set[str]:
    return set(headers["content-security-policy"].split("; "))


def test_a_page_of_somebody_elses_is_in_a_frame_that_it_cannot_leave(server: PageServer) -> None:
    inside = f"{server.path}/page"
    assert asked(server, path=inside)[0] == 404, "a page that was made here needs no frame"
    server.framed = True
    code, headers, around = asked(server)
    assert (code, PAGE in around, f'sandbox="allow-scripts" title="The report" src="{inside}"' in around.decode()) == (
        200, False, True,
    )  # fmt: skip
    assert {"default-src 'none'", "frame-src 'self'", "frame-ancestors 'none'"} < rules(headers)
    assert not [rule for rule in rules(headers) if "script-src" in rule]
    code, headers, body = asked(server, path=inside, **{"Sec-Fetch-Dest": "iframe"})
    assert (code, body) == (200, PAGE)
    assert {"default-src 'none'", "sandbox allow-scripts", "frame-ancestors 'self'", "form-action 'none'"} < rules(
        headers
    )
    assert asked(server, path=inside, **{"Sec-Fetch-Dest": "document"})[0] == 404, "it is nothing to open by itself"
    assert asked(server, path=f"{inside}/")[0] == asked(server, path=f"{inside[:-1]}")[0] == 404


@pytest.mark.parametrize("path", ["/", "/index.html", "/?x=1", "/../etc/passwd", "/%2e%2e/", "/.", "*"])
def test_nothing_else_is_there(server: PageServer, path: str) -> None:
    code, _, body = asked(server, path=path)
    assert (code, body) == (404, b"404 Not Found\n")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "CONNECT", "BREW"])
def test_only_get_and_head_are_verbs(server: PageServer, method: str) -> None:
    code, _, body = asked(server, method)
    assert (code, body) == (405, b"405 Method Not Allowed\n")


@pytest.mark.parametrize("host", ["127.0.0.1:{}", "localhost:{}", "LocalHost:{}"])
def test_it_answers_to_its_own_names(server: PageServer, host: str) -> None:
    assert asked(server, Host=host.format(server.port))[0] == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:{}",
        "127.0.0.1",
        "localhost",
        "127.0.0.1:1",
        "127.0.0.2:{}",
        "0.0.0.0:{}",
        "[::1]:{}",
    ],
)  # fmt: skip
def test_a_name_that_was_pointed_here_gets_nothing(server: PageServer, host: str) -> None:
    code, _, body = asked(server, Host=host.format(server.port))
    assert (code, body) == (421, b"421 Misdirected Request\n")


def test_a_request_names_its_host_once(server: PageServer) -> None:
    line, host = f"GET {server.path} HTTP/1.1\r\n".encode(), f"Host: 127.0.0.1:{server.port}\r\n".encode()
    assert status(raw(server, line + host + b"\r\n")) == 200
    assert status(raw(server, line + b"\r\n")) == 421
    assert status(raw(server, line + host + b"Host: evil.example\r\n\r\n")) == 421
    assert status(raw(server, line + host + host + b"\r\n")) == 421
    assert status(raw(server, "GET /é HTTP/1.1\r\n".encode() + host + b"\r\n")) == 404


@pytest.mark.parametrize(
    "request_",
    [
        b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nX: " + b"a" * 70_000 + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 200 + b"\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        b"GET /\r\n\r\n",
        b"\0" * 100_000,
        b"",
    ],
)  # fmt: skip
def test_what_is_no_request_gets_no_page_and_no_noise(
    server: PageServer, request_: bytes, capfd: pytest.CaptureFixture[str]
) -> None:
    answer = raw(server, request_)
    assert PAGE not in answer
    assert b"aaaa" not in answer
    assert not answer.startswith(b"HTTP") or 400 <= status(answer) < 600
    assert asked(server)[0] == 200
    assert capfd.readouterr() == ("", "")


def test_clients_that_say_nothing_hold_up_nobody(server: PageServer) -> None:
    silent = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(20)]
    half = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(20)]
    try:
        for line in half:
            line.sendall(b"GET / HTTP/1.1\r\nHost: ")
        assert asked(server)[2] == PAGE
    finally:
        for line in silent + half:
            line.close()


def test_a_client_that_takes_nothing_holds_up_nobody(server: PageServer) -> None:
    with socket.create_connection(("127.0.0.1", server.port)) as line:
        line.sendall(f"GET {server.path} HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n\r\n".encode())
        assert asked(server)[2] == PAGE


def test_a_client_that_says_nothing_is_dropped(server: PageServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_Answer, "timeout", 0.05)
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as line:
        assert line.recv(1) == b""


def test_a_client_that_goes_away_is_nobodys_news(server: PageServer, capfd: pytest.CaptureFixture[str]) -> None:
    for _ in range(5):
        with socket.create_connection(("127.0.0.1", server.port)) as line:
            line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # hang up at once
            line.sendall(f"GET {server.path} HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n\r\n".encode())
    assert asked(server)[0] == 200
    assert capfd.readouterr() == ("", "")


def test_it_listens_on_one_address_only(server: PageServer) -> None:
    assert server.address == f"http://127.0.0.1:{server.port}{server.path}"
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.2", server.port), timeout=30)


def test_its_address_cannot_be_guessed(server: PageServer) -> None:
    assert re.fullmatch(r"/[\w-]{22}", server.path)  # 128 bits
    assert asked(server, path=server.path[:-1])[0] == asked(server, path=f"{server.path}/")[0] == 404
    with PageServer() as other:
        assert other.path != server.path


def test_two_servers_take_two_ports(server: PageServer) -> None:
    with PageServer() as other:
        assert other.port != server.port


def test_a_port_in_use_is_refused_in_a_line(server: PageServer) -> None:
    with pytest.raises(UserError) as told:
        PageServer(server.port)
    assert str(told.value) == (
        f"--port {server.port}: in use on 127.0.0.1; choose another, or leave it out for a free one"
    )


def test_a_port_is_free_again_when_its_server_is_gone() -> None:
    with PageServer() as one:
        port = one.port
    with PageServer(port) as other:
        assert other.port == port


def test_the_usual_port_needs_no_number(monkeypatch: pytest.MonkeyPatch) -> None:
    with PageServer() as one:
        monkeypatch.setattr(one, "server_address", ("127.0.0.1", 80))
        assert one.names == {"127.0.0.1:80", "localhost:80", "127.0.0.1", "localhost"}
