"""The golden numbers of lexical rankers and saved runs, through the library. Neural ones have their own file."""

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from ranktilt.auditing.audit import audit
from ranktilt.auditing.result import Audit
from ranktilt.collection import Collection
from ranktilt.data.load import load
from ranktilt.run import Run
from ranktilt.specs import ranker

pytestmark = pytest.mark.data

LLM = "llama-2-7b-chat-tmp0.2"
TIES = ("expected", "trec_eval")
Ranked = Callable[[str], Run]


def means(found: Audit, group: str = "all") -> list[float]:
    """Mean of every measure in one group."""
    return found.by_group().filter(pl.col("group") == group)["mean"].to_list()


def of_source(collection: Collection, source: str) -> Collection:
    """The documents of one source alone, with their judgments."""
    docs = collection.docs.filter(pl.col("source") == source)
    return Collection(docs, collection.queries, collection.qrels.filter(pl.col("doc_id").is_in(docs["id"].implode())))


def mean_words(texts: pl.Series) -> float:
    """Mean number of whitespace words."""
    return float(np.mean([len(t.split()) for t in texts]))


@pytest.fixture(scope="module")
def dl19(shared_data: Path) -> Collection:
    """The corpus is not kept here: a collection of the ids that judgments and runs name, without texts."""
    folder = shared_data / "dl19"
    columns = {"query_id": pl.String, "zero": pl.String, "doc_id": pl.String, "grade": pl.Int32}
    qrels = pl.read_csv(folder / "qrels.dl19-passage.txt", separator=" ", has_header=False, schema=columns)
    found = [Run.load(file).ids.alias("doc_id") for file in sorted((folder / "runs").glob("*.trec"))]
    assert len(found) == 9
    ids, queries = pl.concat([qrels["doc_id"], *found]).unique(), qrels["query_id"].unique()
    docs, asked = (names.alias("id").to_frame().with_columns(text=pl.lit("")) for names in (ids, queries))
    return Collection(docs, asked, qrels)


class TestDL19:
    @pytest.mark.parametrize("ties", TIES)
    @pytest.mark.parametrize(
        ("run", "expected"),
        [
            ("bm25", [0.5058, 0.2993, 0.4531]),
            ("bm25-vicuna7b-top20", [0.6164, 0.3163, 0.4531]),
            ("bm25-vicuna7b-top100", [0.6682, 0.3617, 0.4531]),
            ("splade-vicuna7b-top100", [0.7459, 0.4582, 0.5549]),
            ("bm25-gpt35-repeat1", [0.6799]),
            ("bm25-gpt35-repeat2", [0.6737]),
            ("bm25-gpt35-repeat3", [0.6827]),
            ("bm25-gpt35-repeat4", [0.6938]),
            ("bm25-gpt35-repeat5", [0.6868]),
        ],
    )
    def test_published_runs(
        self, dl19: Collection, shared_data: Path, run: str, expected: list[float], ties: str
    ) -> None:
        measures = ["nDCG@10", "AP@100", "R@100"][: len(expected)]
        found = audit(dl19, Run.load(shared_data / "dl19" / "runs" / f"{run}.trec"), measures, by=None, ties=ties)
        assert means(found) == pytest.approx(expected, abs=5e-5)
        assert len(found.queries) == 43


@pytest.fixture(scope="module")
def nfcorpus(shared_data: Path) -> Collection:
    return load(shared_data / "cocktail-nfcorpus")


@pytest.fixture(scope="module")
def ranked(nfcorpus: Collection) -> Ranked:
    """Rank NFCorpus's mixed collection, each ranker once."""
    return cache(lambda text: ranker(text).rank(nfcorpus))


@pytest.fixture(scope="module")
def scifact(shared_data: Path) -> Collection:
    return load(shared_data / "scifact")


class TestNFCorpus:
    def test_pairs_and_their_words(self, nfcorpus: Collection) -> None:
        pairs = nfcorpus.pairs("human", LLM)
        text = dict(nfcorpus.docs.select("id", "text").iter_rows())
        human, machine = ([text[d] for d in pairs[side]] for side in ("a", "b"))
        assert len(human) == 3633
        assert mean_words(pl.Series(human)) == pytest.approx(220.98, abs=0.01)
        assert mean_words(pl.Series(machine)) == pytest.approx(179.76, abs=0.01)
        terms = [[set(re.findall(r"\w+", t.lower())) for t in side] for side in (human, machine)]
        shared = [(len(h & g), len(h | g), len(h)) for h, g in zip(*terms, strict=True)]
        assert np.mean([both / either for both, either, _ in shared]) == pytest.approx(0.58, abs=0.01)
        assert np.mean([both / of_human for both, _, of_human in shared]) == pytest.approx(0.69, abs=0.01)
        assert sum(h == m for h, m in zip(human, machine, strict=True)) == 2

    @pytest.mark.parametrize("ties", TIES)
    def test_bm25_on_human_documents(self, nfcorpus: Collection, ties: str) -> None:
        human = of_source(nfcorpus, "human")
        run = ranker("bm25(k1=0.9,b=0.4)").rank(human)
        found = audit(human, run, ["nDCG@10", "R@100", "R@1000"], by=None, ties=ties)
        assert means(found) == pytest.approx([0.3218, 0.2457, 0.3704], abs=0.003)

    @pytest.mark.parametrize(
        ("text", "human", "llm"),
        [
            ("bm25(k1=0.9,b=0.4)", [0.2430, 0.2243, 0.2197], [0.1842, 0.2187, 0.2153]),
            ("tfidf", [0.2415, 0.2421, 0.2316], [0.1858, 0.1959, 0.1997]),
        ],
    )
    def test_both_sources_with_trec_evals_ties(
        self, nfcorpus: Collection, ranked: Ranked, text: str, human: list[float], llm: list[float]
    ) -> None:
        found = audit(nfcorpus, ranked(text), ["nDCG@1", "nDCG@3", "nDCG@5"], ties="trec_eval")
        assert means(found, "human") == pytest.approx(human, abs=0.004)
        assert means(found, LLM) == pytest.approx(llm, abs=0.004)

    def test_averaged_ties_give_tfidf_84(self, nfcorpus: Collection, ranked: Ranked) -> None:
        (tilt,) = audit(nfcorpus, ranked("tfidf"), ["nDCG@1"]).tilts
        assert tilt.value == pytest.approx(84, abs=3)
        assert tilt.twins

    @pytest.mark.parametrize(("human_id", "expected"), [("z", 150), ("a", 24)])
    def test_trec_evals_ties_follow_the_names(self, nfcorpus: Collection, human_id: str, expected: float) -> None:
        """Ids that sort the human side last (z) let it win every tie, ids that sort it first none."""
        end = pl.when(pl.col("source") == "human").then(pl.lit(human_id)).otherwise(pl.lit("m"))
        docs = nfcorpus.docs.with_columns(new=pl.format("{}-{}", "origin", end))
        qrels = nfcorpus.qrels.join(docs.select(doc_id="id", new="new"), on="doc_id", maintain_order="left")
        renamed = Collection(
            docs.with_columns(id="new").drop("new"), nfcorpus.queries, qrels.with_columns(doc_id="new").drop("new")
        )
        run = ranker("tfidf@100").rank(renamed)
        assert audit(renamed, run, ["nDCG@1"], ties="trec_eval").tilts[0].value == pytest.approx(expected, abs=3)
        assert audit(renamed, run, ["nDCG@1"]).tilts[0].value == pytest.approx(84, abs=3)

    @pytest.mark.parametrize(("text", "expected"), [("bm25(k1=0.9,b=0.4)", 2.9), ("bm25(k1=0.9,b=1)", -33.8)])
    def test_length_normalization_moves_the_tilt(
        self, nfcorpus: Collection, ranked: Ranked, text: str, expected: float
    ) -> None:
        (tilt,) = audit(nfcorpus, ranked(text), ["nDCG@3"]).tilts
        assert tilt.value == pytest.approx(expected, abs=1.5)

    def test_bm25_puts_llm_text_above_its_twin(self, nfcorpus: Collection, ranked: Ranked) -> None:
        human, llm, _ = self.head_to_head(nfcorpus, ranked("bm25(k1=0.9,b=0.4)"))
        assert human == pytest.approx(1448, rel=0.01)
        assert llm == pytest.approx(1806, rel=0.01)

    def test_tfidf_ties_almost_half_of_the_twins(self, nfcorpus: Collection, ranked: Ranked) -> None:
        counts = self.head_to_head(nfcorpus, ranked("tfidf"))
        assert counts[2] == pytest.approx(1492, rel=0.02)
        assert sum(counts) == pytest.approx(3349, rel=0.02)

    def test_the_published_count_of_ties_cuts_them_in_the_files_order(self, nfcorpus: Collection) -> None:
        """At rank 1,000 it keeps the human side of tied twins, where RankTilt keeps both or none."""
        deep = ranker("tfidf@8000").rank(nfcorpus)
        order = np.lexsort((deep.docs, -deep.scores, deep.entry_queries))
        rank = np.arange(len(order)) - deep.offsets[:-1][deep.entry_queries]
        kept = order[rank < 1000]
        offsets = np.concatenate([[0], np.cumsum(np.minimum(np.diff(deep.offsets), 1000))])
        counts = self.head_to_head(nfcorpus, Run(deep.queries, offsets, deep.docs[kept], deep.scores[kept], deep.ids))
        assert counts[2] == pytest.approx(1492, abs=2)
        assert sum(counts) == pytest.approx(3349, abs=2)

    @staticmethod
    def head_to_head(collection: Collection, run: Run) -> tuple[int, int, int]:
        """Wins of the human side, of the other, and ties, over relevant pairs."""
        counts = audit(collection, run, ["nDCG@1"], resamples=100).pair_counts.filter("relevant")
        human, llm, ties = counts.select(pl.col("wins", "losses", "ties").sum()).row(0)
        return human, llm, ties


class TestSciFact:
    def test_documents_and_queries(self, scifact: Collection) -> None:
        assert scifact.docs.height == 5183
        assert mean_words(scifact.docs["text"]) == pytest.approx(201.81, abs=0.01)
        assert scifact.judged.height == 300
        assert scifact.queries.height == 1109
        assert mean_words(scifact.queries["text"]) == pytest.approx(12.38, abs=0.01)
        assert scifact.qrels.filter(pl.col("grade") > 0).height / 300 == pytest.approx(1.13, abs=0.01)

    @pytest.mark.parametrize("ties", TIES)
    def test_bm25(self, scifact: Collection, ties: str) -> None:
        found = audit(scifact, ranker("bm25(k1=0.9,b=0.4)").rank(scifact), ["nDCG@10", "R@100"], by=None, ties=ties)
        assert means(found) == pytest.approx([0.6789, 0.9253], abs=0.006)

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("text", "expected", "published"),
        [
            ("bm25(k1=2,b=0.75,method=atire,analyzer=paper,text=text)", [46.3, 54.3, 56.6], [46.0, 54.2, 56.3]),
            ("tfidf(analyzer=paper,text=text)", [42.0, 49.5, 52.8], [42.0, 49.5, 52.7]),
        ],
    )
    def test_the_papers_analyzer(
        self, scifact: Collection, text: str, expected: list[float], published: list[float]
    ) -> None:
        pytest.importorskip("nltk", reason="the papers' analyzer needs nltk")
        run = ranker(text).rank(scifact)
        for ties in TIES:
            found = [100 * v for v in means(audit(scifact, run, ["nDCG@1", "nDCG@3", "nDCG@5"], by=None, ties=ties))]
            assert found == pytest.approx(expected, abs=0.4)
            assert found == pytest.approx(published, abs=0.4)
