"""What cannot vary is level with nobody: such runs are inconclusive, and every result made of them
says why.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cli.conftest import Cli

QUERIES = 40
QUICK = ("--set", "statistics.resamples=300")
SCORES = {"d1": 3.0, "d2": 2.0, "d3": 1.0}
"""Of the documents of every query; both twins of a document share its score."""
Scores = Callable[[int], dict[str, float]]


def equal_scores(query: int) -> dict[str, float]:
    return dict.fromkeys(SCORES, 0.5)


def copies(query: int) -> dict[str, float]:
    return SCORES


def equal_scores_in(count: int) -> Scores:
    return lambda query: equal_scores(query) if query < count else SCORES


def trec_lines(scores: Scores) -> Iterator[str]:
    """Lists of three documents in two versions each, such as ``q0 Q0 q0-d1-human 1 3.0 run``."""
    for query in range(QUERIES):
        for rank, (document, score) in enumerate(scores(query).items(), start=1):
            for side in ("human", "ai"):
                yield f"q{query} Q0 q{query}-{document}-{side} {rank} {score} run"


def single_lines() -> Iterator[str]:
    for query in range(QUERIES):
        yield f"q{query} Q0 q{query}-d1-{('human', 'ai')[query % 2]} 1 1.0 run"


def label_lines() -> Iterator[str]:
    yield "doc_id,source,origin"
    for query in range(QUERIES):
        for document in SCORES:
            for side in ("human", "ai"):
                yield f"q{query}-{document}-{side},{side},q{query}-{document}"


def write_lines(path: Path, lines: Iterator[str]) -> Path:
    path.write_text("\n".join(lines) + "\n")
    return path


@dataclass(frozen=True, kw_only=True)
class Case:
    name: str
    lines: Callable[[], Iterator[str]]
    code: int
    reason: str = ""


CASES = [
    Case(
        name="all lists tied",
        lines=lambda: trec_lines(equal_scores),
        code=3,
        reason="all documents have the same score in 40 of 40 lists",
    ),
    Case(
        name="most lists tied",
        lines=lambda: trec_lines(equal_scores_in(21)),
        code=3,
        reason="all documents have the same score in 21 of 40 lists",
    ),
    Case(
        name="half of the lists tied",
        lines=lambda: trec_lines(equal_scores_in(20)),
        code=0,
    ),
    Case(
        name="one result a list",
        lines=single_lines,
        code=3,
        reason="there is only one document in 40 of 40 lists",
    ),
    # Every twin ties with its own, and with no other document: a ranker that sees no difference is
    # level.
    Case(
        name="byte-identical copies",
        lines=lambda: trec_lines(copies),
        code=0,
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_gate_needs_variation(cli: Cli, tmp_path: Path, case: Case) -> None:
    run = write_lines(tmp_path / "run.trec", case.lines())
    labels = write_lines(tmp_path / "labels.csv", label_lines())
    saved = tmp_path / "audit.json"
    audited = cli("audit", "--run", run, "--groups", labels, *QUICK, "--json", saved)
    assert audited.code == 0
    verdict = json.loads(saved.read_text())["verdicts"][0]
    # One result a list favours each side in half of the queries, which no interval shows to be
    # level either.
    assert verdict["kind"] == ("level" if case.code == 0 else "inconclusive")
    gated = cli("gate", saved)
    assert gated.code == case.code
    for printed in (audited.out, gated.out):
        assert ("it cannot be shown to be level" in printed) == bool(case.reason)
        assert not case.reason or f"warning: run: {case.reason}" in printed
    assert (case.reason + ", so it cannot be shown to be level" in verdict["sentence"]) == bool(
        case.reason
    )


def test_growth_of_a_run_that_cannot_vary_is_inconclusive(cli: Cli, tmp_path: Path) -> None:
    labels = write_lines(tmp_path / "labels.csv", label_lines())
    qrels = tmp_path / "qrels.txt"
    judged = [
        f"q{query} 0 q{query}-d1-{side} 1" for query in range(QUERIES) for side in ("human", "ai")
    ]
    qrels.write_text("\n".join(judged) + "\n")
    saved = {}
    for name, scores in (("dead", equal_scores), ("live", copies)):
        run = write_lines(tmp_path / f"{name}.trec", trec_lines(scores))
        saved[name] = tmp_path / f"{name}.json"
        options = ("-m", "nDCG@3", "--qrels", qrels, *QUICK, "--json", saved[name])
        assert cli("audit", "--run", run, "--groups", labels, *options).code == 0
    codes = {
        (new, old): cli("gate", saved[new], "--baseline", saved[old], *QUICK).code
        for new in saved
        for old in saved
    }
    assert codes == {
        ("live", "live"): 0,
        ("dead", "live"): 3,
        ("live", "dead"): 3,
        ("dead", "dead"): 3,
    }
    compared = cli("compare", saved["dead"], saved["live"], *QUICK)
    assert "warning: new: dead: all documents have the same score in 40 of 40 lists" in compared.out


def test_lists_within_the_first_ranks_say_nothing_of_share(cli: Cli, tmp_path: Path) -> None:
    # Ten results a query are the first ten, whatever their order: the share of either side is that
    # of the list.
    lines = (
        f"q{query} Q0 q{query}-{rank}-{('human', 'ai')[rank % 2]} {rank} {20 - rank} run"
        for query in range(QUERIES)
        for rank in range(1, 11)
    )
    ids = [
        f"q{query}-{rank}-{('human', 'ai')[rank % 2]}"
        for query in range(QUERIES)
        for rank in range(1, 11)
    ]
    labels = [f"{name},{name.rpartition('-')[2]}" for name in ids]
    run = write_lines(tmp_path / "run.trec", lines)
    table = write_lines(tmp_path / "labels.csv", iter(["doc_id,source", *labels]))
    saved = tmp_path / "audit.json"
    audited = cli("audit", "--run", run, "--groups", table, *QUICK, "--json", saved)
    assert (
        "run is inconclusive: all documents are within the first ranks in 40 of 40 lists"
        in audited.out
    )
    assert cli("gate", saved).code == 3


def test_identical_runs_are_said_to_be(cli: Cli, tmp_path: Path) -> None:
    labels = write_lines(tmp_path / "labels.csv", label_lines())
    first = write_lines(
        tmp_path / "first.trec", (line.replace(" run", " one") for line in trec_lines(copies))
    )
    # Other scores, the same order.
    doubled = trec_lines(lambda query: {document: 2 * score for document, score in SCORES.items()})
    second = write_lines(
        tmp_path / "second.trec", (line.replace(" run", " two") for line in doubled)
    )
    third = write_lines(
        tmp_path / "third.trec",
        (line.replace(" run", " three") for line in trec_lines(equal_scores)),
    )
    runs = [argument for run in (first, second, third) for argument in ("--run", run)]
    printed = cli("audit", *runs, "--groups", labels, *QUICK).out
    assert "one and two are identical: they give every query the same list\n" in printed
    assert "three are identical" not in printed
