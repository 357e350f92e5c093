"""Places of Milvus: a server on loopback, and what a place holds."""

import socket
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
