"""The golden numbers of lexical rankers and saved runs, and what the tour says of them."""

import json
import re
from collections.abc import Callable, Iterable
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from ranktilt.auditing.audit import audit
from ranktilt.auditing.controls.controls import controls
from ranktilt.auditing.effects import Effect
from ranktilt.auditing.result import Audit
from ranktilt.data.collection import Collection
from ranktilt.data.loading.load import load
from ranktilt.data.runs.run import Run
from ranktilt.registry import ranker
from ranktilt.reporting.output import table
from ranktilt.reporting.sentences.controls import control_change
from ranktilt.reporting.sentences.notes import note_sentences
from tests.toy import write

pytestmark = pytest.mark.data

LLM = "llama-2-7b-chat-tmp0.2"
TIES = ("expected", "trec_eval")
Ranked = Callable[[str], Run]


def means(audited: Audit, group: str = "all") -> list[float]:
    return audited.by_group().filter(pl.col("group") == group)["mean"].to_list()


def command(folder: Path, *arguments: str | Path) -> tuple[Audit, str]:
    """Audit by the command line; return the audit and what it printed."""
    from ranktilt.cli.main import run

    file = folder / "audit.json"
    with redirect_stdout(StringIO()) as printed, redirect_stderr(StringIO()) as errors:
        code = run(["audit", *map(str, arguments), "--json", str(file)])
    assert (code, errors.getvalue()) == (0, "")
    return Audit.load(file), printed.getvalue()


def card_of(audited: Audit) -> dict[str, Effect]:
    return {e.estimand.key: e for e in audited.card_of(None)}


@pytest.fixture(scope="module")
def dl19(shared_data: Path) -> Collection:
    """The corpus is not kept here: a collection of the ids that judgments and runs name, without
    texts.
    """
    folder = shared_data / "dl19"
    columns = {"query_id": pl.String, "zero": pl.String, "doc_id": pl.String, "grade": pl.Int32}
    qrels = pl.read_csv(
        folder / "qrels.dl19-passage.txt", separator=" ", has_header=False, schema=columns
    )
    listed = [
        Run.load(file).ids.alias("doc_id") for file in sorted((folder / "runs").glob("*.trec"))
    ]
    assert len(listed) == 9
    ids, queries = pl.concat([qrels["doc_id"], *listed]).unique(), qrels["query_id"].unique()
    docs, named_queries = (
        names.alias("id").to_frame().with_columns(text=pl.lit("")) for names in (ids, queries)
    )
    return Collection(docs, named_queries, qrels)


class TestDL19:
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
        self, dl19: Collection, shared_data: Path, run: str, expected: list[float]
    ) -> None:
        measures = ["nDCG@10", "AP@100", "R@100"][: len(expected)]
        loaded = Run.load(shared_data / "dl19" / "runs" / f"{run}.trec")
        for ties in TIES:
            result = audit(dl19, loaded, measures, by=None, ties=ties)
            assert means(result) == pytest.approx(expected, abs=5e-5)
            assert len(result.queries) == 43

    def test_groups_by_length_are_judged_against_their_random_band(
        self, dl19: Collection, shared_data: Path
    ) -> None:
        candidates = json.loads(
            (shared_data / "dl19" / "candidates-bm25.json").read_text(encoding="utf-8")
        )
        texts = {hit["docid"]: hit["content"] for query in candidates for hit in query["hits"]}
        known = pl.Series("text", [texts.get(name, "") for name in dl19.docs["id"]])
        collection = Collection(dl19.docs.with_columns(known), dl19.queries, dl19.qrels)
        run = Run.load(shared_data / "dl19" / "runs" / "bm25.trec")
        result = audit(collection, run, ["nDCG@10"], by="length:3", card=True)
        assert result.groups == ("all", "12 to 47 words", "48 to 69 words", "70 to 193 words")
        sizes = np.sort([len(text.split()) for text in texts.values()])
        assert (sizes[0], sizes[-1]) == (12, 193)
        assert means(result) == pytest.approx([0.5058], abs=5e-5)
        assert (
            f"{dl19.docs.height - len(texts):,} documents without length, so in no group"
            in note_sentences(result.notes)
        )
        assert [(t.twins, t.null_low < 0 < t.null_high) for t in result.tilts] == [
            (False, True)
        ] * 3
        (short_long,) = (
            t for t in result.tilts if (t.a, t.b) == ("12 to 47 words", "70 to 193 words")
        )
        assert short_long.value == pytest.approx(-37, abs=1)
        # The interval holds 0, but almost no shuffle of the labels favours long passages as much.
        assert short_long.low < 0 < short_long.high
        assert short_long.value < short_long.null_low
        pages = [e for e in result.card if e.estimand.key == "page"]
        assert [e.estimand.key for e in result.card] == ["relative delta", "page"] * 3
        assert all(
            e.has_random_band and abs(e.neutral) < 0.1 and abs(e.details["shares"]) < 0.01
            for e in pages
        )


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
    def test_bm25_on_human_documents(self, nfcorpus: Collection) -> None:
        docs = nfcorpus.docs.filter(pl.col("source") == "human")
        qrels = nfcorpus.qrels.filter(pl.col("doc_id").is_in(docs["id"].implode()))
        human = Collection(docs, nfcorpus.queries, qrels)
        run = ranker("bm25(k1=0.9,b=0.4)").rank(human)
        for ties in TIES:
            result = audit(human, run, ["nDCG@10", "R@100", "R@1000"], by=None, ties=ties)
            assert means(result) == pytest.approx([0.3218, 0.2457, 0.3704], abs=0.003)

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
        result = audit(nfcorpus, ranked(text), ["nDCG@1", "nDCG@3", "nDCG@5"], ties="trec_eval")
        assert means(result, "human") == pytest.approx(human, abs=0.004)
        assert means(result, LLM) == pytest.approx(llm, abs=0.004)

    def test_averaged_ties_give_tfidf_84_and_length_normalization_moves_the_tilt(
        self, nfcorpus: Collection, ranked: Ranked
    ) -> None:
        (tilt,) = audit(nfcorpus, ranked("tfidf"), ["nDCG@1"]).tilts
        assert tilt.value == pytest.approx(84, abs=3)
        assert tilt.twins
        for text, expected in (("bm25(k1=0.9,b=0.4)", 2.9), ("bm25(k1=0.9,b=1)", -33.8)):
            (tilt,) = audit(nfcorpus, ranked(text), ["nDCG@3"]).tilts
            assert tilt.value == pytest.approx(expected, abs=1.5)

    @pytest.mark.parametrize(("human_id", "expected"), [("z", 150), ("a", 24)])
    def test_trec_evals_ties_follow_the_names(
        self, nfcorpus: Collection, human_id: str, expected: float
    ) -> None:
        """Ids that sort the human side last (z) let it win every tie, ids that sort it
        first none.
        """
        end = pl.when(pl.col("source") == "human").then(pl.lit(human_id)).otherwise(pl.lit("m"))
        docs = nfcorpus.docs.with_columns(new=pl.format("{}-{}", "origin", end))
        qrels = nfcorpus.qrels.join(
            docs.select(doc_id="id", new="new"), on="doc_id", maintain_order="left"
        )
        renamed = Collection(
            docs.with_columns(id="new").drop("new"),
            nfcorpus.queries,
            qrels.with_columns(doc_id="new").drop("new"),
        )
        run = ranker("tfidf@100").rank(renamed)
        assert audit(renamed, run, ["nDCG@1"], ties="trec_eval").tilts[0].value == pytest.approx(
            expected, abs=3
        )
        assert audit(renamed, run, ["nDCG@1"]).tilts[0].value == pytest.approx(84, abs=3)

    def test_bm25_puts_llm_text_above_its_twin_and_tfidf_ties_almost_half(
        self, nfcorpus: Collection, ranked: Ranked
    ) -> None:
        human, llm, _ = self.head_to_head(nfcorpus, ranked("bm25(k1=0.9,b=0.4)"))
        assert human == pytest.approx(1448, rel=0.01)
        assert llm == pytest.approx(1806, rel=0.01)
        counts = self.head_to_head(nfcorpus, ranked("tfidf"))
        assert counts[2] == pytest.approx(1492, rel=0.02)
        assert sum(counts) == pytest.approx(3349, rel=0.02)

    def test_the_published_count_of_ties_cuts_them_in_the_files_order(
        self, nfcorpus: Collection
    ) -> None:
        """At rank 1,000 it keeps the human side of tied twins, where RankTilt keeps both
        or none.
        """
        deep = ranker("tfidf@8000").rank(nfcorpus)
        order = np.lexsort((deep.docs, -deep.scores, deep.entry_queries))
        rank = np.arange(len(order)) - deep.offsets[:-1][deep.entry_queries]
        first = order[rank < 1000]
        offsets = np.concatenate([[0], np.cumsum(np.minimum(np.diff(deep.offsets), 1000))])
        counts = self.head_to_head(
            nfcorpus, Run(deep.queries, offsets, deep.docs[first], deep.scores[first], deep.ids)
        )
        assert counts[2] == pytest.approx(1492, abs=2)
        assert sum(counts) == pytest.approx(3349, abs=2)

    @staticmethod
    def head_to_head(collection: Collection, run: Run) -> tuple[int, int, int]:
        """Wins of the human side, of the other, and ties, over relevant pairs."""
        counts = audit(collection, run, ["nDCG@1"], resamples=100).pair_counts.filter("relevant")
        human, llm, ties = counts.select(pl.col("wins", "losses", "ties").sum()).row(0)
        return human, llm, ties

    def test_the_card_of_bm25_warns_of_the_conflict(
        self, nfcorpus: Collection, ranked: Ranked
    ) -> None:
        result = audit(nfcorpus, ranked("bm25(k1=0.9,b=0.4)"), ["nDCG@3"], card=True)
        card = card_of(result)
        page, twins = card["page"], card["relevant twins"]
        assert page.name == "ΔNDSR@20"
        assert page.value == pytest.approx(0.050, abs=0.005)
        assert (page.side(page.favours), page.has_random_band) == ("human", False)
        assert (twins.details["wins"], twins.details["losses"]) == (
            pytest.approx(1448, abs=5),
            pytest.approx(1806, abs=5),
        )
        assert twins.side(twins.favours) == LLM
        text = table(result)
        (sentence,) = (line for line in text.splitlines() if "conflicting answers" in line)
        human, llm = sentence.split("; ")
        assert ("ΔNDSR@20" in human, "head-to-head, relevant twins" in llm) == (True, True)
        assert (human.endswith("human"), f"to {LLM}." in llm) == (True, True)

    @pytest.mark.parametrize(
        ("text", "raw", "cut"), [("tfidf", 41.0, -11.2), ("tfidf(text=text)", 39.1, -16.4)]
    )
    def test_the_length_control_turns_tfidf_around(
        self, nfcorpus: Collection, ranked: Ranked, text: str, raw: float, cut: float
    ) -> None:
        """About +39 becomes about -14, by what of a document is ranked."""
        result = audit(nfcorpus, ranked(text), ["nDCG@3"])
        plain, length = controls(
            nfcorpus, [ranker(text)], [ranked(text)], result, which=["length"]
        ).controls
        assert plain.tilts[0].value == result.tilts[0].value == pytest.approx(raw, abs=1.5)
        assert length.tilts[0].value == pytest.approx(cut, abs=1.5)
        assert control_change(length.control_change) == "3,584 of 7,266 documents changed"
        assert length.moves[0].high < -30


def lines_of(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


Scored = tuple[str, str, str, float]
"""Query, origin, source and score."""


def converted(folder: Path, scored: Iterable[Scored]) -> tuple[Path, Path]:
    """Write a TREC run whose ids say nothing, and a table of labels."""
    scored = list(scored)
    names = {
        key: f"{n:05d}"
        for n, key in enumerate(dict.fromkeys((origin, source) for _, origin, source, _ in scored))
    }
    lines = [
        f"{query} Q0 {names[origin, source]} 0 {score!r} ance\n"
        for query, origin, source, score in scored
    ]
    labels = [f"{name}\t{source}\t{origin}\n" for (origin, source), name in names.items()]
    return (
        write(folder / "ance.trec", "".join(lines)),
        write(folder / "labels.tsv", "doc_id\tsource\torigin\n" + "".join(labels)),
    )


class TestPerplexityTrap:
    """Scores that ANCE gave human and LLM versions of SCIDOCS, without a text, by the
    command line.
    """

    @pytest.mark.parametrize("judged", [False, True])
    def test_relevant_twins(self, shared_data: Path, tmp_path: Path, judged: bool) -> None:
        lines = lines_of(shared_data / "perplexity-trap-scidocs" / "pos_rel_ance.jsonl")
        scored = [
            (line["query_id"], line["doc_id"], side, line[side])
            for line in lines
            for side in ("human", "llm")
        ]
        run, labels = converted(tmp_path, scored)
        options: list[str | Path] = []
        if judged:
            table_rows = [
                line.split("\t") for line in labels.read_text(encoding="utf-8").splitlines()[1:]
            ]
            name = {(origin, side): doc for doc, side, origin in table_rows}
            judged_rows = [
                f"{query} 0 {name[origin, side]} 1\n" for query, origin, side, _ in scored
            ]
            options = ["--qrels", write(tmp_path / "qrels.txt", "".join(judged_rows)), "--card"]
        audited, printed = command(tmp_path, "--run", run, "--groups", labels, *options)
        card = card_of(audited)
        twins, gap = card["relevant twins" if judged else "twins"], card["score gap"]
        assert (twins.a, twins.b) == ("human", "llm")
        assert (twins.details["pairs"], twins.details["ties"]) == (4739, 1)
        assert 100 * twins.details["losses"] / 4739 == pytest.approx(56.87, abs=0.005)
        assert twins.side(twins.favours) == "llm"
        assert (gap.details["pairs"], gap.details["raw"]) == (
            4739,
            pytest.approx(-0.0881, abs=5e-5),
        )
        assert (
            f"4,739 pairs: human {int(twins.details['wins']):,}, llm "
            f"{int(twins.details['losses']):,}"
        ) in printed

    def test_pairs_of_the_mixed_ranking_that_are_retrieved_whole(
        self, shared_data: Path, tmp_path: Path
    ) -> None:
        scored = [
            (line["qid"], name.removeprefix("-"), "llm" if name.startswith("-") else "human", score)
            for line in lines_of(shared_data / "perplexity-trap-scidocs" / "ance.jsonl")
            for name, score in line["rel"].items()
        ]
        run, labels = converted(tmp_path, scored)
        audited, printed = command(tmp_path, "--run", run, "--groups", labels)
        twins = card_of(audited)["twins"].details
        assert twins["both"] == 1406
        assert 100 * twins["both_losses"] / 1406 == pytest.approx(53.5, abs=0.05)
        assert "1,406" in printed
        assert "53.5" in printed
        assert audited.measures == ()


class TestSciFact:
    def test_bm25(self, scifact: Collection) -> None:
        run = ranker("bm25(k1=0.9,b=0.4)").rank(scifact)
        for ties in TIES:
            result = audit(scifact, run, ["nDCG@10", "R@100"], by=None, ties=ties)
            assert means(result) == pytest.approx([0.6789, 0.9253], abs=0.006)

    @pytest.mark.long
    @pytest.mark.parametrize(
        ("text", "expected", "published"),
        [
            ("bm25:dai", [46.3, 54.3, 56.6], [46.0, 54.2, 56.3]),
            ("tfidf:dai", [42.0, 49.5, 52.8], [42.0, 49.5, 52.7]),
        ],
    )
    def test_the_lexical_rankers_of_the_paper(
        self, scifact: Collection, text: str, expected: list[float], published: list[float]
    ) -> None:
        pytest.importorskip("nltk", reason="the papers' analyzer needs nltk")
        run = ranker(text).rank(scifact)
        for ties in TIES:
            values = [
                100 * v
                for v in means(
                    audit(scifact, run, ["nDCG@1", "nDCG@3", "nDCG@5"], by=None, ties=ties)
                )
            ]
            assert values == pytest.approx(expected, abs=0.4)
            assert values == pytest.approx(published, abs=0.4)


TOUR = Path(__file__).parents[1] / "docs" / "tour.md"
NFCORPUS = """
 tfidf
   all                                 43.0             39.4             35.6       323
   human                               30.6             24.9             23.2       323
   llama-2-7b-chat-tmp0.2              12.4             18.4             18.2       323
   Relative Δ                         +84.6            +30.2            +24.2       323       45.8 %
                            [+60.5, +107.7]   [+21.8, +38.3]   [+18.5, +30.0]

 bm25
   all                                 43.0             39.7             35.8       323
   human                               18.6             20.2             19.8       323
   llama-2-7b-chat-tmp0.2              24.5             23.4             21.8       323
   Relative Δ                         −27.3            −14.4             −9.5       323        1.2 %
                              [−61.7, +6.2]    [−23.8, −5.3]    [−16.2, −2.9]
"""


def rows(text: str, ranker: str) -> list[list[str]]:
    """Words of each line of one ranker's block, without the marks, which depend on the
    whole table.
    """
    lines = text.splitlines()
    start = next(n for n, line in enumerate(lines) if line.strip() == ranker)
    block = []
    for line in lines[start + 1 :]:
        if not line.strip():
            break
        block.append(re.sub(r"\*", "", line).split())
    return block


@pytest.mark.parametrize("name", ["tfidf", "bm25"])
def test_the_lexical_rankers_of_the_table(nfcorpus: Collection, ranked: Ranked, name: str) -> None:
    printed = table(audit(nfcorpus, ranked(name), ["nDCG@1", "nDCG@5", "nDCG@10"]))
    assert len(rows(NFCORPUS, name)) == 5
    assert rows(printed, name) == rows(NFCORPUS, name)


def test_what_the_length_control_is_said_to_show(nfcorpus: Collection, ranked: Ranked) -> None:
    run = ranked("tfidf")
    result = controls(
        nfcorpus, [ranker("tfidf")], [run], audit(nfcorpus, run, "nDCG@1"), which=["length"]
    )
    raw, length = (
        f"{control.tilts[0].value:+.1f}".replace("-", "−") for control in result.controls
    )
    text = " ".join(TOUR.read_text(encoding="utf-8").split())
    assert (
        f"TF-IDF's {raw} % on nDCG@1 becomes {length} % when both sides have the same length"
        in text
    )


def test_bm25_is_shown_to_favour_rewrites_where_the_noisiest_measure_shows_nothing(
    nfcorpus: Collection, ranked: Ranked
) -> None:
    result = audit(nfcorpus, ranked("bm25"), keep_top=0)
    verdict = result.verdict("bm25")
    assert (verdict.kind, verdict.side, verdict.primary) == ("favours", LLM, "nDCG@10")
    noisiest = next(tilt for tilt in result.tilts if tilt.measure == "nDCG@1")
    assert noisiest.verdict() == "inconclusive"
