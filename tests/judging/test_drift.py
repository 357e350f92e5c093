"""Two audits of judges compared on the pairs that both graded: agreement, grades, tilt, order."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import ranktilt as rt
from ranktilt import JudgeAudit, UserError
from ranktilt.auditing.gate.result import Gate
from ranktilt.errors import DataError
from ranktilt.judging.drift.result import JudgeChange, JudgeDrift
from ranktilt.judging.gate import DriftLimits, gate_judges
from ranktilt.judging.judge import judge
from ranktilt.judging.systems.judge_scores import judge_scores
from ranktilt.reporting.sentences.notes import note_sentence
from tests.judging.judged import bed, grades, runs
from tests.toy import collection_of, versions

# query document human old new
GRADES = """\
q1 a 0 0 0
q1 b 0 0 1
q1 c 1 1 1
q1 d 1 1 1
"""
SOME = {"resamples": 200}


def columns(text: str) -> dict[str, pl.DataFrame]:
    """Return human grades, and those of the old and the new judge; − stands for none."""
    rows = [line.split() for line in text.splitlines()]
    frames = {}
    for index, name in enumerate(("human", "old", "new"), start=2):
        graded = [row for row in rows if row[index] != "-"]
        frames[name] = pl.DataFrame(
            {
                "query_id": [row[0] for row in graded],
                "doc_id": [row[1] for row in graded],
                "grade": [int(row[index]) for row in graded],
            }
        )
    return frames


def audits(text: str, **options: int) -> tuple[JudgeAudit, JudgeAudit]:
    """Return the audits of the new and of the old judge."""
    frames = columns(text)
    new, old = (
        judge({name: frames[name]}, frames["human"], resamples=200, **options)
        for name in ("new", "old")
    )
    return new, old


def change_of(drift: JudgeDrift, question: str, subject: str = "") -> JudgeChange:
    (change,) = (
        change
        for change in drift.changes
        if (change.question, change.subject) == (question, subject)
    )
    return change


def many(text: str, queries: int) -> str:
    """Return the rows of one query for many queries."""
    parts = [text.replace("q1", f"q{query}") for query in range(queries)]
    return "".join(parts)


def test_drift_by_hand() -> None:
    """The old judge is right four times, κ 1; the new one three times: (.75 − .5) / .5 = .5, and
    its mean grade is 3/4 against 2/4.
    """
    drift = rt.compare(*audits(many(GRADES, 10)), **SOME)
    kappa, mean = change_of(drift, "agreement"), change_of(drift, "grade")
    assert (kappa.new, kappa.old, kappa.value) == (0.5, 1.0, -0.5)
    assert (mean.new, mean.old, mean.value, mean.pairs, mean.queries) == (0.75, 0.5, 0.25, 40, 10)
    (pair,) = drift.judges
    assert (pair.new_pairs, pair.old_pairs, pair.common_pairs, pair.human_pairs) == (40,) * 4
    assert pair.same.value == 0.75


def test_drift_counts_pairs_of_one_judge() -> None:
    rows = "q1 e 1 1 -\nq1 f 0 - 1\nq1 g 0 - 1\nq1 h - 1 0\n"
    drift = rt.compare(*audits(many(GRADES + rows, 8)), **SOME)
    (pair,) = drift.judges
    assert (pair.new_pairs, pair.old_pairs) == (56, 48)
    assert (pair.common_pairs, pair.human_pairs) == (40, 32)
    assert change_of(drift, "grade").value == pytest.approx(0.0)
    notes = " ".join(note_sentence(note) for note in drift.notes)
    assert "compared on the 40 pairs that both judges graded; 16 graded by the new judge" in notes


def test_drift_without_intervals_below_six_queries() -> None:
    drift = rt.compare(*audits(many(GRADES, 5)), **SOME)
    assert all(np.isnan(change.low) and np.isnan(change.p) for change in drift.changes)
    assert {change.kind for change in drift.changes} == {"inconclusive"}
    assert "5 queries are too few to compare judges (6 needed)" in str(drift)


def test_same_judge_is_identical() -> None:
    new, _ = audits(many(GRADES, 10))
    drift = rt.compare(new, new, **SOME)
    assert {change.kind for change in drift.changes} == {"identical"}
    assert str(drift) == "new gives all 40 common pairs the same grades as before."


@pytest.fixture(scope="module")
def planted() -> tuple[JudgeAudit, JudgeAudit]:
    """A new judge that likes text of models, and an old one that does not, with runs and twins."""
    collection = bed()
    fond = grades(collection, for_llm=0.6)
    options = {"collection": collection, "runs": runs(collection, fond, 1.0)}
    new, old = (
        judge({name: frame}, **options, measures="nDCG@3", resamples=500)  # type: ignore[arg-type]
        for name, frame in (("fond", fond), ("fair", grades(collection, noise=0.2, seed=4)))
    )
    return new, old


def test_drift_by_source_and_order(planted: tuple[JudgeAudit, JudgeAudit]) -> None:
    new, old = planted
    drift = rt.compare(new, old, resamples=1000)
    subjects = [(change.question, change.subject) for change in drift.changes]
    assert subjects == [
        ("agreement", ""),
        ("grade", ""),
        ("grade", "human"),
        ("grade", "llm"),
        ("tilt", ""),
        ("order", "nDCG@3"),
    ]
    tilt = change_of(drift, "tilt")
    assert (tilt.a, tilt.b, tilt.is_of_twins, tilt.kind) == ("human", "llm", True, "changed")
    # The audits' own grade gaps are the new and the old value.
    assert (tilt.new, tilt.old) == (new.main_gaps[0].value, old.main_gaps[0].value)
    assert tilt.growth == pytest.approx(abs(tilt.new) - abs(tilt.old))
    order = change_of(drift, "order", "nDCG@3")
    assert (order.new, order.old) == tuple(
        audit.rank_agreements[0].tau.value for audit in (new, old)
    )
    assert change_of(drift, "grade", "human").kind == "inconclusive"
    assert change_of(drift, "grade", "llm").kind == "changed"


def test_drift_turns_round_exactly(planted: tuple[JudgeAudit, JudgeAudit]) -> None:
    new, old = planted
    there, back = rt.compare(new, old, **SOME), rt.compare(old, new, **SOME)
    for change, turned in zip(there.changes, back.changes, strict=True):
        assert (change.value, change.low, change.high) == (
            -turned.value,
            -turned.high,
            -turned.low,
        )
        assert (change.p, change.p_corrected) == (turned.p, turned.p_corrected)


def test_drift_is_kept_in_a_file(planted: tuple[JudgeAudit, JudgeAudit], tmp_path: Path) -> None:
    new, old = (
        JudgeAudit.load(audit.save(tmp_path / f"{name}.json"))
        for audit, name in zip(planted, ("new", "old"), strict=True)
    )
    drift = rt.compare(new, old, **SOME)
    assert JudgeDrift.load(drift.save(tmp_path / "drift.json")) == drift
    assert drift.changes == rt.compare(*planted, **SOME).changes


def test_tilt_without_twins_is_beyond_human_grades() -> None:
    """Two texts a query, no twins: ai is graded 1 by humans, 3 by the new judge; human text 1 and
    1. The old judge gives what humans give.
    """
    docs = [
        *versions({"human": [f"river {query}" for query in range(8)]}, prefix="h"),
        *versions({"ai": [f"apple {query}" for query in range(8)]}, prefix="a"),
    ]
    names = {
        source: [row["id"] for row in docs if row["source"] == source] for source in ("human", "ai")
    }
    qrels = {f"q{n}": {names["human"][n]: 1, names["ai"][n]: 1} for n in range(8)}
    collection = collection_of(docs, dict.fromkeys(qrels, "river"), qrels)
    old = collection.qrels
    new = old.with_columns(grade=pl.when(pl.col("doc_id").is_in(names["ai"])).then(3).otherwise(1))
    new_audit, old_audit = (
        judge({"judge": frame}, collection=collection, top_grade=3, resamples=200)
        for frame in (new, old)
    )
    drift = rt.compare(new_audit, old_audit, **SOME)
    tilt = change_of(drift, "tilt")
    sign = 1 if tilt.a == "ai" else -1
    assert (tilt.is_of_twins, sign * tilt.new, tilt.old) == (False, 2.0, 0.0)


def test_values_alone_are_compared_by_order() -> None:
    rng = np.random.default_rng(0)
    human = rng.random((6, 12))

    def frame(values: np.ndarray) -> pl.DataFrame:
        rows = [
            (f"s{run}", f"q{query}", "nDCG@10", value)
            for (run, query), value in np.ndenumerate(values)
        ]
        names = ["run", "query_id", "measure", "value"]
        return pl.DataFrame(rows, schema=names, orient="row")

    new, old = (
        judge_scores(frame(human), {name: frame(values)}, resamples=200)
        for name, values in (("turned", 1 - human), ("right", human))
    )
    drift = rt.compare(new, old, **SOME)
    (change,) = drift.changes
    assert (change.question, change.new, change.old) == ("order", -1.0, 1.0)
    (pair,) = drift.judges
    assert (pair.orders[0].tau.value, pair.common_pairs) == (-1.0, 0)


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """Two audits that cannot be compared, and words of the reason."""

    name: str
    new: JudgeAudit
    old: JudgeAudit
    words: str


def refusals() -> list[Refusal]:
    new, old = audits(many(GRADES, 8))
    other_queries = audits(many(GRADES, 8).replace("q", "z"))[0]
    wide = audits(many(GRADES, 8), top_grade=3)[0]
    flipped = audits(many(GRADES.replace("q1 a 0", "q1 a 1"), 8))[0]
    other_documents = audits(many(GRADES.replace("q1 ", "q1 x"), 8))[0]
    empty = replace(old, grades=replace(old.grades, is_complete=False))
    several = judge(
        {name: columns(GRADES)["new"] for name in "ab"}, columns(GRADES)["human"], **SOME
    )
    return [
        Refusal(name="queries", new=new, old=other_queries, words="no query in common"),
        Refusal(name="documents", new=new, old=other_documents, words="of two collections"),
        Refusal(name="scale", new=new, old=wide, words="0 to 1 (new) and 0 to 3 (old)"),
        Refusal(name="human", new=new, old=flipped, words="another human grade in the old audit"),
        Refusal(name="old file", new=new, old=empty, words="keeps no grades"),
        Refusal(name="names", new=several, old=old, words="a and b (new), old (old)"),
    ]


@pytest.mark.parametrize("refusal", refusals(), ids=lambda refusal: refusal.name)
def test_audits_that_cannot_be_compared(refusal: Refusal) -> None:
    with pytest.raises(UserError) as caught:
        rt.compare(refusal.new, refusal.old, **SOME)
    assert refusal.words in str(caught.value)


def test_other_kinds_are_refused(tmp_path: Path) -> None:
    new, _ = audits(many(GRADES, 8))
    with pytest.raises(UserError, match="two audits of judges"):
        rt.compare(new, rt.compare(new, new, **SOME))
    with pytest.raises(UserError, match="compared with another one"):
        rt.compare(new)
    rt.compare(new, new, **SOME).save(tmp_path / "drift.json")
    with pytest.raises(DataError, match="expected an audit of judges"):
        JudgeAudit.load(tmp_path / "drift.json")


def test_queries_of_one_audit_are_left_out() -> None:
    new, _ = audits(many(GRADES, 10))
    _, old = audits(many(GRADES, 12))
    with pytest.raises(UserError, match=r"2 of 12 \(16.7 %\), more than --max-left-out 10"):
        rt.compare(new, old, **SOME)
    drift = rt.compare(new, old, max_left_out=20, **SOME)
    assert drift.judges[0].queries == 10


def test_published_kappas_of_two_judges(shared_data: Path) -> None:
    """Cohen's κ as Table 3 of arXiv 2502.13908 has them: .0604 and .2863."""
    folder = shared_data / "llm-judges"
    new, old = (
        judge([folder / f"{name}.qrels.gz"], folder / "human.qrels.gz", resamples=500)
        for name in ("TREMA-nuggets", "willia-umbrela1")
    )
    drift = rt.compare(new, old, resamples=1000)
    kappa = change_of(drift, "agreement")
    assert (round(kappa.new, 4), round(kappa.old, 4)) == (0.0604, 0.2863)
    assert (kappa.kind, drift.judges[0].common_pairs, kappa.queries) == ("changed", 4423, 25)


def test_judges_of_one_audit_are_noted() -> None:
    frames = columns(many(GRADES, 8))
    both = judge({name: frames[name] for name in ("old", "new")}, frames["human"], **SOME)
    single = judge({"new": frames["new"]}, frames["human"], **SOME)
    drift = rt.compare(both, single, **SOME)
    assert [pair.judge for pair in drift.judges] == ["new"]
    notes = [note_sentence(note) for note in drift.notes]
    assert any("1 judge only in the new audit ('old')" in note for note in notes)


def test_binary_grades_of_a_wider_scale_warn() -> None:
    text = many("q1 a 0 0 0\nq1 b 1 1 1\nq1 c 2 1 2\nq1 d 3 1 3\n", 8)
    drift = rt.compare(*audits(text), **SOME)
    assert any(
        "highest grade is 3 now and was 1 before" in note_sentence(note) for note in drift.notes
    )


def gated(planted: tuple[JudgeAudit, JudgeAudit], **limits: float) -> Gate:
    new, old = planted
    return gate_judges(new, drift=DriftLimits(baseline=old, **limits), resamples=500)


@pytest.mark.parametrize(
    ("limits", "outcomes"),
    [
        ({"max_loss": 5}, ["tilted"]),
        ({"max_loss": 60}, ["level"]),
        ({"max_loss": 43}, ["inconclusive"]),
        ({"max_shift": 0.1}, ["tilted", "level", "tilted"]),
        ({"max_shift": 0.9}, ["within", "level", "within"]),
        ({}, ["tilted"]),
        ({"min_effect": 0.9}, ["level"]),
        ({"min_effect": 0.1, "max_loss": 60}, ["level", "tilted"]),
    ],
)
def test_gate_on_drift(
    planted: tuple[JudgeAudit, JudgeAudit], limits: dict[str, float], outcomes: list[str]
) -> None:
    decision = gated(planted, **limits)
    assert [row.outcome for row in decision.rows] == outcomes


def test_gate_on_drift_of_the_same_judge_passes(planted: tuple[JudgeAudit, JudgeAudit]) -> None:
    decision = gated((planted[0], planted[0]), max_loss=0, max_shift=0, min_effect=0)
    assert (decision.outcome, decision.exit_code) == ("level", 0)


def test_gate_limits_need_what_they_check() -> None:
    new, old = audits(many(GRADES, 8))
    with pytest.raises(UserError, match="--max-loss needs a baseline"):
        gate_judges(new, drift=DriftLimits(max_loss=5))
    with pytest.raises(UserError, match="two sources in both audits"):
        gate_judges(new, drift=DriftLimits(baseline=old))
    with pytest.raises(UserError, match="from 0 to 100, got -1"):
        gate_judges(new, drift=DriftLimits(baseline=old, max_loss=-1))


DRAWS = 300
"""Draws of the simulation; its standard error at 5 % is 1.3 %."""


def simulated(seed: int, *, noises: tuple[float, float], lift: float) -> JudgeDrift:
    """Compare two judges that see human grades through noise; the new one adds to grades of ai."""
    rng = np.random.default_rng([seed, 7])
    queries, per_query = 30, 20
    ease = rng.normal(0, 0.4, queries)
    query = np.repeat(np.arange(queries), per_query)
    worth = rng.normal(0.8, 1, len(query)) + ease[query]
    is_ai = rng.random(len(query)) < 0.5
    human = np.clip(np.round(worth), 0, 3).astype(np.int64)
    docs = [
        {"id": f"d{row}", "text": "", "source": "ai" if ai else "human", "origin": f"d{row}"}
        for row, ai in enumerate(is_ai)
    ]
    ids = [f"q{number}" for number in query]
    qrels: dict[str, dict[str, int]] = {}
    for row, (name, grade) in enumerate(zip(ids, human, strict=True)):
        qrels.setdefault(name, {})[f"d{row}"] = int(grade)
    collection = collection_of(docs, dict.fromkeys(qrels, "river"), qrels)
    both = []
    for number, noise in enumerate(noises):
        of_query = rng.normal(0, 0.2, queries)[query]
        seen = worth + of_query + rng.normal(0, noise, len(query)) + lift * (number == 0) * is_ai
        frame = pl.DataFrame(
            {
                "query_id": ids,
                "doc_id": [row["id"] for row in docs],
                "grade": np.clip(np.round(seen), 0, 3).astype(np.int64),
            }
        )
        both.append(judge({"judge": frame}, collection=collection, top_grade=3, resamples=100))
    return rt.compare(*both, resamples=1000)


@pytest.mark.long
def test_equal_judges_differ_at_the_level() -> None:
    """Of two equal judges any of five numbers is called changed in at most 5 % and 2 errors."""
    false = sum(
        any(
            change.kind == "changed"
            for change in simulated(seed, noises=(0.7, 0.7), lift=0).changes
        )
        for seed in range(DRAWS)
    )
    assert false / DRAWS <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / DRAWS)


@pytest.mark.long
def test_planted_drift_is_found() -> None:
    """A judge that adds .5 to ai text: the tilt is found in nearly all draws; one that errs more
    agrees less.
    """
    tilts = [change_of(simulated(seed, noises=(0.7, 0.7), lift=0.5), "tilt") for seed in range(40)]
    assert sum(tilt.kind == "changed" for tilt in tilts) >= 36
    covered = sum(tilt.low <= np.median([t.value for t in tilts]) <= tilt.high for tilt in tilts)
    assert covered >= 35
    kappas = [
        change_of(simulated(seed, noises=(1.4, 0.5), lift=0), "agreement") for seed in range(40)
    ]
    assert sum(kappa.kind == "changed" and kappa.value < 0 for kappa in kappas) >= 38
