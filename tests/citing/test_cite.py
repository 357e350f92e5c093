"""Audits of citations: verdicts, what is refused, what is noted, and the gate."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ranktilt.citing.cite import cite
from ranktilt.citing.gate import gate_citations
from ranktilt.citing.inference.infer import estimate_spread
from ranktilt.citing.result import CitationAudit
from ranktilt.errors import DataError, UserError
from ranktilt.measures.citations import equal_rank, rate, share
from ranktilt.reporting.sentences.notes import note_sentences
from tests.measures.citations.rows import random_world

QUERIES, DOMAINS, PAGES = 60, 80, 12


def write_answers(folder: Path, *, preference: float, consulted: bool = True) -> Path:
    """Write answers that cite pages of ``ai`` domains so many times as often as ``human`` ones."""
    rng = np.random.default_rng(7)
    labels = ["url,source"]
    for domain in range(DOMAINS):
        source = "ai" if domain % 2 else "human"
        labels += [f"https://d{domain}.org/{page},{source}" for page in range(3)]
    (folder / "pages.csv").write_text("\n".join(labels) + "\n", encoding="utf-8")
    lines = []
    for query in range(QUERIES):
        domains = rng.choice(DOMAINS, size=PAGES, replace=False)
        pages = [f"https://www.d{domain}.org/{rng.integers(3)}/" for domain in domains]
        rates = np.where(domains % 2 == 1, 0.25 * preference, 0.25)
        is_cited = rng.random(PAGES) < rates
        record: dict[str, Any] = {
            "query_id": f"q{query}",
            "cited": [page for page, cited in zip(pages, is_cited, strict=True) if cited],
        }
        if consulted:
            record["consulted"] = pages
        lines.append(json.dumps(record))
    path = folder / "answers.jsonl"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def audit_of(folder: Path, **options: Any) -> CitationAudit:
    answers = write_answers(folder, preference=options.pop("preference", 1.0))
    labels = f"{folder}/pages.csv:id=url"
    return cite(answers, labels, pairs=[("ai", "human")], resamples=999, **options)


def test_planted_preference_is_found(tmp_path: Path) -> None:
    audit = audit_of(tmp_path, preference=2.5)
    effect = audit.primary[0]
    assert effect.verdict(audit.margin) == "a"
    assert effect.low < 2.5 < effect.high
    assert audit.unit.name == "domain"
    assert gate_citations(audit, max_tilt=20).outcome == "tilted"
    assert audit.headline.startswith("Of consulted pages, ai ones are cited 2.")


def test_no_preference_is_no_finding(tmp_path: Path) -> None:
    audit = audit_of(tmp_path)
    effect = audit.primary[0]
    assert effect.verdict(audit.margin) == "inconclusive"
    assert effect.low < 1 < effect.high
    assert effect.detectable > 1
    assert gate_citations(audit).outcome == "inconclusive"


def test_wide_margin_is_level(tmp_path: Path) -> None:
    audit = audit_of(tmp_path, margin=100.0)
    assert audit.primary[0].verdict(audit.margin) == "level"
    assert gate_citations(audit, max_tilt=100).outcome == "level"


def test_swapped_groups_give_the_inverse(tmp_path: Path) -> None:
    answers = write_answers(tmp_path, preference=2.0)
    labels = f"{tmp_path}/pages.csv:id=url"
    one_way, other_way = (
        cite(answers, labels, pairs=[pair], resamples=999).primary[0]
        for pair in (("ai", "human"), ("human", "ai"))
    )
    assert one_way.value == pytest.approx(1 / other_way.value)
    assert one_way.low == pytest.approx(1 / other_way.high)
    assert one_way.two_way_p == pytest.approx(other_way.two_way_p)


def test_reference_comes_second(tmp_path: Path) -> None:
    answers = write_answers(tmp_path, preference=2.0)
    labels = f"{tmp_path}/pages.csv:id=url"
    for reference, opposite in (("human", "ai"), ("ai", "human")):
        effect = cite(answers, labels, reference=reference, resamples=199).primary[0]
        assert (effect.a, effect.b) == (opposite, reference)
    with pytest.raises(UserError, match="unknown group 'robot'"):
        cite(answers, labels, reference="robot", resamples=199)
    with pytest.raises(UserError, match="name either pairs or a reference"):
        cite(answers, labels, reference="ai", pairs=[("ai", "human")], resamples=199)


def test_human_is_the_reference_unless_named(tmp_path: Path) -> None:
    answers = write_answers(tmp_path, preference=0.3)
    effect = cite(answers, f"{tmp_path}/pages.csv:id=url", resamples=199).primary[0]
    assert (effect.a, effect.b) == ("ai", "human")


def change_citations(answers: Path, *, cites: str) -> None:
    """Let every answer cite all that it consulted, or only its pages of even (human) domains."""
    records = [json.loads(line) for line in answers.read_text(encoding="utf-8").splitlines()]
    for record in records:
        pages = record["consulted"]
        record["cited"] = pages
        if cites == "human":
            record["cited"] = [page for page in pages if int(page[13:].split(".")[0]) % 2 == 0][:3]
    answers.write_text("".join(f"{json.dumps(record)}\n" for record in records), encoding="utf-8")


def test_engine_that_cites_everything_selects_nothing(tmp_path: Path) -> None:
    answers = write_answers(tmp_path, preference=1.0)
    change_citations(answers, cites="everything")
    audit = cite(answers, f"{tmp_path}/pages.csv:id=url", resamples=199)
    effect = audit.primary[0]
    assert (effect.value, effect.verdict(audit.margin)) == (1.0, "inconclusive")
    assert np.isnan([effect.low, effect.high]).all()
    assert "so nothing was selected" in audit.headline
    assert gate_citations(audit).exit_code == 3


@pytest.mark.parametrize(("reference", "value", "side"), [("human", 0.0, "b"), ("ai", np.inf, "a")])
def test_side_that_is_never_cited_is_found_from_either_side(
    reference: str, value: float, side: str, tmp_path: Path
) -> None:
    answers = write_answers(tmp_path, preference=1.0)
    change_citations(answers, cites="human")
    audit = cite(answers, f"{tmp_path}/pages.csv:id=url", reference=reference, resamples=999)
    effect = audit.primary[0]
    assert (effect.value, effect.verdict(audit.margin)) == (value, side)
    loaded = CitationAudit.load(audit.save(tmp_path / "audit.json"))
    assert loaded.primary[0].verdict(audit.margin) == side
    assert gate_citations(audit).outcome == "tilted"


def test_interval_and_p_say_one_thing() -> None:
    for seed in range(40):
        rows = random_world(seed, domains=60, selection=0.35)
        for question in (rate, share, equal_rank):
            estimate = question.estimate(rows)
            around = estimate_spread(rows, estimate, resamples=197, seed=seed)
            excludes = not around.low <= estimate.neutral <= around.high
            assert excludes == (around.p < 0.05), (seed, question.NAME)


def test_without_a_pool_nothing_is_tested(tmp_path: Path) -> None:
    answers = write_answers(tmp_path, preference=2.5, consulted=False)
    audit = cite(answers, f"{tmp_path}/pages.csv:id=url", resamples=199)
    assert audit.primary[0].question == "share"
    assert audit.primary[0].verdict(audit.margin) == "inconclusive"
    assert "NoPool" in {note.kind for note in audit.notes}
    assert "% of citations, and" in audit.headline
    with pytest.raises(UserError, match="a share of citations alone favours nobody"):
        gate_citations(audit)


def test_share_of_two_groups_is_not_of_all_citations(tmp_path: Path) -> None:
    answers = write_answers(tmp_path, preference=2.5, consulted=False)
    labels = (tmp_path / "pages.csv").read_text("utf-8").splitlines()
    (tmp_path / "some.csv").write_text("\n".join(labels[: 3 * DOMAINS // 2]) + "\n", "utf-8")
    audit = cite(answers, f"{tmp_path}/some.csv:id=url", resamples=199)
    assert "% of the citations of ai and human pages, and" in audit.headline


def test_repeats_count_as_one_answer(tmp_path: Path) -> None:
    answers = write_answers(tmp_path, preference=2.0)
    once = cite(answers, f"{tmp_path}/pages.csv:id=url", resamples=199).primary[0]
    records = [json.loads(line) for line in answers.read_text(encoding="utf-8").splitlines()]
    twice = [record | {"run": run} for record, run in product(records, (1, 2))]
    answers.write_text("".join(f"{json.dumps(record)}\n" for record in twice), encoding="utf-8")
    repeated = cite(answers, f"{tmp_path}/pages.csv:id=url", resamples=199).primary[0]
    assert repeated.value == pytest.approx(once.value)
    assert repeated.error == pytest.approx(once.error)


def test_mixed_domains_make_pages_the_unit(tmp_path: Path) -> None:
    answers = write_answers(tmp_path, preference=1.0)
    rng = np.random.default_rng(1)
    lines = (tmp_path / "pages.csv").read_text(encoding="utf-8").splitlines()[1:]
    mixed = [f"{line.split(',')[0]},{rng.choice(['ai', 'human'])}" for line in lines]
    (tmp_path / "pages.csv").write_text("\n".join(["url,source", *mixed]), encoding="utf-8")
    audit = cite(answers, f"{tmp_path}/pages.csv:id=url", resamples=199)
    assert audit.unit.name == "page"
    assert audit.unit.mixed > 0


SITES = "url,source\n" + "".join(f"https://d{site}.org/1,site{site}\n" for site in range(DOMAINS))
REFUSED = [
    (SITES, {}, "'source' makes .* groups; expected at most 50: name some to compare"),
    ("url,source\nhttps://elsewhere.org/,ai\n", {}, "none of the .* cited pages has a label"),
    ("url,source\n{d1}/0,ai\n{d1}/1,ai\n{d1}/2,ai\n", {}, "every page of the answers is 'ai'"),
    ("", {"pairs": [("ai", "robot")]}, "unknown group 'robot'"),
    ("", {"pairs": [("ai", "ai")]}, "expected two different groups"),
    ("", {"cluster": "owner"}, r"unknown column 'owner' \(valid: page, domain\)"),
    ("", {"cluster": "weight"}, "unknown column 'weight'"),
    ("", {"by": "source:3"}, "cite compares labels as they are|no number|expected numbers"),
    ("", {"margin": -1.0}, "expected a margin of at least 0"),
]


@pytest.mark.parametrize(("labels", "options", "message"), REFUSED)
def test_refused(labels: str, options: dict[str, Any], message: str, tmp_path: Path) -> None:
    answers = write_answers(tmp_path, preference=3.0)
    if labels:
        text = labels.replace("{d1}", "https://d1.org")
        (tmp_path / "pages.csv").write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match=message):
        cite(answers, f"{tmp_path}/pages.csv:id=url", resamples=199, **options)


def test_run_of_strange_queries_is_refused(tmp_path: Path) -> None:
    answers = write_answers(tmp_path, preference=1.0)
    run = tmp_path / "search.csv"
    run.write_text("query_id,url,rank\nx1,https://d1.org/0,1\n", encoding="utf-8")
    with pytest.raises(UserError, match="ranks none of the answers' queries"):
        cite(answers, f"{tmp_path}/pages.csv:id=url", run=f"{run}:id=url")


def test_notes(tmp_path: Path) -> None:
    answers = write_answers(tmp_path, preference=1.0)
    records = [json.loads(line) for line in answers.read_text(encoding="utf-8").splitlines()][:20]
    records[0]["cited"] = []
    records[1]["cited"].append("https://unlabelled.org/")
    answers.write_text("".join(f"{json.dumps(record)}\n" for record in records), encoding="utf-8")
    run = tmp_path / "search.csv"
    run.write_text("query_id,url,rank\nq1,https://d1.org/0,1\n", encoding="utf-8")
    audit = cite(answers, f"{tmp_path}/pages.csv:id=url", run=f"{run}:id=url", resamples=199)
    kinds = [note.kind for note in audit.notes]
    assert kinds == [
        "UnlabelledCitations",
        "CitedWithoutConsulting",
        "QueriesWithoutList",
        "FewQuestions",
        "AnswersWithoutCitations",
        "UnitFound",
        "AnswersReadAs",
    ]
    assert audit.counts.without_citations == 1
    assert audit.counts.unlabelled == 1
    assert audit.counts.without_list == 19


def test_damaged_audit_is_refused(tmp_path: Path) -> None:
    path = audit_of(tmp_path).save(tmp_path / "audit.json")
    path.write_text(
        path.read_text(encoding="utf-8").replace('"rate"', '"fame"', 1), encoding="utf-8"
    )
    with pytest.raises(DataError, match="was changed after ranktilt wrote it"):
        CitationAudit.load(path)


@pytest.mark.long
@pytest.mark.parametrize("question", [rate, share, equal_rank])
def test_labels_without_meaning_are_rarely_a_finding(question: Any) -> None:
    # 1,000 worlds: .046, .043 and .05 were measured; three standard errors are .02.
    findings = 0
    for seed in range(1_000):
        rows = random_world(seed, domains=200, spread=0.8, rank_effect=0.7)
        estimate = question.estimate(rows)
        findings += estimate_spread(rows, estimate, resamples=199, seed=seed).p < 0.05
    assert findings <= 70


def test_unit_is_said_in_words(tmp_path: Path) -> None:
    by_domain = note_sentences(audit_of(tmp_path).notes)
    assert by_domain[0] == (
        "labels are constant within domains (none of 80 with several pages holds both groups), so "
        "the 80 domains are the sample, not their pages"
    )
    answers = tmp_path / "answers.jsonl"
    for path in (answers, tmp_path / "pages.csv"):
        text = (
            path.read_text(encoding="utf-8").replace("https://www.d", "doc").replace(".org/", "-")
        )
        path.write_text(text.replace("https://d", "doc").replace('/"', '"'), encoding="utf-8")
    by_page = note_sentences(cite(answers, f"{tmp_path}/pages.csv:id=url", resamples=199).notes)
    assert by_page[0] == "no domain has several of these pages, so each page counts by itself"


def test_answers_that_tell_less_are_noted(tmp_path: Path) -> None:
    answers = write_answers(tmp_path, preference=2.0)
    records = [json.loads(line) for line in answers.read_text(encoding="utf-8").splitlines()]
    for record in records[:20]:
        del record["consulted"]
    mixed = tmp_path / "mixed.jsonl"
    lines = [json.dumps(record) for record in records]
    mixed.write_text("\n".join(lines) + "\n", encoding="utf-8")
    rest = tmp_path / "rest.jsonl"
    rest.write_text("\n".join(lines[20:]) + "\n", encoding="utf-8")
    labels = f"{tmp_path}/pages.csv:id=url"
    audit, of_rest = (cite(path, labels, resamples=199) for path in (mixed, rest))
    # A rate, and a share that is compared with a pool, are of the queries whose pool is known.
    for effect, effect_of_rest in zip(audit.effects, of_rest.effects, strict=True):
        assert effect.value == pytest.approx(effect_of_rest.value)
        assert effect.neutral == pytest.approx(effect_of_rest.neutral)
    assert note_sentences(audit.notes)[0] == (
        "warning: 20 of 60 answers do not list what they consulted; citation rates are of the "
        "others"
    )
    assert audit.counts.not_consulted == 0
    assert audit.counts.consulted == of_rest.counts.consulted


def test_few_citations_have_no_end_and_name_no_strange_domain(tmp_path: Path) -> None:
    pages = [f"https://{name}.org/1" for name in ("a", "b", "c")]
    records = [
        {"query": "q1", "cited": pages, "consulted": pages},
        {"query": "q2", "cited": pages[:2], "consulted": pages[:2]},
    ]
    answers = tmp_path / "answers.jsonl"
    answers.write_text("".join(f"{json.dumps(record)}\n" for record in records), encoding="utf-8")
    labels = tmp_path / "pages.csv"
    rows = zip(pages, ("ai", "human", "ai"), strict=True)
    lines = [f"{page},{label}\n" for page, label in rows]
    labels.write_text("".join(["url,source\n", *lines]), encoding="utf-8")
    audit = cite(answers, f"{labels}:id=url", resamples=199)
    these = audit.primary[0].these_units
    assert these is not None
    assert (these.score_low, these.score_high) == (0, np.inf)
    assert [unit.name for unit in these.largest] == ["b.org"]
    assert note_sentences(audit.notes)[1] == (
        "no domain has several of these pages; the 3 domains are the sample"
    )
