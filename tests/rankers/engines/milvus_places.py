"""Places of Milvus: servers on loopback, in this process and in one that can be killed, and what a place holds."""

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ranktilt.rankers.engines.milvus_index import client


def indexes(place: str) -> list[str]:
    with client(place, 10) as made:
        return sorted(made.list_collections())


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """A Milvus server on loopback."""
    from milvus_lite.adapter.grpc.server import start_server_in_thread

    server, database, port = start_server_in_thread(data_dir=str(folder), host="127.0.0.1", port=0)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.stop(grace=None).wait()
        database.close()


def closed_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


class ServerProcess:
    """Milvus Lite as a server in a process of its own, on a port that stays the same when it is started again."""

    def __init__(self, folder: Path) -> None:
        self._port = closed_port()
        where = ["--data-dir", str(folder), "--host", "127.0.0.1", "--port", str(self._port)]
        self._command = [sys.executable, "-m", "milvus_lite", "server", *where]
        self.address = f"http://127.0.0.1:{self._port}"
        self.start()

    def start(self) -> None:
        self._process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def wait(self) -> None:
        """Until it listens."""
        for _ in range(600):
            try:
                socket.create_connection(("127.0.0.1", self._port), timeout=1).close()
                return
            except OSError:
                time.sleep(0.1)
        raise TimeoutError(self.address)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
