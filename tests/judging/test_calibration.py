"""Confidences of judges: the calibration curve, its error, and the tilt of unsure grades."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest

from ranktilt.data.formats.judgments.qrels import read_judge_qrels, read_qrels, to_tsv
from ranktilt.errors import DataError
from ranktilt.judging.calibration import equal_bins, unsure_border
from ranktilt.judging.grading.grading import grade, save_grades
from ranktilt.judging.grading.parsing import parse_confidence, parse_grade
from ranktilt.judging.grading.settings import Grading
from ranktilt.judging.judge import judge
from ranktilt.judging.records import Calibration
from ranktilt.judging.result import JudgeAudit
from ranktilt.llm.journal import Journal
from ranktilt.reporting.sentences.notes import note_sentence
from tests.generation.scripted import Scripted
from tests.judging.judged import bed, grades
from tests.toy import toy

Floats = npt.NDArray[np.float64]


def frames(is_right: Floats, confidence: Floats, queries: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return human grades 0 and 1 in turn, and a judge's that are right or not."""
    count = len(is_right)
    ids = {
        "query_id": [f"q{row % queries}" for row in range(count)],
        "doc_id": [f"d{row}" for row in range(count)],
    }
    human = np.arange(count) // queries % 2
    judged = np.where(is_right > 0, human, 1 - human)
    return (
        pl.DataFrame({**ids, "grade": human}),
        pl.DataFrame({**ids, "grade": judged, "confidence": confidence}),
    )


def calibration_of(is_right: Floats, confidence: Floats, queries: int = 10) -> Calibration:
    human, judged = frames(is_right, confidence, queries)
    audit = judge({"sure": judged}, human, resamples=300)
    (calibration,) = audit.calibrations
    return calibration


def test_calibration_by_hand() -> None:
    """Of 40 grades told at .9, 30 are right; of 40 at .5, 20: the error is (.15 + 0) / 2, the
    excess .7 − .625.
    """
    is_right = np.concatenate([np.repeat([1.0, 0.0], [30, 10]), np.repeat([1.0, 0.0], [20, 20])])
    calibration = calibration_of(is_right, np.repeat([0.9, 0.5], 40))
    assert [(part.confidence, part.pairs) for part in calibration.bins] == [
        (pytest.approx(0.5), 40),
        (pytest.approx(0.9), 40),
    ]
    assert [part.agreement.value for part in calibration.bins] == [0.5, 0.75]
    assert calibration.error.value == pytest.approx(0.075)
    assert calibration.excess.value == pytest.approx(0.075)
    assert calibration.error.low <= 0.075 <= calibration.error.high
    assert (calibration.pairs, calibration.queries, calibration.without) == (80, 10, 0)


@pytest.mark.parametrize(
    ("confidence", "bins"),
    [
        ([0.1, 0.2, 0.3, 0.4], [0, 0, 1, 1]),
        ([0.9, 0.9, 0.9, 0.1], [1, 1, 1, 0]),
        ([0.9, 0.9, 0.9, 0.95], [0, 0, 0, 1]),
        ([0.5, 0.5], [0, 0]),
    ],
)
def test_equal_confidences_share_a_bin(confidence: list[float], bins: list[int]) -> None:
    assert equal_bins(np.array(confidence)).tolist() == bins


def test_bins_have_equal_counts() -> None:
    bins = equal_bins(np.random.default_rng(0).random(400))
    assert np.bincount(bins).tolist() == [40] * 10


@pytest.mark.parametrize(
    ("confidence", "border"),
    [([0.1, 0.2, 0.3], 0.1), ([0.4, 0.9, 0.9, 0.9], 0.4), ([0.8, 0.8, 0.8, 0.9, 1.0], 0.8)],
)
def test_unsure_grades_are_nearly_a_third(confidence: list[float], border: float) -> None:
    assert unsure_border(np.array(confidence)) == border


def test_unsure_twins_are_compared_with_the_rest() -> None:
    """A judge that likes text of models where it tells .4, and nowhere else."""
    collection = bed()
    fond, fair = grades(collection, for_llm=0.9), grades(collection, noise=0.1, seed=4)
    is_unsure = (pl.col("query_id").str.slice(1).cast(pl.Int64) + pl.col("row")) % 3 == 0
    origin = fond.select(row=pl.col("doc_id").str.split("-").list.get(1).cast(pl.Int64))
    mixed = fond.with_columns(origin["row"], fair=fair["grade"]).select(
        "query_id",
        "doc_id",
        grade=pl.when(is_unsure).then("grade").otherwise("fair"),
        confidence=pl.when(is_unsure).then(0.4).otherwise(0.9),
    )
    audit = judge({"judge": mixed}, collection=collection, resamples=500)
    (calibration,) = audit.calibrations
    tilt = calibration.tilt
    assert tilt is not None
    assert (tilt.a, tilt.b, tilt.is_of_twins, tilt.border) == ("human", "llm", True, 0.4)
    assert tilt.share == pytest.approx(1 / 3, abs=0.02)
    assert tilt.unsure.value < -0.5 < -0.1 < tilt.rest.value < 0.1
    assert tilt.is_shown
    assert tilt.difference.value == pytest.approx(tilt.unsure.value - tilt.rest.value)
    assert "it leans further toward llm text: grade gap of twins human − llm" in str(audit)


def test_audit_with_confidence_is_kept_in_a_file(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    human, judged = frames((rng.random(80) < 0.7).astype(float), rng.random(80), 8)
    audit = judge({"sure": judged}, human, resamples=200)
    assert JudgeAudit.load(audit.save(tmp_path / "audit.json")) == audit


@dataclass(frozen=True, kw_only=True)
class Unused:
    """Confidences that make no curve, and the note on them."""

    name: str
    count: int
    confidence: float | None
    note: str


@pytest.mark.parametrize(
    "case",
    [
        Unused(name="constant", count=80, confidence=0.9, note="the same confidence for every"),
        Unused(name="few", count=30, confidence=None, note="30 pairs with a confidence and"),
    ],
    ids=lambda case: case.name,
)
def test_confidences_without_a_curve_are_noted(case: Unused) -> None:
    confidence = np.linspace(0.1, 0.9, case.count)
    if case.confidence is not None:
        confidence = np.full(case.count, case.confidence)
    human, judged = frames(np.ones(case.count), confidence, 8)
    audit = judge({"sure": judged}, human, resamples=100)
    assert audit.calibrations == ()
    assert any(case.note in note_sentence(note) for note in audit.notes)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "query_id,doc_id,grade,confidence\nq1,d1,1,90\nq1,d2,0,40\n",
            "2: expected a confidence from 0 to 1, got 90 (2 values are not); divide percentages "
            "by 100",
        ),
        (
            "query_id,doc_id,grade,confidence\nq1,d1,1,.9\nq1,d2,0,-1\n",
            "3: expected a confidence from 0 to 1, got -1 (1 value is not)",
        ),
        (
            "query_id,doc_id,grade,confidence\nq1,d1,1,.9\nq1,d2,0,high\n",
            "3: expected a confidence from 0 to 1, got a text (1 value is not)",
        ),
        (
            "query_id,doc_id,grade,confidence\nq1,d1,1,150\nq1,d2,0,3\n",
            "2: expected a confidence from 0 to 1, got 150 (2 values are not)",
        ),
    ],
)
def test_confidence_outside_its_range_is_refused(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "judge.csv").write_text(text)
    human = pl.DataFrame({"query_id": ["q1"] * 2, "doc_id": ["d1", "d2"], "grade": [1, 0]})
    with pytest.raises(DataError) as caught:
        judge(tmp_path / "judge.csv", human)
    assert str(caught.value).endswith(f"judge.csv:{message}")
    # What is no judge's confidence is nobody's business: judgments of a collection may have it.
    assert read_qrels(tmp_path / "judge.csv").columns == ["query_id", "doc_id", "grade", "line"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", "query_id,doc_id,grade,confidence\nq1,d1,2,.9\nq1,d2,1,\n"),
        ("a.csv:confidence=sure", "query_id,doc_id,grade,sure\nq1,d1,2,.9\nq1,d2,1,\n"),
        ("a.tsv", "query-id\tcorpus-id\tscore\tconfidence\nq1\td1\t2\t.9\nq1\td2\t1\t\n"),
        (
            "a.json",
            '[{"query_id": "q1", "doc_id": "d1", "grade": 2, "confidence": 0.9},'
            ' {"query_id": "q1", "doc_id": "d2", "grade": 1}]',
        ),
        (
            "a.jsonl",
            '{"query_id": "q1", "doc_id": "d1", "grade": 2, "confidence": 0.9}\n'
            '{"query_id": "q1", "doc_id": "d2", "grade": 1, "confidence": null}\n',
        ),
    ],
)
def test_confidence_is_read_from_files(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name.partition(":")[0]).write_text(text)
    table = read_judge_qrels(f"{tmp_path}/{name}")
    assert table["confidence"].to_list() == [0.9, None]
    assert table["grade"].to_list() == [2, 1]


@pytest.mark.parametrize(
    ("answer", "grade_told", "confidence"),
    [
        ('{"grade": 2, "confidence": 0.85}', 2, 0.85),
        ('{"O": 1, "Confidence": "1"}', 1, 1.0),
        ('{"grade": 2}', 2, None),
        ("##final score: 2", 2, None),
        ('{"grade": 2, "confidence": 85}', 2, "unreadable"),
        ('{"grade": 2, "confidence": "high"}', 2, "unreadable"),
        ('{"grade": 2, "confidence": null}', 2, "unreadable"),
        ('{"grade": 2, "confidence": 0.5} {"grade": 2, "confidence": 0.6}', 2, "unreadable"),
    ],
)
def test_confidence_of_an_answer(
    answer: str, grade_told: int, confidence: float | str | None
) -> None:
    assert parse_grade(answer) == grade_told
    value = parse_confidence(answer)
    if confidence == "unreadable":
        assert value is not None
        assert np.isnan(value)
    else:
        assert value == confidence


def test_confidence_of_a_model_is_kept_with_its_grades(tmp_path: Path) -> None:
    """Asked twice, a model tells .5 and .7: the mean is kept, and written as a fourth column."""
    collection = toy()
    llm = Scripted(lambda prompt, times: f'{{"grade": 1, "confidence": {0.5 + 0.2 * (times % 2)}}}')
    grading = Grading(prompt="basic", repeats=2)
    graded = grade(collection, llm, grading, journal=Journal(tmp_path / "journal"))
    assert graded.qrels["confidence"].to_numpy() == pytest.approx(0.6)
    assert read_judge_qrels(save_grades(graded, tmp_path / "model.tsv"))[
        "confidence"
    ].to_numpy() == pytest.approx(0.6)
    percent = Scripted(lambda prompt, times: '{"grade": 1, "confidence": 60}')
    graded = grade(collection, percent, Grading(), journal=Journal(tmp_path / "percent"))
    assert graded.qrels.columns == ["query_id", "doc_id", "grade"]
    audit = judge(graded, collection=collection, resamples=100)
    assert any("tell a confidence that is no number" in note_sentence(n) for n in audit.notes)


def test_saved_grades_without_confidence_are_as_before() -> None:
    qrels = pl.DataFrame({"query_id": ["q"], "doc_id": ["d"], "grade": [1]})
    assert to_tsv(qrels) == b"query-id\tcorpus-id\tscore\nq\td\t1\n"


DRAWS = 200


def drawn(seed: int, *, excess: float) -> Calibration:
    """Return the calibration of a judge that is right as often as it tells, less `excess`."""
    rng = np.random.default_rng([seed, 3])
    queries, count = 40, 800
    confidence = np.round(rng.beta(5, 2, count), 2)
    of_query = rng.normal(0, 0.08, queries)[np.arange(count) % queries]
    is_right = rng.random(count) < np.clip(confidence - excess + of_query, 0, 1)
    return calibration_of(is_right.astype(float), confidence, queries)


@pytest.mark.long
def test_interval_of_excess_holds_its_value() -> None:
    """A calibrated judge has an excess of nearly 0, and a calibration error whose interval reaches
    (nearly) down to it; one that is .15 too sure is found.
    """
    calibrations = [drawn(seed, excess=0.0) for seed in range(DRAWS)]
    centre = float(np.mean([row.excess.value for row in calibrations]))
    coverage = np.mean([row.excess.low <= centre <= row.excess.high for row in calibrations])
    assert coverage >= 0.95 - 3 * np.sqrt(0.05 * 0.95 / DRAWS)
    assert np.mean([row.error.low <= 0.03 for row in calibrations]) >= 0.9
    sure = [drawn(seed, excess=0.15) for seed in range(40)]
    assert np.mean([row.excess.low > 0 for row in sure]) >= 0.95


@pytest.mark.long
def test_unsure_tilt_holds_its_level() -> None:
    """A judge without taste that is less sure where it errs: another tilt where it is unsure is
    called shown in 5 % of draws, up to two errors of the simulation.
    """
    collection, draws, count = bed(), 150, 0
    for seed in range(draws):
        rng = np.random.default_rng([seed, 1])
        graded = grades(collection, noise=0.5, seed=1000 + seed)
        is_right = (graded["grade"] == collection.qrels["grade"]).to_numpy()
        noise = rng.normal(0, 0.12, len(is_right))
        confidence = np.round(np.clip(np.where(is_right, 0.85, 0.7) + noise, 0, 1), 1)
        frame = graded.with_columns(confidence=pl.Series(confidence))
        audit = judge({"judge": frame}, collection=collection, resamples=500)
        tilt = audit.calibrations[0].tilt
        assert tilt is not None
        count += tilt.is_shown
    assert count / draws <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / draws)
