"""Answers of made-up engines, whose preferences are known."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from ranktilt.auditing.comparison.compare import compare
from ranktilt.citing.cite import cite
from ranktilt.citing.comparison.result import CitationComparison
from ranktilt.citing.result import CitationAudit
from ranktilt.data.formats.citations.answer_file import read_answers

LABELS = "pages.csv:id=url"
_PAGES = 12


def write_engines(
    folder: Path, preferences: Mapping[str, float], *, queries: int = 80, domains: int = 120
) -> Path:
    """Write one file with the answers of several engines, and the labels of their pages.

    Each engine cites ``ai`` pages so many times as often as ``human`` ones, of the same pages.
    """
    rng = np.random.default_rng(11)
    quality = rng.normal(0, 0.5, domains)
    labels, lines = dict[str, str](), list[str]()
    for query in range(queries):
        listed = rng.choice(domains, _PAGES, replace=False)
        pages = [f"https://www.d{domain}.org/{rng.integers(3)}" for domain in listed]
        is_ai = listed % 2 == 1
        for page, ai in zip(pages, is_ai.tolist(), strict=True):
            labels[page] = "ai" if ai else "human"
        for engine, preference in preferences.items():
            rates = 0.2 * np.exp(0.3 * quality[listed]) * np.where(is_ai, preference, 1.0)
            is_cited = rng.random(_PAGES) < rates
            record: dict[str, Any] = {
                "query_id": f"q{query}",
                "engine": engine,
                "cited": [page for page, cited in zip(pages, is_cited, strict=True) if cited],
                "consulted": pages,
            }
            lines.append(json.dumps(record))
    table = "".join(f"{page},{label}\n" for page, label in labels.items())
    (folder / "pages.csv").write_text(f"url,source\n{table}", encoding="utf-8")
    path = folder / "answers.jsonl"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def engine_audit(answers: Path, engine: str, **options: Any) -> CitationAudit:
    """Audit one engine of a file."""
    labels = f"{answers.parent}/{LABELS}"
    return cite(read_answers(answers, engine=engine), labels, resamples=999, **options)


@cache
def two_audits() -> tuple[CitationAudit, CitationAudit]:
    """Return the audits of an engine that prefers ``ai`` pages, and of one that does not."""
    with tempfile.TemporaryDirectory() as folder:
        answers = write_engines(Path(folder), {"beta": 2.5, "alpha": 1.0})
        return engine_audit(answers, "beta"), engine_audit(answers, "alpha")


def two_engines() -> CitationComparison:
    """Return the comparison of both."""
    comparison: CitationComparison = compare(*two_audits(), resamples=999)
    return comparison
