"""Values per query as programs write them, and judges that are compared by these alone."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from ranktilt.errors import DataError, UserError
from ranktilt.judging.systems.evaluation_files import read_evaluations
from ranktilt.judging.systems.judge_scores import judge_scores
from ranktilt.reporting.sentences.judging.judge import preference_sentence
from ranktilt.reporting.sentences.notes import note_sentences

TREC_EVAL = """\
num_ret               \t1\t100
ndcg_cut_10           \t1\t0.5000
ndcg_cut_10           \t2\t0.2500
runid                 \tall\tbm25
num_q                 \tall\t2
ndcg_cut_10           \tall\t0.3750
ndcg_cut_10           \t1\t1.0000
ndcg_cut_10           \t2\t0.7500
runid                 \tall\tdense
"""
GDEVAL = """\
runid,topic,ndcg@20,err@20
bm25,1,0.50000,0.10000
bm25,2,0.25000,0.20000
bm25,amean,0.37500,0.15000
runid,topic,ndcg@20,err@20
dense,1,1.00000,0.30000
dense,2,,nan
dense,amean,0.87500,0.35000
"""
PYTERRIER = """\
,name,qid,measure,value
0,"bm25, tuned",1,nDCG@10,0.5
1,dense,1,nDCG@10,1.0
"""
NAN = float("nan")


@dataclass(frozen=True, kw_only=True)
class Case:
    name: str
    text: str
    rows: list[tuple[str, str, str, float]]


READ = [
    Case(
        name="trec_eval of two systems",
        text=TREC_EVAL,
        rows=[
            ("bm25", "1", "nDCG@10", 0.5),
            ("bm25", "2", "nDCG@10", 0.25),
            ("dense", "1", "nDCG@10", 1.0),
            ("dense", "2", "nDCG@10", 0.75),
        ],
    ),
    Case(
        name="trec_eval without a name",
        text="map 1 0.5\nmap all 0.5\n",
        rows=[("values", "1", "AP", 0.5)],
    ),
    Case(
        name="runid first",
        text="runid all a\nmap 1 0.5\nmap all 0.5\nrunid all b\nmap 1 0.25\n",
        rows=[("a", "1", "AP", 0.5), ("b", "1", "AP", 0.25)],
    ),
    Case(
        name="ir_measures",
        text="q1\tnDCG@10\t0.5\nq2\tnDCG@10\t0.25\nall\tnDCG@10\t0.375\n",
        rows=[("values", "q1", "nDCG@10", 0.5), ("values", "q2", "nDCG@10", 0.25)],
    ),
    Case(
        name="gdeval of two systems",
        text=GDEVAL,
        rows=[
            ("bm25", "1", "nDCG@20", 0.5),
            ("bm25", "1", "err@20", 0.1),
            ("bm25", "2", "nDCG@20", 0.25),
            ("bm25", "2", "err@20", 0.2),
            ("dense", "1", "nDCG@20", 1.0),
            ("dense", "1", "err@20", 0.3),
            ("dense", "2", "nDCG@20", NAN),
            ("dense", "2", "err@20", NAN),
        ],
    ),
    Case(
        name="blanks",
        text="runid topic ndcg@20\nbm25 1 0.5\n",
        rows=[("bm25", "1", "nDCG@20", 0.5)],
    ),
    Case(
        name="a row a value, with row numbers",
        text=PYTERRIER,
        rows=[("bm25, tuned", "1", "nDCG@10", 0.5), ("dense", "1", "nDCG@10", 1.0)],
    ),
    Case(name="no system", text="qid,P@5\n7,0.2\n", rows=[("values", "7", "P@5", 0.2)]),
]


@pytest.mark.parametrize("case", READ, ids=lambda case: case.name)
def test_values_per_query_are_read(tmp_path: Path, case: Case) -> None:
    file = tmp_path / "values.eval"
    file.write_text(case.text)
    rows = read_evaluations(file).rows()
    assert [row[:3] for row in rows] == [row[:3] for row in case.rows]
    assert [row[3] for row in rows] == pytest.approx([row[3] for row in case.rows], nan_ok=True)


def test_a_folder_holds_a_file_a_system(tmp_path: Path) -> None:
    (tmp_path / "bm25.eval").write_text("map 1 0.5\n")
    (tmp_path / "dense.txt.gz").write_text("map 1 0.25\n")
    (tmp_path / ".hidden").write_text("nothing")
    assert read_evaluations(tmp_path).rows() == [
        ("bm25", "1", "AP", 0.5),
        ("dense", "1", "AP", 0.25),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", ": the file is empty"),
        (
            "q1 Q0 d1 1 2.5 tag\n",
            ":1: expected values per query: measure, query, value (trec_eval -q), or a table",
        ),
        ("q1 0 d1 2\n", ":1: expected values per query"),
        (
            "query-id\tcorpus-id\tscore\nq\td\t1\n",
            ":1: expected values per query, got documents (query-id, corpus-id, score); pass "
            "grades",
        ),
        (
            "map all 0.5\n",
            ": expected values of each query, got means only (trec_eval gives both with -q)",
        ),
        ("map 1 0.5\nmap 2\n", ":2: expected measure, query, value (3 fields), got 2: 'map 2'"),
        ("map 1 0.5\nmap 2 high\n", ":2: expected a number as map, got 'high'"),
        ("map 1 inf\n", ":1: expected a number as map, got 'inf'"),
        ("map 1 50.0\n", ":1: expected map between 0 and 1, got 50.0"),
        ("runid,topic,ndcg@20\na,1,0.5\na,2\n", ":3: expected 3 fields as in the header, got 2"),
        ("runid,topic,ndcg@20\n,1,0.5\n", ":2: expected a system and a query, one is empty"),
        ("runid,topic\na,1\n", ":1: expected a column for each measure, got runid, topic"),
        (
            "map 1 0.5\nmap 1 0.5\n",
            ":2: a second value of AP for query '1' of system 'values' (the first: ",
        ),
    ],
)
def test_what_is_no_values_per_query_is_refused(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "values.eval"
    file.write_text(text)
    with pytest.raises(DataError) as caught:
        read_evaluations(file)
    assert str(caught.value).startswith(f"{file}{message}")


def values(table: dict[str, list[float | None]], measure: str = "nDCG@10") -> pl.DataFrame:
    """Lay out each system's values of the queries 1, 2, …; None for a value that is missing."""
    rows = [
        (run, str(query), measure, value)
        for run, every_value in table.items()
        for query, value in enumerate(every_value, start=1)
    ]
    schema = {"run": pl.String, "query_id": pl.String, "measure": pl.String, "value": pl.Float64}
    return pl.DataFrame(rows, schema=schema, orient="row")


HUMAN = values({"a": [0.9, 0.7], "b": [0.4, 0.6], "c": [0.1, 0.3]})


def test_order_by_hand_and_what_is_missing_is_left_out() -> None:
    """Query 3 lacks a value of b under the judge; d is evaluated by humans only, and query 4 by the
    judge only.
    """
    human = values(
        {"a": [0.9, 0.7, 0.0], "b": [0.4, 0.6, 1.0], "c": [0.1, 0.3, 0.5], "d": [0.5, 0.5, 0.5]}
    )
    judged = values(
        {"c": [0.2, 0.2, 0.2, 0.6], "b": [0.9, 0.9, None, 0.7], "a": [0.8, 0.6, 0.2, 0.8]}
    )
    result = judge_scores(human, {"j": judged}, resamples=100)
    assert [(row.run, row.human, row.judged) for row in result.systems] == [
        ("a", pytest.approx(0.8), pytest.approx(0.7)),
        ("b", pytest.approx(0.5), pytest.approx(0.9)),
        ("c", pytest.approx(0.2), pytest.approx(0.2)),
    ]
    (order,) = result.rank_agreements
    assert (order.systems, order.queries) == (3, 2)
    assert order.tau.value == pytest.approx(1 / 3)
    assert note_sentences(result.notes) == (
        "j, nDCG@10: 1 system evaluated by humans only left out",
        "j, nDCG@10: 1 query without a value for every system left out, not counted as 0",
        "j, nDCG@10: 2 queries, but intervals need 6",
        "j: 2 human queries are enough for values, but intervals need 4 queries",
    )
    # Query 4, which the judge alone evaluated, is what few human values are repaired with.
    assert {row.queries for row in result.corrected} == {2}
    assert (result.agreements, result.by_query, result.grade_gaps, result.tilts) == ((), (), (), ())


def test_families_are_compared_by_values() -> None:
    rng = np.random.default_rng(3)
    human, judged = dict[str, list[float | None]](), dict[str, list[float | None]]()
    for number in range(12):
        quality = 0.3 + 0.02 * number + rng.normal(0, 0.02, 30)
        human[f"r{number}"] = quality.tolist()
        judged[f"r{number}"] = (quality + 0.2 * (number % 2) + rng.normal(0, 0.02, 30)).tolist()
    families = {f"r{number}": "odd" if number % 2 else "even" for number in range(12)}
    result = judge_scores(values(human), {"j": values(judged)}, families=families, resamples=100)
    assert preference_sentence(result.preferences[0]).startswith(
        "j disfavours even systems: −19.8 points of its own scale"
    )
    assert result.rank_agreements[0].tau.low <= result.rank_agreements[0].tau.value


def test_measures_are_the_default_or_all_where_they_are_few() -> None:
    every = pl.concat([HUMAN, *(values({"a": [0.5], "b": [0.1]}, name) for name in ("map", "P_5"))])
    few = every.filter(pl.col("measure") != "nDCG@10")
    assert judge_scores(every, every, resamples=100).spec["measures"] == ["nDCG@10"]
    assert judge_scores(few, few, resamples=100).spec["measures"] == ["AP", "P@5"]
    assert judge_scores(every, every, measures="map", resamples=100).spec["measures"] == ["AP"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: judge_scores(HUMAN, {}),
            "expected the values of at least one judge: --scores FILE",
        ),
        (
            lambda: judge_scores(HUMAN, values({"a": [0.1], "x": [0.2]})),
            "judge and the human values, nDCG@10: one system",
        ),
        (
            lambda: judge_scores(HUMAN, values({"x": [0.1], "y": [0.2]})),
            (
                "judge and the human values, nDCG@10: no system in common; two are needed (a, b, c "
                "against x, y)"
            ),
        ),
        (
            lambda: judge_scores(
                HUMAN, HUMAN.with_columns(query_id=pl.lit("q") + pl.col("query_id"))
            ),
            "judge and the human values, nDCG@10: no query in common",
        ),
        (
            lambda: judge_scores(HUMAN, values({"a": [0.1, None], "b": [None, 0.2]})),
            "judge and the human values, nDCG@10: no query with a value of every system under both",
        ),
        (
            lambda: judge_scores(HUMAN, HUMAN, measures="P@5"),
            "human has no values of P@5; all files have nDCG@10",
        ),
        (
            lambda: judge_scores(HUMAN, values({"a": [0.1]}, "err@20")),
            "no measure in common: humans have nDCG@10;",
        ),
        (
            lambda: judge_scores(HUMAN, values({"a": [7.0], "b": [0.1]})),
            "judge: expected nDCG@10 between 0 and 1, got 7",
        ),
        (
            lambda: judge_scores(HUMAN, HUMAN.drop("run")),
            "judge: expected columns run, query_id, measure, value; run not",
        ),
        (
            lambda: judge_scores(HUMAN, pl.concat([HUMAN, HUMAN])),
            "judge: two values of nDCG@10 for query '1' of system 'a'",
        ),
    ],
)
def test_what_cannot_be_compared_is_refused(call: Callable[[], object], message: str) -> None:
    with pytest.raises(UserError, match="^" + re.escape(message)):
        call()
