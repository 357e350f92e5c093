"""Read responses of search engines, from files and live: hits, and signs of partial results.

An engine answers in time rather than in full: shards fail, time runs out, and the response still
looks like any other. A partial response counts as a failed query, because the missing results need
not be those at the end. A *layout* says where the responses of one engine have their hits.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ranktilt.data.formats.notation import value_at
from ranktilt.data.formats.responses.layouts import (
    ResponseLayout,
    first_path,
    hits_at,
    layout_of,
)
from ranktilt.errors import counted, shorten

Json = Mapping[str, Any]
"""A JSON object."""

MAX_FAILURES = 5.0
"""Largest percentage of a run's queries that may fail."""
_ID_FIELDS = ("id", "_id", "key")
"""Fields of a hit's id, if a layout names none."""
_LOWEST_ERROR_STATUS = 400
"""Lowest status of HTTP that is an error: from 400 on they are faults of the client or server."""


def is_response(content: Any) -> bool:
    """Return whether JSON is a response to a search, or an engine's error in place of one."""
    return layout_of(content) is not None or is_error(content)


def hits_of(response: Json) -> list[Any]:
    """Return the hits of a response, best first: records with ``id`` and ``score`` (or null)."""
    layout = layout_of(response)
    if layout is None:
        return []
    hits = hits_at(response, layout.hits) or []
    score_paths = layout.score or ("score",)
    return [_plain_hit(hit, layout, score_paths) for hit in hits if isinstance(hit, Mapping)]


def _plain_hit(hit: Json, layout: ResponseLayout, score_paths: Sequence[str]) -> dict[str, Any]:
    """Return ``id`` and ``score`` of a hit."""
    doc_id = value_at(hit, first_path(hit, layout.document or _ID_FIELDS))
    if layout.id_after and isinstance(doc_id, str):
        doc_id = doc_id.split(layout.id_after, 1)[-1]
    return {"id": doc_id, "score": value_at(hit, first_path(hit, score_paths))}


def response_fault(response: Any) -> str:
    """Say why a value is no complete response to a search; empty if it is one."""
    if not is_response(response):
        return f"not a response to a search: {shorten(response)}"
    return signs_of_fault(response)


def signs_of_fault(response: Json) -> str:
    """Return every sign of an error or of a partial response; empty where there is none."""
    return ", ".join(_faults(response))


def allowed_failures(total: int, max_failures: float) -> int:
    """Return how many of `total` queries may fail; `max_failures` is a percentage."""
    # The small number keeps a product that rounding puts just below a whole number from losing 1.
    return math.floor(max_failures / 100 * total + 1e-9)


def too_many_failures(
    failed: int,
    total: int,
    max_failures: float,
    *,
    tried: int | None = None,
    noun: tuple[str, str] = ("query", "queries"),
) -> str:
    """Say that more queries failed than allowed.

    Parameters
    ----------
    failed : int
        Number of queries that failed.
    total : int
        Number of all queries.
    max_failures : float
        Percentage of queries that may fail.
    tried : int, optional
        Number of queries that were tried; by default all.
    noun : (str, str), optional
        Noun for what failed, and its plural: answers, where queries have several.
    """
    queries = counted(total if tried is None else tried, *noun)
    allowed = allowed_failures(total, max_failures)
    return (
        f"{failed:,} of {queries} failed, "
        f"max_failures={max_failures:g} % allows {allowed:,} of {total:,}"
    )


def is_error(content: Any) -> bool:
    """Return whether an object is an error of an engine.

    It has a field ``error`` and no id, which a document with such a field has.
    """
    if not isinstance(content, Mapping):
        return False
    return isinstance(content.get("error"), Mapping | str) and "id" not in content


def _faults(response: Json) -> Iterator[str]:
    """Yield every sign of an error or of a partial response, in each engine's own words."""
    status = response.get("status")
    has_error_status = isinstance(status, int) and status >= _LOWEST_ERROR_STATUS
    if response.get("error"):
        yield _error_text(response["error"], status)
    elif has_error_status:
        yield f"status {status}"
    for flag in ("timed_out", "terminated_early", "is_partial", "is_running"):
        if response.get(flag) is True:
            yield flag.replace("_", " ").replace("is ", "")
    yield from _shard_faults(response.get("_shards"))
    yield from _cluster_faults(response.get("_clusters"))
    yield from _solr_faults(response.get("responseHeader"))
    yield from _vespa_faults(response.get("root"))
    yield from _store_faults(response)
    if isinstance(response.get("response"), Mapping):
        yield from _faults(response["response"])


def _first_value(records: Sequence[Json], key: str) -> Any:
    """Return the first value of a field that is not empty; None if all are."""
    return next((record[key] for record in records if record.get(key)), None)


def _error_text(error: Any, status: Any) -> str:
    """Return an error's type, reason and status, as far as it has them, as one text."""
    parts = [error] if isinstance(error, str) else []
    if isinstance(error, Mapping):
        causes = [cause for cause in error.get("root_cause") or () if isinstance(cause, Mapping)]
        kind = _first_value([error, *causes], "type")
        reason = _first_value([error, *causes], "reason")
        reason = reason or error.get("msg") or error.get("message")
        parts = [str(part) for part in (kind, reason) if part]
        status = error.get("code") if status is None else status
    text = " ".join(": ".join(parts or ["error"]).split())
    return f"{text} (status {status})" if status is not None else text


def _shard_faults(shards: Any) -> Iterator[str]:
    """Yield how many parts of an index did not answer, and why."""
    if not isinstance(shards, Mapping):
        return
    total, successful = shards.get("total"), shards.get("successful")
    failed_count = shards.get("failed") or 0
    if isinstance(total, int) and isinstance(successful, int):
        failed_count = max(failed_count, total - successful)
    if failed_count:
        failures = [
            failure for failure in shards.get("failures") or () if isinstance(failure, Mapping)
        ]
        reasons = [
            _error_text(failure["reason"], None) for failure in failures if failure.get("reason")
        ]
        reason = f" ({reasons[0]})" if reasons else ""
        yield f"{failed_count} of {total} shards failed{reason}"


def _cluster_faults(clusters: Any) -> Iterator[str]:
    """Yield how many clusters of a search across clusters did not answer in full."""
    if not isinstance(clusters, Mapping):
        return
    total, successful = clusters.get("total"), clusters.get("successful")
    counts = {name: clusters.get(name) or 0 for name in ("skipped", "partial", "failed", "running")}
    # Some responses say only how many clusters were successful.
    if not any(counts.values()) and isinstance(total, int) and isinstance(successful, int):
        counts = {"not successful": total - successful}
    if any(counts.values()):
        missing = " and ".join(f"{count} {name}" for name, count in counts.items() if count)
        yield f"of {total} clusters {missing}"


def _solr_faults(header: Any) -> Iterator[str]:
    """Yield what Solr says of an answer that is not complete."""
    if not isinstance(header, Mapping):
        return
    if header.get("status"):
        yield f"status {header['status']}"
    for flag in ("partialResults", "segmentTerminatedEarly"):
        if header.get(flag) in (True, "true", "omitted"):
            yield flag


def _store_faults(response: Json) -> Iterator[str]:
    """Yield the errors of vector stores: in GraphQL, in Qdrant's status, in Milvus' code."""
    errors = response.get("errors")
    for error in errors if isinstance(errors, list) else ():
        yield _error_text(error, None)
    status = response.get("status")
    if isinstance(status, Mapping) and status.get("error"):
        yield _error_text(status["error"], None)
    code = response.get("code")
    if type(code) is int and code not in (0, 200) and "data" not in response:
        yield f"code {code}: {response.get('message', 'error')}"


def _vespa_faults(root: Any) -> Iterator[str]:
    """Yield what Vespa says of an answer that is not complete."""
    if not isinstance(root, Mapping):
        return
    for error in root.get("errors") or ():
        yield _error_text(error, None)
    coverage = root.get("coverage")
    if isinstance(coverage, Mapping) and (
        coverage.get("degraded") or coverage.get("full") is False
    ):
        yield f"coverage {coverage.get('coverage', '?')} %"
