"""The files and batches of an OpenAI-compatible server, beside its chat: in memory, with ends on
demand.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from tests.llm.server import Raw, Server

Body = dict[str, Any]


class BatchServer(Server):
    """A server whose batches end after `looks` looks, each as `ends` says of it in turn:
    "completed" for the rest.

    "partly" fails every other request (500), "expired" answers the first half, "cancelled" too,
    "refused" takes no request (400), "quota" answers the first alone, "failed" answers none. Lines
    of answers come in reversed order.
    """

    def __init__(self, *, ends: Sequence[str] = (), looks: int = 1, **options: Any) -> None:
        super().__init__(**options)
        self.ends, self.looks = list(ends), looks
        self.files: dict[str, list[Body]] = {}
        self.batches: list[Body] = []
        self.looked = Counter[str]()
        self.paid: list[Body] = []

    @property
    def submitted(self) -> list[list[str]]:
        """Keys of the requests of each batch."""
        return [
            [line["custom_id"] for line in self.files[batch["input_file_id"]]]
            for batch in self.batches
        ]

    def _response(
        self, request: Any, fault: str | Raw | None
    ) -> tuple[int, Any, Mapping[str, str]]:
        path, _, query = request.path.removeprefix("/v1/").partition("?")
        kind, *rest = path.split("/")
        if isinstance(fault, Raw) or kind not in ("files", "batches"):
            return super()._response(request, fault)
        if kind == "files":
            return 200, self._file(request.body, rest), {}
        if "input_file_id" in request.body:
            batch = {
                "object": "batch",
                "status": "validating",
                "output_file_id": None,
                "error_file_id": None,
            }
            self.batches.append({"id": f"batch-{len(self.batches)}", **batch, **request.body})
            return 200, self.batches[-1], {}
        if rest:
            batch = next(candidate for candidate in self.batches if candidate["id"] == rest[0])
            self.looked[rest[0]] += 1
            return 200, self._ended(batch) if self.looked[rest[0]] >= self.looks else batch, {}
        start = next(
            (
                n
                for n, candidate in enumerate(reversed(self.batches), 1)
                if f"after={candidate['id']}" in query
            ),
            0,
        )
        latest = self.batches[::-1][start : start + 2]  # in small pages
        return (
            200,
            {"object": "list", "data": latest, "has_more": start + 2 < len(self.batches)},
            {},
        )

    def _file(self, body: Body, rest: list[str]) -> Body | str:
        if rest:
            return "".join(json.dumps(line) + "\n" for line in self.files[rest[0]])
        return {"id": self._stored(body["lines"]), "object": "file", "purpose": "batch"}

    def _stored(self, lines: list[Body]) -> str:
        name = f"file-{len(self.files)}"
        self.files[name] = lines
        return name

    def _ended(self, batch: Body) -> Body:
        if batch["status"] == "validating":
            number = self.batches.index(batch)
            end = self.ends[number] if number < len(self.ends) else "completed"
            lines = self.files[batch["input_file_id"]]
            good, bad = self._lines(end, lines)
            batch["status"] = end if end in ("expired", "cancelled", "failed") else "completed"
            batch["output_file_id"] = self._stored(good[::-1]) if good else None
            batch["error_file_id"] = self._stored(bad) if bad else None
            if end == "failed":
                batch["errors"] = {
                    "object": "list",
                    "data": [{"message": "Enqueued token limit reached."}],
                }
        return batch

    def _lines(self, end: str, lines: list[Body]) -> tuple[list[Body], list[Body]]:
        half = {
            "expired": len(lines) // 2,
            "cancelled": len(lines) // 2,
            "quota": 1,
            "failed": 0,
            "refused": 0,
        }
        first = half.get(end, len(lines))
        answered = [
            line for number, line in enumerate(lines[:first]) if end != "partly" or number % 2 == 0
        ]
        good = [_line(line, 200, self._completion(line["body"], None)) for line in answered]
        self.paid += [line["body"] for line in answered]
        rest = [line for line in lines if line not in answered]
        if end == "failed":
            return [], []
        errors = {
            "partly": (500, {"message": "The server had an error."}),
            "refused": (400, {"message": "This model's maximum context length is 8 tokens."}),
            "quota": (
                429,
                {
                    "message": "No quota.",
                    "code": "insufficient_quota",
                    "type": "insufficient_quota",
                },
            ),
        }
        if end in errors:
            status, error = errors[end]
            return good, [_line(line, status, {"error": error}) for line in rest]
        error = {
            "code": f"batch_{end}",
            "message": f"This request could not be executed: batch {end}.",
        }
        return good, [
            {"custom_id": line["custom_id"], "response": None, "error": error} for line in rest
        ]


def _line(line: Body, status: int, body: Body) -> Body:
    return {
        "custom_id": line["custom_id"],
        "response": {"status_code": status, "body": body},
        "error": None,
    }
