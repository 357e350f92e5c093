"""A hub of one's own on loopback: says what data sets there are, lists their files and hands them out."""

import hashlib
import json
import re
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType

from tests.datasets.hub_cache import COMMIT

Files = Mapping[str, str | bytes]


class Hub:
    """Serves data sets; those in `gated` are refused as the hub refuses them."""

    def __init__(self, sets: Mapping[str, Files], *, gated: tuple[str, ...] = ()) -> None:
        self.requests: list[str] = []
        hub = self

        class Handler(BaseHTTPRequestHandler):
            def do_HEAD(self) -> None:
                self.do_GET()

            def do_GET(self) -> None:
                hub.requests.append(self.path)
                found = re.match(r"(?:/api)?/datasets/([^/]+/[^/?]+)(?:/(\w+)/([^/?]+)(?:/([^?]*))?)?", self.path)
                if found is None or found[1] not in sets:
                    return self.refuse(404, "RepoNotFound", "Repository not found")
                if found[1] in gated:
                    return self.refuse(403, "GatedRepo", "Access to this data set is restricted")
                if found[3] not in (None, "main", COMMIT):
                    return self.refuse(404, "RevisionNotFound", f"Invalid rev id: {found[3]}")
                files = {name: c.encode() if isinstance(c, str) else c for name, c in sets[found[1]].items()}
                if found[2] == "tree":
                    listed = [{"type": "file", "path": p, "size": len(c), "oid": _hash(c)} for p, c in files.items()]
                    return self.answer(json.dumps(listed).encode(), "application/json")
                if found[2] == "resolve":
                    return self.answer(files[found[4]], "application/octet-stream")
                about = {"id": found[1], "sha": COMMIT, "siblings": [{"rfilename": name} for name in files]}
                return self.answer(json.dumps(about).encode(), "application/json")

            def answer(self, body: bytes, kind: str) -> None:
                self.send_response(200)
                headers = {"X-Repo-Commit": COMMIT, "ETag": f'"{_hash(body)}"', "Content-Type": kind}
                for name, value in {**headers, "Content-Length": str(len(body))}.items():
                    self.send_header(name, value)
                self.end_headers()
                if self.command == "GET":
                    self.wfile.write(body)

            def refuse(self, status: int, code: str, message: str) -> None:
                self.send_response(status)
                self.send_header("X-Error-Code", code)
                self.send_header("X-Error-Message", message)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *arguments: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> "Hub":
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _hash(content: bytes) -> str:
    return hashlib.sha1(content).hexdigest()
