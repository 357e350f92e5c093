"""Families and clusters of systems: files of them, clusters that count as one, and likely
repeats.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from ranktilt.data.runs.run import Run
from ranktilt.errors import DataError, UserError
from ranktilt.judging.judge import judge
from ranktilt.judging.systems.groups import (
    cluster_notes,
    join_clusters,
    read_systems,
    repeat_notes,
    run_tags,
)
from ranktilt.judging.systems.judge_scores import judge_scores
from ranktilt.judging.systems.systems import SystemValues
from tests.judging.judged import FAMILIES, bed, grades, runs


@dataclass(frozen=True, kw_only=True)
class Case:
    name: str
    text: str
    families: dict[str, str]
    clusters: dict[str, str]


GIVEN = [
    Case(name="tabs", text="a b\tx\nc\tx y\n", families={"a b": "x", "c": "x y"}, clusters={}),
    Case(name="blanks", text="a x\nb  y\n", families={"a": "x", "b": "y"}, clusters={}),
    Case(name="commas", text="a,x\n\nb, y\n", families={"a": "x", "b": "y"}, clusters={}),
    Case(
        name="quoted",
        text='"bm25, tuned",lexical\n',
        families={"bm25, tuned": "lexical"},
        clusters={},
    ),
    Case(name="header", text="run\tfamily\na\tx\n", families={"a": "x"}, clusters={}),
    Case(
        name="clusters",
        text="gpt1,llm,gpt\ngpt2,llm,gpt\nbm25,lexical\nsplade,sparse,\n",
        families={"gpt1": "llm", "gpt2": "llm", "bm25": "lexical", "splade": "sparse"},
        clusters={"gpt1": "gpt", "gpt2": "gpt"},
    ),
    Case(
        name="columns in another order",
        text="Run\tCluster\tFamily\ngpt1\tgpt\tllm\nbm25\t\tlexical\n",
        families={"gpt1": "llm", "bm25": "lexical"},
        clusters={"gpt1": "gpt"},
    ),
    Case(
        name="clusters alone",
        text="run,cluster\ngpt1,gpt\ngpt2,gpt\n",
        families={},
        clusters={"gpt1": "gpt", "gpt2": "gpt"},
    ),
]


@pytest.mark.parametrize("case", GIVEN, ids=lambda case: case.name)
def test_files_of_systems_are_read(tmp_path: Path, case: Case) -> None:
    file = tmp_path / "systems.tsv"
    file.write_text(case.text)
    groups = read_systems(file)
    assert (groups.families, groups.clusters) == (case.families, case.clusters)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", ": expected runs and their families, got none"),
        ("run,family,cluster\n", ": expected runs and their families, got none"),
        (
            "run\tfamily\na\tx\nb",
            ":3: expected run and family (tabs, commas or blanks between), got 1 field",
        ),
        (
            "a,x\nb\n",
            ":2: expected run, family and cluster (tabs, commas or blanks between), got 1",
        ),
        (
            "a,x,c,d\n",
            ":1: expected run, family and cluster (tabs, commas or blanks between), got 4",
        ),
        ("a\t\n", ":1: expected run, family and cluster (tabs, commas or blanks between), and the"),
        ("a x\na y", ":2: a second family (y) for run 'a'"),
        ("a,x,c\na,x,d", ":2: a second cluster (d) for run 'a'"),
        (
            "a,x,c\nb,y,c",
            ":2: cluster 'c' has families 'x' and 'y': repeats of one system have one",
        ),
    ],
)
def test_bad_files_of_systems_are_refused(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "systems.tsv"
    file.write_text(text)
    with pytest.raises(DataError) as caught:
        read_systems(file)
    assert f"systems.tsv{message}" in str(caught.value)


def values(human: list[list[float]], names: str = "") -> SystemValues:
    """Return values of systems a, b, c and so on, or of those named, under humans; the judge's are
    1 less.
    """
    table = np.array(human, dtype=float)
    count, queries = table.shape
    systems = tuple(names.split()) if names else tuple("abcdefgh"[:count])
    return SystemValues(
        judge="j",
        measure="nDCG@10",
        bounds=(0.0, 1.0),
        runs=systems,
        queries=tuple(f"q{number}" for number in range(queries)),
        human=table,
        judged=table - 1,
        rescaled_human=2 * table,
        further_judged=table[:, :1],
    )


def test_a_cluster_counts_as_the_mean_of_its_members() -> None:
    systems = join_clusters(
        values([[0.2, 0.4], [0.6, 0.8], [0.1, 0.5]]), {"a": "pair", "b": "pair"}
    )
    assert systems.runs == ("pair", "c")
    assert systems.human.tolist() == pytest.approx(np.array([[0.4, 0.6], [0.1, 0.5]]))
    assert systems.judged == pytest.approx(systems.human - 1)
    assert systems.rescaled_human == pytest.approx(2 * systems.human)
    assert systems.further_judged == pytest.approx(systems.human[:, :1])


def test_a_cluster_has_a_name_of_its_own() -> None:
    with pytest.raises(UserError, match="cluster 'c' is also the name of a run outside it"):
        join_clusters(values([[0.1], [0.2], [0.3]]), {"a": "c", "b": "c"})


def test_clusters_of_other_runs_are_refused() -> None:
    (note,) = cluster_notes(["a", "b", "c"], {"a": "x", "b": "x"})
    assert note.sentence == "x: 2 runs count as one system, by their mean values"
    with pytest.raises(UserError, match="--systems: no run of a cluster is among the runs"):
        cluster_notes(["a"], {"z": "x"})


REPEATS = [[0.1, 0.5, 0.9, 0.3, 0.7, 0.2], [0.11, 0.51, 0.9, 0.31, 0.7, 0.2]]
AWAY = [0.9, 0.1, 0.4, 0.5, 0.2, 0.6]


def test_systems_that_correlate_are_likely_repeats() -> None:
    (note,) = repeat_notes(values([*REPEATS, AWAY]), {})
    assert note.severity == "warning"
    assert note.sentence.startswith(
        "warning: a and b look like repeats of one system (their values per query correlate above "
        ".99)"
    )
    assert "join them with a third column, cluster, in --systems FILE" in note.sentence
    assert (
        list(repeat_notes(join_clusters(values([*REPEATS, AWAY]), {"a": "x", "b": "x"}), {})) == []
    )


def test_systems_of_one_tag_are_likely_repeats() -> None:
    systems = values([REPEATS[0], AWAY, AWAY[::-1]])
    (note,) = repeat_notes(systems, {"a": "team", "c": "team", "b": "others"})
    assert note.sentence.startswith(
        "warning: a and c look like repeats of one system (they share the tag"
    )


def test_names_that_differ_in_a_number_need_less_correlation() -> None:
    nearly = [0.1, 0.5, 0.9, 0.3, 0.8, 0.35]  # correlates with the first by .97
    assert 0.95 < np.corrcoef(REPEATS[0], nearly)[0, 1] < 0.99
    assert list(repeat_notes(values([REPEATS[0], nearly]), {})) == []
    (note,) = repeat_notes(values([REPEATS[0], nearly], "gpt-run1 gpt-run2"), {})
    assert "their names differ only in a number" in note.sentence


def test_two_queries_make_no_repeats() -> None:
    # Two points lie on a line, whatever the systems are.
    assert list(repeat_notes(values([[0.1, 0.5], [0.2, 0.3]]), {})) == []


def test_tags_that_all_runs_share_are_those_of_a_program(tmp_path: Path) -> None:
    def run(name: str, tag: str) -> Run:
        file = tmp_path / f"{name}.trec"
        file.write_text(f"q1 Q0 d1 1 2.5 {tag}\nq1 Q0 d2 2 1.5 {tag}\n")
        return Run.load(file)

    first, second, third = run("x1", "team"), run("x2", "team"), run("y", "others")
    assert set(run_tags([first, second, third]).values()) == {"team", "others"}
    assert run_tags([first, second]) == {}


def test_repeats_of_one_family_are_no_evidence_for_it() -> None:
    """Three systems of the family llm are repeats: as one system they cannot be tested."""
    collection = bed()
    judged = grades(collection, for_llm=0.6)
    compared = runs(collection, judged, 1.0)
    clusters = {name: "one-llm" for name, family in FAMILIES.items() if family == "llm"}
    audit = judge(
        {"fond": judged},
        collection=collection,
        runs=compared,
        families=FAMILIES,
        clusters=clusters,
        measures="nDCG@3",
        resamples=200,
    )
    assert {row.run for row in audit.systems} == {"one-llm", "lexical0", "lexical1", "lexical2"}
    verdicts = {row.family: row.verdict for row in audit.preferences}
    assert verdicts["llm"] == "not tested"
    words = [note.sentence for note in audit.notes]
    assert "one-llm: 3 runs count as one system, by their mean values" in words
    with pytest.raises(UserError, match=r"^clusters: need runs \(--runs DIR\)"):
        judge({"fond": judged}, collection=collection, clusters=clusters)


def test_values_per_query_have_clusters_too(tmp_path: Path) -> None:
    def scores(name: str, shift: float) -> Path:
        rng = np.random.default_rng(4)
        lines = [
            f"{system},q{query},{min(rng.random() + shift, 1):.4f}"
            for system in "abc"
            for query in range(8)
        ]
        file = tmp_path / f"{name}.csv"
        file.write_text("\n".join(["runid,topic,ndcg@10", *lines]))
        return file

    audit = judge_scores(
        scores("human", 0.0), [scores("j", 0.1)], clusters={"a": "ab", "b": "ab"}, resamples=100
    )
    assert [row.run for row in audit.systems] == ["ab", "c"]
