"""Repeats of an engine whose answers are random: averages, components, and what is refused."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import stats

import ranktilt as rt
from ranktilt.auditing.repeats.components import RepeatComponents
from ranktilt.auditing.result import Audit
from ranktilt.data.collection import Collection
from ranktilt.data.notes.repeats import RepeatCountsDiffer
from ranktilt.data.runs.run import Run
from ranktilt.reporting.sentences.comparison.meaning import comparison_next_commands
from ranktilt.reporting.sentences.query_groups import variance_sentence
from ranktilt.reporting.sentences.repeats import repeat_sentence
from ranktilt.statistics.repeats import p_with_scaled_error, repeat_anova
from tests.refusals import refused

QUICK: dict[str, Any] = {"resamples": 500}
DOCUMENTS, DEPTH = 300, 20


def collection(queries: int = 40, seed: int = 1) -> Collection:
    """Documents of two sources that are no twins, some of them relevant to each query."""
    rng = np.random.default_rng(seed)
    kind = np.where(rng.random(DOCUMENTS) < 0.5, "human", "ai")
    ids = [f"d{number}" for number in range(DOCUMENTS)]
    docs = pl.DataFrame({"id": ids, "title": "", "text": "", "source": kind, "origin": ids})
    names = [f"q{number}" for number in range(queries)]
    judged = [
        {"query_id": name, "doc_id": ids[row], "grade": 1}
        for name in names
        for row in rng.choice(DOCUMENTS, 12, replace=False)
    ]
    qrels = pl.DataFrame(judged, schema_overrides={"grade": pl.Int32})
    queries_table = pl.DataFrame({"id": names, "text": names})
    return Collection(docs, queries_table, qrels, {})


def engine(
    documents: Collection,
    *,
    noise: float,
    repeats: int,
    tilt: float = 0.0,
    seed: int = 2,
    depth: int = DEPTH,
    name: str = "engine",
) -> list[Run]:
    """Runs of one engine: fixed scores of each query's documents, and fresh noise in each run."""
    rng = np.random.default_rng(seed)
    is_human = (documents.docs["source"] == "human").to_numpy()
    relevant = documents.qrels.group_by("query_id", maintain_order=True).agg("doc_id")
    fixed: dict[str, dict[str, float]] = {}
    for query, judged in relevant.iter_rows():
        others = rng.choice(DOCUMENTS, 60, replace=False)
        ids = list(dict.fromkeys([*judged, *documents.ids.gather(others).to_list()]))
        rows = [int(document[1:]) for document in ids]
        scores = rng.standard_normal(len(ids)) + tilt * is_human[rows]
        fixed[query] = dict(zip(ids, scores.tolist(), strict=True))
    runs = []
    for _ in range(repeats):
        lists = {}
        for query, scores in fixed.items():
            drawn = {
                document: score + noise * float(rng.standard_normal())
                for document, score in scores.items()
            }
            best = sorted(drawn, key=drawn.__getitem__, reverse=True)[:depth]
            lists[query] = {document: drawn[document] for document in best}
        run = Run.from_dict(lists)
        runs.append(replace(run, spec={**run.spec, "alias": name}))
    return runs


def audited(documents: Collection, runs: list[Run], **options: Any) -> Audit:
    return rt.audit(documents, runs, "nDCG@10", **{**QUICK, **options})


def tilt_components(audit: Audit) -> RepeatComponents:
    (row,) = [row for row in audit.repeats if row.measure == "nDCG@10" and row.has_verdict]
    return row


@dataclass(frozen=True, kw_only=True)
class Components:
    """Mean squares and components of a table, computed by loops."""

    query: float
    repeat: float
    residual: float


def by_hand(table: np.ndarray) -> Components:
    """The two-way analysis of variance of a table of queries and repeats."""
    query_count, repeat_count = table.shape
    mean = sum(table[q][r] for q in range(query_count) for r in range(repeat_count))
    mean /= query_count * repeat_count
    of_query = [sum(table[q]) / repeat_count for q in range(query_count)]
    of_repeat = [
        sum(table[q][r] for q in range(query_count)) / query_count for r in range(repeat_count)
    ]
    ms_query = repeat_count * sum((m - mean) ** 2 for m in of_query) / (query_count - 1)
    ms_repeat = query_count * sum((m - mean) ** 2 for m in of_repeat) / (repeat_count - 1)
    residual = 0.0
    for q in range(query_count):
        for r in range(repeat_count):
            residual += (table[q][r] - of_query[q] - of_repeat[r] + mean) ** 2
    ms_residual = residual / ((query_count - 1) * (repeat_count - 1))
    return Components(
        query=(ms_query - ms_residual) / repeat_count,
        repeat=(ms_repeat - ms_residual) / query_count,
        residual=ms_residual,
    )


class TestAnova:
    def test_table_of_two_queries(self) -> None:
        # Means of queries 2 and 6, of repeats 3 and 5, of all 4; residuals are 0.
        anova = repeat_anova(np.array([[1.0, 3.0], [5.0, 7.0]]))
        assert anova is not None
        assert (anova.mean_square_queries, anova.mean_square_repeats) == (16.0, 4.0)
        assert anova.residual == 0.0
        assert (anova.query, anova.repeat) == (8.0, 2.0)

    def test_no_components_of_one_repeat(self) -> None:
        assert repeat_anova(np.array([[1.0], [2.0]])) is None

    def test_components_by_hand(self) -> None:
        table = np.random.default_rng(3).standard_normal((12, 4))
        anova, hand = repeat_anova(table), by_hand(table)
        assert anova is not None
        components = (anova.query, anova.repeat, anova.residual)
        assert components == pytest.approx((hand.query, hand.repeat, hand.residual), abs=1e-12)

    def test_p_of_wider_error(self) -> None:
        # t of p = .05 with 20 degrees of freedom is 2.086; twice the error halves it.
        assert p_with_scaled_error(0.05, 2.0, 21) == pytest.approx(
            2 * stats.t.sf(2.085963 / 2, 20), abs=1e-6
        )
        assert p_with_scaled_error(0.05, 1.0, 21) == pytest.approx(0.05)


@pytest.fixture(scope="module")
def dl19_audit(shared_data: Path) -> Audit:
    folder = shared_data / "dl19"
    columns = {"query_id": pl.String, "0": pl.String, "doc_id": pl.String, "grade": pl.Int32}
    qrels = pl.read_csv(
        folder / "qrels.dl19-passage.txt", separator=" ", has_header=False, schema=columns
    )
    files = [folder / "runs" / f"bm25-gpt35-repeat{number}.trec" for number in range(1, 6)]
    runs = [Run.load(file) for file in files]
    ids = pl.concat([qrels["doc_id"], *(run.ids.alias("doc_id") for run in runs)]).unique()
    docs, queries = (
        names.alias("id").to_frame().with_columns(text=pl.lit(""))
        for names in (ids, qrels["query_id"].unique())
    )
    documents = Collection(docs, queries, qrels)
    return audited(documents, [Run.from_repeats(runs, name="gpt35")], by=None)


class TestDl19:
    """Five repeats of one system on TREC DL 2019."""

    def test_effectiveness_is_the_mean(self, dl19_audit: Audit) -> None:
        assert dl19_audit.runs == ("gpt35",)
        (row,) = dl19_audit.repeats
        expected = [67.99, 67.37, 68.27, 69.38, 68.68]
        assert row.values == pytest.approx(expected, abs=5e-3)
        mean = dl19_audit.by_group().row(0, named=True)
        assert 100 * mean["mean"] == pytest.approx(sum(row.values) / 5)
        assert mean["queries"] == row.queries == 43

    def test_components_equal_the_anova_by_hand(self, dl19_audit: Audit, shared_data: Path) -> None:
        (row,) = dl19_audit.repeats
        columns = []
        for number in range(1, 6):
            file = shared_data / "dl19" / "runs" / f"bm25-gpt35-repeat{number}.trec"
            columns.append(_ndcg_by_query(file, shared_data / "dl19" / "qrels.dl19-passage.txt"))
        table = np.array([[100 * column[query] for column in columns] for query in columns[0]])
        hand = by_hand(table)
        components = (row.query_variance, row.repeat_variance, row.residual_variance)
        assert components == pytest.approx((hand.query, hand.repeat, hand.residual), abs=1e-9)
        assert components == pytest.approx((453.9297, 0.2953, 11.6967), abs=5e-5)


def _ndcg_by_query(run: Path, qrels: Path) -> dict[str, float]:
    """NDCG@10 with linear gains of each judged query, by reading both files line by line."""
    grades: dict[str, dict[str, int]] = {}
    for line in qrels.read_text(encoding="utf-8").splitlines():
        query, _, document, grade = line.split()
        grades.setdefault(query, {})[document] = int(grade)
    lists: dict[str, list[tuple[float, str]]] = {}
    for line in run.read_text(encoding="utf-8").splitlines():
        query, _, document, _, score, _ = line.split()
        lists.setdefault(query, []).append((-float(score), document))
    values = {}
    for query, of_query in grades.items():
        ranked = [of_query.get(document, 0) for _, document in sorted(lists[query])[:10]]
        ideal = sorted(of_query.values(), reverse=True)[:10]
        values[query] = _dcg(ranked) / _dcg(ideal)
    return values


def _dcg(gains: list[int]) -> float:
    return float(sum(gain / np.log2(rank + 2) for rank, gain in enumerate(gains)))


class TestAverage:
    def test_copies_change_no_number(self) -> None:
        documents = collection()
        (run,) = engine(documents, noise=1.0, repeats=1)
        alone, copied = (
            audited(documents, [run], card=True),
            audited(documents, [run] * 3, card=True),
        )
        for effect, of_copies in zip(
            [*alone.tilts, *alone.card], [*copied.tilts, *copied.card], strict=True
        ):
            numbers = [effect.value, effect.low, effect.high, effect.error, effect.p_corrected]
            of_copies_numbers = [
                *(of_copies.value, of_copies.low, of_copies.high),
                *(of_copies.error, of_copies.p_corrected),
            ]
            assert of_copies_numbers == pytest.approx(numbers, rel=1e-9)
            assert of_copies.queries == effect.queries
        assert np.allclose(alone.values, copied.values, equal_nan=True)

    def test_values_are_means_of_repeats(self) -> None:
        documents = collection()
        runs = engine(documents, noise=1.0, repeats=3)
        together = audited(documents, runs)
        alone = [audited(documents, [run]).values[0] for run in runs]
        assert together.runs == ("engine",)
        assert np.allclose(together.values[0], np.mean(alone, axis=0), equal_nan=True)

    def test_tilt_is_that_of_the_means(self) -> None:
        documents = collection()
        audit = audited(documents, engine(documents, noise=1.0, repeats=3, tilt=0.5))
        of_group = {row["group"]: row["mean"] for row in audit.by_group().to_dicts()}
        human, ai = of_group["human"], of_group["ai"]
        tilt = audit.tilts[0]
        sign = 1 if tilt.a == "human" else -1
        assert tilt.value == pytest.approx(sign * 100 * (human - ai) / ((human + ai) / 2))

    def test_order_of_repeats_does_not_matter(self) -> None:
        documents = collection()
        runs = engine(documents, noise=1.0, repeats=3)
        audit, turned = audited(documents, runs), audited(documents, runs[::-1])
        assert audit.tilts[0].value == pytest.approx(turned.tilts[0].value)
        assert audit.tilts[0].error == pytest.approx(turned.tilts[0].error)

    def test_repeats_need_not_be_neighbours(self) -> None:
        documents = collection()
        first, second = engine(documents, noise=1.0, repeats=2)
        (between,) = engine(documents, noise=1.0, repeats=1, seed=9, name="other")
        audit = audited(documents, [first, between, second])
        assert audit.runs == ("engine", "other")
        together = audited(documents, [first, second])
        assert audit.tilts[0].value == pytest.approx(together.tilts[0].value)

    def test_failed_query_counts_where_it_was_answered(self) -> None:
        documents = collection()
        first, second = engine(documents, noise=1.0, repeats=2)
        without = Run.from_frame(
            second.frame().filter(pl.col("query_id") != "q0"),
            spec={**second.spec, "failed": {"q0": "timed out"}},
        )
        audit, alone = audited(documents, [first, without]), audited(documents, [first])
        number = audit.queries.index("q0")
        assert np.array_equal(
            audit.values[0][..., number], alone.values[0][..., number], equal_nan=True
        )
        assert any("engine (repeat 2)" in note.sentence for note in audit.notes)


class TestComponents:
    def test_shares_make_one(self) -> None:
        documents = collection()
        for row in audited(documents, engine(documents, noise=1.0, repeats=3), card=True).repeats:
            total = row.query_share + row.document_share + row.repeat_share
            assert total == pytest.approx(1)

    def test_error_at_present_number_is_the_error(self) -> None:
        documents = collection()
        audit = audited(documents, engine(documents, noise=1.0, repeats=5))
        row = tilt_components(audit)
        errors = {at_repeats.repeats: at_repeats.error for at_repeats in row.errors}
        assert errors[5] == pytest.approx(audit.tilts[0].error)
        assert errors[1] > errors[2] > errors[5] > errors[10] > row.error_limit

    def test_projected_error_is_that_of_fewer_repeats(self) -> None:
        # Ten repeats say what error two have; the mean error of five audits of two is near it.
        documents = collection(queries=120)
        runs = engine(documents, noise=2.0, repeats=10)
        row = tilt_components(audited(documents, runs))
        projected = {at_repeats.repeats: at_repeats.error for at_repeats in row.errors}[2]
        pairs = [runs[start : start + 2] for start in range(0, 10, 2)]
        errors = [audited(documents, pair).tilts[0].error for pair in pairs]
        assert np.mean(errors) == pytest.approx(projected, rel=0.08)

    def test_deterministic_engine_has_no_variance_of_repeats(self) -> None:
        documents = collection()
        audit = audited(documents, engine(documents, noise=0.0, repeats=3))
        row = tilt_components(audit)
        assert row.repeat_share == pytest.approx(0, abs=1e-12)
        assert row.error_limit == pytest.approx(row.error)

    def test_least_number_of_repeats(self) -> None:
        documents = collection(queries=100)
        audit = audited(documents, engine(documents, noise=1.0, repeats=5, tilt=1.5))
        row = tilt_components(audit)
        assert row.is_decided
        assert row.least_repeats == 1
        assert "; 1 repeat would be enough for this value" in repeat_sentence(row)

    def test_no_number_of_repeats_decides(self) -> None:
        documents = collection(queries=15)
        audit = audited(documents, engine(documents, noise=0.2, repeats=4))
        row = tilt_components(audit)
        assert not row.is_decided
        assert row.least_repeats is None
        assert repeat_sentence(row).endswith("more repeats would not decide it, more queries could")

    def test_least_number_agrees_with_the_verdict(self) -> None:
        documents = collection(queries=40)
        for seed in range(6):
            runs = engine(documents, noise=3.0, repeats=4, tilt=0.8, seed=seed)
            row = tilt_components(audited(documents, runs))
            least = row.least_repeats
            assert row.is_decided == (least is not None and least <= row.repeats)

    def test_components_in_file(self, tmp_path: Path) -> None:
        documents = collection()
        audit = audited(documents, engine(documents, noise=1.0, repeats=3))
        audit.save(tmp_path / "audit.json")
        loaded = Audit.load(tmp_path / "audit.json")
        assert loaded.repeats == audit.repeats
        assert loaded.spec["runs"][0]["repeats"] == audit.spec["runs"][0]["repeats"]


class TestQueryGroups:
    """--by-query of a run with repeats: groups of the means, and heterogeneity by repeats."""

    @staticmethod
    def in_topics(queries: int = 40) -> Collection:
        documents = collection(queries=queries)
        topics = pl.Series(["law", "sport"] * (queries // 2))
        return Collection(
            documents.docs, documents.queries.with_columns(topic=topics), documents.qrels
        )

    def test_groups_are_those_of_means(self) -> None:
        documents = self.in_topics()
        runs = engine(documents, noise=1.0, repeats=3)
        audit = audited(documents, runs, card=True, by_query="topic")
        law = documents.queries.filter(pl.col("topic") == "law")["id"]
        alone = audited(documents.only_queries(law), runs, card=True)
        assert audit.by_query is not None
        answers = {
            answer.effect.measure: answer.effect
            for answer in audit.by_query.answers
            if answer.group == "law"
        }
        for effect in (*alone.tilts, *alone.card):
            answer = answers[effect.measure]
            numbers = (answer.value, answer.low, answer.high, answer.p)
            assert numbers == pytest.approx((effect.value, effect.low, effect.high, effect.p))
            assert answer.queries == effect.queries == 20

    def test_difference_from_the_rest_is_that_of_means(self) -> None:
        # Copies of a run add nothing; the mean of different repeats is not the first of them.
        documents = self.in_topics()
        runs = engine(documents, noise=1.0, repeats=3)
        first, copied, averaged = (
            audited(documents, repeats, by_query="topic").by_query
            for repeats in (runs[:1], runs[:1] * 3, runs)
        )
        assert first is not None
        assert copied is not None
        assert averaged is not None
        assert copied.differences[0].p == pytest.approx(first.differences[0].p)
        assert averaged.differences[0].p != pytest.approx(first.differences[0].p)

    def test_share_by_repeats_equals_the_anova(self) -> None:
        # Share@10 is a mean over queries, so a repeat alone has the values per query of the table.
        documents = self.in_topics()
        runs = engine(documents, noise=1.0, repeats=4)
        columns = []
        for run in runs:
            audit = rt.audit(documents, run, "Share@10", **QUICK)
            (answer,) = [row for row in audit.query_answers if row.estimand == audit.primary]
            columns.append(answer.numerator / answer.denominator)
        audit = rt.audit(documents, runs, "Share@10", by_query="topic", **QUICK)
        assert audit.by_query is not None
        # The value that favours nobody differs between topics, and is taken off.
        law, sport = (answer.effect for answer in audit.by_query.answers)
        neutral = np.tile([law.neutral, sport.neutral], 20)
        scores = law.estimand.per_ratio * np.stack(columns, axis=1) - neutral[:, None]
        anova = repeat_anova(scores)
        assert anova is not None
        expected = 1 - anova.mean_square_residual / anova.mean_square_queries
        by_documents, by_repeats = audit.by_query.variances
        assert (by_documents.by, by_repeats.by) == ("documents", "repeats")
        assert by_repeats.share == pytest.approx(expected, abs=1e-9)
        assert by_repeats.low < by_repeats.share < by_repeats.high
        assert by_repeats.queries == 40

    def test_less_noise_leaves_more_share(self) -> None:
        documents = self.in_topics()
        shares = []
        for noise in (0.0, 0.5, 3.0):
            runs = engine(documents, noise=noise, repeats=3)
            audit = audited(documents, runs, by_query="topic")
            assert audit.by_query is not None
            (row,) = [row for row in audit.by_query.variances if row.by == "repeats"]
            shares.append(row.share)
        assert shares[0] == pytest.approx(1.0)
        assert shares[0] > shares[1] > shares[2]

    def test_any_question_has_a_share_by_repeats(self) -> None:
        documents = self.in_topics()
        runs = engine(documents, noise=1.0, repeats=3)
        audit = rt.audit(documents, runs, "AP@10", by_query="topic", **QUICK)
        assert audit.by_query is not None
        assert [row.by for row in audit.by_query.variances] == ["repeats"]

    def test_printed_and_saved(self, tmp_path: Path) -> None:
        documents = self.in_topics()
        audit = audited(documents, engine(documents, noise=1.0, repeats=3), by_query="topic")
        assert audit.by_query is not None
        row = audit.by_query.variances[-1]
        sentence = variance_sentence(row, several_pairs=False)
        assert f"noise of their repeats (by repeats of {row.queries} queries" in sentence
        assert sentence in " ".join(str(audit).split())
        audit.save(tmp_path / "audit.json")
        assert Audit.load(tmp_path / "audit.json").by_query == audit.by_query
        page = rt.report(audit, tmp_path / "page.html").read_text(encoding="utf-8")
        assert "(by repeats of 40 queries" in page

    def test_single_run_has_no_share_by_repeats(self) -> None:
        documents = self.in_topics()
        audit = audited(documents, engine(documents, noise=1.0, repeats=1), by_query="topic")
        assert audit.by_query is not None
        assert [row.by for row in audit.by_query.variances] == ["documents"]


class TestLabelErrors:
    """Corrections for label errors are linear, so they change nothing about repeats."""

    @pytest.mark.parametrize("question", ["Share@10", "NDSR@10"])
    @pytest.mark.parametrize("by", ["", "length:2"])
    def test_corrected_mean_is_mean_of_corrected(self, question: str, by: str) -> None:
        documents = collection()
        words = pl.Series(["a", "a b c d"] * (DOCUMENTS // 2))
        documents = Collection(
            documents.docs.with_columns(text=words), documents.queries, documents.qrels
        )
        rates = "ai:by=length:2,fpr=.02|.1,fnr=.05|.1" if by else "ai:fpr=.02,fnr=.05"
        runs = engine(documents, noise=1.0, repeats=3, tilt=0.5)
        options: dict[str, Any] = {"label_errors": rates, **QUICK}
        together = rt.audit(documents, runs, question, **options).card[0]
        alone = [rt.audit(documents, [run], question, **options).card[0] for run in runs]
        assert together.value == pytest.approx(np.mean([effect.value for effect in alone]))
        assert together.neutral == pytest.approx(np.mean([effect.neutral for effect in alone]))
        assert together.observed is not None
        observed = [effect.observed.value for effect in alone if effect.observed is not None]
        assert together.observed.value == pytest.approx(np.mean(observed))
        assert together.error < max(effect.error for effect in alone)

    def test_corrected_gap_is_the_observed_one_over_j(self) -> None:
        documents = collection()
        runs = engine(documents, noise=1.0, repeats=3, tilt=0.5)
        audit = rt.audit(documents, runs, "Share@10", label_errors="ai:fpr=.02,fnr=.05", **QUICK)
        plain = rt.audit(documents, runs, "Share@10", **QUICK)
        assert audit.card[0].value == pytest.approx(plain.card[0].value / 0.93)
        assert audit.card[0].error == pytest.approx(plain.card[0].error / 0.93)

    def test_copies_change_no_number(self) -> None:
        documents = collection()
        (run,) = engine(documents, noise=1.0, repeats=1)
        options: dict[str, Any] = {"label_errors": "ai:fpr=10/500,fnr=15/300", **QUICK}
        alone, copied = (
            rt.audit(documents, runs, "Share@10", **options).card[0] for runs in ([run], [run] * 3)
        )
        numbers = (alone.value, alone.low, alone.high, alone.error, alone.neutral)
        assert numbers == pytest.approx(
            (copied.value, copied.low, copied.high, copied.error, copied.neutral)
        )

    def test_saved_audit_is_corrected_alike(self) -> None:
        documents = collection()
        runs = engine(documents, noise=1.0, repeats=3, tilt=0.5)
        rates = "ai:fpr=10/500,fnr=15/300"
        audit = rt.audit(documents, runs, "Share@10", label_errors=rates, **QUICK)
        plain = rt.audit(documents, runs, "Share@10", **QUICK)
        (row,) = rt.gate(plain, max_tilt=5, label_errors=rates).rows
        (same,) = rt.gate(audit, max_tilt=5).rows
        for check, same_check in zip(row.checks, same.checks, strict=True):
            assert (check.value, check.low, check.high) == pytest.approx(
                (same_check.value, same_check.low, same_check.high)
            )

    def test_shares_of_components_make_one(self) -> None:
        documents = collection()
        runs = engine(documents, noise=1.0, repeats=3)
        audit = rt.audit(
            documents, runs, "Share@10", label_errors="ai:fpr=10/500,fnr=15/300", **QUICK
        )
        (row,) = [row for row in audit.repeats if row.measure == "Share@10"]
        assert row.label_share > 0
        shares = row.query_share + row.document_share + row.label_share + row.repeat_share
        assert shares == pytest.approx(1)
        assert "from the error rates of labels" in repeat_sentence(row)

    def test_by_query_takes_corrected_repeats(self) -> None:
        documents = TestQueryGroups.in_topics()
        runs = engine(documents, noise=1.0, repeats=3)
        plain, corrected = (
            rt.audit(
                documents, runs, "Share@10", by_query="topic", label_errors=rates, **QUICK
            ).by_query
            for rates in (None, "ai:fpr=.02,fnr=.05")
        )
        assert plain is not None
        assert corrected is not None
        # One J stretches all scores alike, and a share has no unit.
        shares = [[row.share for row in breakdown.variances] for breakdown in (plain, corrected)]
        assert shares[1] == pytest.approx(shares[0])


class TestNotes:
    def sentences(self, audit: Audit) -> str:
        return "\n".join(note.sentence for note in audit.notes)

    def test_identical_repeats(self) -> None:
        documents = collection()
        first, second = engine(documents, noise=1.0, repeats=2)
        sentences = self.sentences(audited(documents, [first, second, first]))
        assert (
            "engine: 2 of its 3 repeats are identical, so either the engine is deterministic or a "
            "file was copied"
        ) in sentences

    def test_repeat_that_equals_another_run_is_numbered(self) -> None:
        documents = collection()
        runs = engine(documents, noise=1.0, repeats=2)
        copy = replace(runs[1], spec={**runs[1].spec, "alias": "copy"})
        sentences = self.sentences(audited(documents, [*runs, copy]))
        assert "engine (repeat 2) and copy are identical" in sentences

    def test_depths_differ(self) -> None:
        documents = collection()
        deep = engine(documents, noise=1.0, repeats=1)
        shallow = engine(documents, noise=1.0, repeats=1, depth=12)
        assert "different depths, from 12 to 20 documents a query" in self.sentences(
            audited(documents, [*deep, *shallow])
        )

    def test_repeats_differ_as_wholes(self) -> None:
        documents = collection(queries=80)
        ahead = engine(documents, noise=0.3, repeats=2, tilt=2.0)
        behind = engine(documents, noise=0.3, repeats=2, tilt=-2.0)
        sentences = self.sentences(audited(documents, [*ahead, *behind]))
        assert "warning: engine: its repeats differ as wholes (on Relative Δ nDCG@10" in sentences


class TestRefusals:
    def test_other_queries(self) -> None:
        documents = collection()
        (run,) = engine(documents, noise=1.0, repeats=1)
        entries = run.frame()
        parts = [
            Run.from_frame(entries.filter(is_first), spec={**run.spec, "file": name})
            for name, is_first in (
                ("a.trec", pl.col("query_id") == "q0"),
                ("b.trec", pl.col("query_id") != "q0"),
            )
        ]
        with refused(
            "run 'engine': repeats must answer the same queries, and repeat 2 (b.trec) has none "
            "of those of repeat 1 (a.trec); if they are different runs, give them different names"
        ):
            audited(documents, parts)

    def test_mitigation(self) -> None:
        documents = collection()
        run = Run.from_repeats(engine(documents, noise=1.0, repeats=2), name="engine")
        with refused("run 'engine' has 2 repeats, which only an audit averages; pass one of them"):
            rt.mitigate(documents, run, folder=None)

    def test_same_name_without_alias(self) -> None:
        documents = collection()
        runs = [
            replace(run, spec={"ranker": "engine"})
            for run in engine(documents, noise=1.0, repeats=2)
        ]
        with refused(
            "run 'engine' is given twice; if these are repeats of one engine, give them one name "
            "of your own: --run NAME=FILE for each (in Python: Run.from_repeats(runs, name=…))"
        ):
            audited(documents, runs)


class TestCompare:
    def test_repeats_against_repeats(self) -> None:
        documents = collection()
        runs = engine(documents, noise=1.0, repeats=6)
        new, old = audited(documents, runs[:3]), audited(documents, runs[3:])
        comparison = rt.compare(new, old, resamples=500)
        (change,) = comparison.tilts
        assert change.value == pytest.approx(new.tilts[0].value - old.tilts[0].value)
        assert not any("repeats of the new run" in note.sentence for note in comparison.notes)

    def test_repeats_against_a_single_run(self) -> None:
        documents = collection()
        runs = engine(documents, noise=1.0, repeats=4)
        new, old = audited(documents, runs[:3]), audited(documents, runs[3:])
        sentences = [note.sentence for note in rt.compare(new, old, resamples=500).notes]
        assert (
            "engine: 3 repeats of the new run and 1 of the old one; the interval includes the "
            "noise of both"
        ) in sentences

    def test_no_step_reads_a_run_with_repeats(self, tmp_path: Path) -> None:
        documents = collection(queries=80)
        rt.save(documents, tmp_path / "docs")
        documents = rt.load(tmp_path / "docs")
        for name, tilt in (("new", 3.0), ("old", 0.0)):
            runs = engine(documents, noise=0.5, repeats=2, tilt=tilt)
            audited(documents, runs).save(tmp_path / f"{name}.json")
        new, old = (rt.Audit.load(tmp_path / f"{name}.json") for name in ("new", "old"))
        comparison = rt.compare(new, old, resamples=500)
        assert comparison.tilts[0].growth_low > 0
        verbs = [step.command.split()[1] for step in comparison_next_commands(comparison)]
        assert verbs == ["gate"]

    def test_more_repeats_narrow_a_difference(self) -> None:
        documents = collection(queries=80)
        runs = engine(documents, noise=2.0, repeats=8)
        single = rt.compare(audited(documents, runs[:1]), audited(documents, runs[4:5]))
        several = rt.compare(audited(documents, runs[:4]), audited(documents, runs[4:]))
        # Four repeats halve the noise of each side, and both runs are one engine: nothing else is.
        assert several.tilts[0].error == pytest.approx(single.tilts[0].error / 2, rel=0.35)

    def test_gate_with_a_baseline_of_one_run(self) -> None:
        documents = collection()
        runs = engine(documents, noise=1.0, repeats=4)
        gate = rt.gate(audited(documents, runs[:3]), baseline=audited(documents, runs[3:]))
        (row,) = gate.rows
        assert (row.run, row.queries) == ("engine", 40)
        assert (
            "engine: 3 repeats of the new run and 1 of the old one; the interval includes the "
            "noise of both"
        ) in [note.sentence for note in gate.notes]

    def test_gate_notes_repeats_of_gated_runs_alone(self) -> None:
        documents = collection()
        runs = engine(documents, noise=1.0, repeats=4)
        (steady,) = engine(documents, noise=1.0, repeats=1, seed=9, name="steady")
        new = audited(documents, [*runs[:3], steady])
        old = audited(documents, [runs[3], steady])
        for gated, notes in (("steady", 0), ("engine", 1)):
            gate = rt.gate(new, baseline=old, runs=[gated])
            repeats = [note for note in gate.notes if isinstance(note, RepeatCountsDiffer)]
            assert len(repeats) == notes


@pytest.mark.long
def test_averaged_repeats_keep_the_level_of_tests() -> None:
    # Labels say nothing about the scores, so each side that a verdict names is an error.
    draws, errors = 200, 0
    for seed in range(draws):
        documents = collection(queries=50, seed=1000 + seed)
        runs = engine(documents, noise=1.5, repeats=4, seed=seed)
        audit = audited(documents, runs, keep_top=0, confounds=False)
        errors += audit.tilts[0].verdict() in ("a", "b")
    # 5 %, and 2.6 Monte Carlo errors.
    assert errors / draws <= 0.05 + 2.6 * np.sqrt(0.05 * 0.95 / draws)
