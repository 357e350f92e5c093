"""The causal correction: what is fitted is the Wald ratio, and what is subtracted is λ times it."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from ranktilt import Collection, DataError, Run, UserError, ranker
from ranktilt.explaining.perplexity import PerplexityProbe
from ranktilt.mitigation.causal import Causal, CausalFit, CausalOptions, fit_causal
from ranktilt.rankers.lexical.bm25 import BM25
from ranktilt.rankers.replay import Replay
from ranktilt.reporting.sentences.mitigation.mitigate import causal_sentence
from tests.mitigation.builders import Planted, judged, perplexity, same_bits, text_column
from tests.refusals import refused
from tests.toy import collection_of, run_of, write_run


@pytest.fixture(scope="module")
def texts() -> Collection:
    return text_column()


@pytest.fixture(scope="module")
def fit(texts: Collection) -> CausalFit:
    return fit_causal(texts, Planted(), source="llm")


@pytest.fixture
def file(fit: CausalFit, tmp_path: Path) -> str:
    return str(fit.save(tmp_path / "causal.json"))


def test_a_planted_effect_is_found_as_by_two_regressions_and_read(
    texts: Collection, fit: CausalFit, file: str
) -> None:
    assert fit.low < -0.5 < fit.high
    assert fit.coefficient == pytest.approx(-0.5, abs=0.03)
    assert fit.f > 80
    assert fit_causal(texts, Planted(noise=0.0), source="llm").coefficient == pytest.approx(
        -0.5, abs=1e-12
    )
    score = {
        (query, doc): score for query, doc, _, score in Planted().rank(texts).frame().iter_rows()
    }
    values = dict(zip(texts.ids, perplexity(texts), strict=True))
    entries = [(pair.query, doc, side) for pair in fit.pairs for side, doc in enumerate(pair[1:])]
    side = np.column_stack([np.ones(len(entries)), [side for _, _, side in entries]])
    seen = np.array([values[doc] for _, doc, _ in entries])
    predicted = side @ np.linalg.lstsq(side, seen, rcond=None)[0]
    second = np.column_stack([np.ones(len(entries)), predicted])
    slope = np.linalg.lstsq(
        second, np.array([score[query, doc] for query, doc, _ in entries]), rcond=None
    )[0][1]
    assert fit.coefficient == pytest.approx(slope)
    assert fit.coefficient == pytest.approx(fit.score_gap / fit.perplexity_gap)
    assert CausalFit.load(file) == fit
    assert fit.queries == tuple(dict.fromkeys(pair.query for pair in fit.pairs))
    assert len(fit.pairs) == 90
    assert (
        "perplexity, in nats per word (trigrams), moves scores of planted by −"
        in causal_sentence(fit)
    )
    assert "; llm minus human: perplexity −0." in causal_sentence(fit)


@pytest.mark.parametrize("scored", [Planted(), Planted(beta=0.3, noise=2.0), BM25()])
def test_at_full_strength_twins_score_alike_on_average(
    texts: Collection, scored: Any, tmp_path: Path
) -> None:
    fit = fit_causal(texts, scored, source="llm", options=CausalOptions(pairs=40))
    file = str(fit.save(tmp_path / "fit.json"))
    run = scored.rank(texts)
    candidates = scored.rank(
        texts, run_of(texts, {q: dict.fromkeys(texts.ids, 0.0) for q in run.queries})
    )
    for strength, left in ((1.0, 0.0), (0.25, 0.75)):
        corrected = Causal(fit=file, strength=strength).rank(texts, candidates)
        score = {(query, doc): score for query, doc, _, score in corrected.frame().iter_rows()}
        gaps = [
            score[pair.query, pair.twin] - score[pair.query, pair.reference] for pair in fit.pairs
        ]
        assert np.mean(gaps) == pytest.approx(left * fit.score_gap, abs=1e-9)


def test_each_score_loses_its_part_and_without_words_the_mean(
    texts: Collection, fit: CausalFit, file: str
) -> None:
    run = Planted(k=20).rank(texts)
    corrected = Causal(fit=file, strength=0.6).rank(texts, run)
    before, after = (lists.frame().sort("query_id", "doc_id") for lists in (run, corrected))
    values = dict(zip(texts.ids, perplexity(texts), strict=True))
    lost = np.array([0.6 * fit.coefficient * values[doc] for doc in before["doc_id"]])
    assert after["doc_id"].to_list() == before["doc_id"].to_list()
    assert after["score"].to_numpy() == pytest.approx(before["score"].to_numpy() - lost)
    assert corrected.spec["fitted_on"] == {"file": file, "queries": list(fit.queries)}
    assert corrected.spec["candidates"]["ranker"] == "planted@20"
    assert same_bits(Causal(fit=file, strength=0).rank(texts, run), run)
    rows = [*texts.docs.to_dicts(), {"id": "none", "text": "", "source": "human", "origin": "none"}]
    more = collection_of(rows, {"q0": "rare1 rare2"}, {"q0": {"0-human": 1}})
    run = run_of(more, {"q0": {"0-human": 3.0, "none": 2.5, "0-llm": 1.0}}, ranker="planted")
    score = dict(Causal(fit=file).rank(more, run).frame().select("doc_id", "score").iter_rows())
    assert 2.5 - score["none"] == pytest.approx(((3 - score["0-human"]) + (1 - score["0-llm"])) / 2)


def test_it_is_typed_behind_the_ranker_that_was_fitted(texts: Collection, tmp_path: Path) -> None:
    fit = fit_causal(texts, ranker("tfidf@7>>bm25@3"), source="llm")
    assert fit.spec["ranker"] == "bm25"
    fit.save(tmp_path / "causal.json")
    typed = ranker(f"bm25@10>>causal(strength=0.6,fit={tmp_path / 'causal.json'})@4")
    run = typed.rank(texts)
    assert run.name == repr(typed)
    assert max(np.diff(run.offsets)) <= 5
    saved = ranker("bm25@10").rank(texts).save(tmp_path / "mine.trec")
    behind = ranker(f"replay:{saved}>>{str(typed).partition('>>')[2]}")
    assert behind.rank(texts) == run


def test_queries_take_turns_and_pairs_that_a_saved_run_lacks_are_left_out(
    texts: Collection, tmp_path: Path
) -> None:
    few, same, reseeded = (
        fit_causal(
            texts,
            Planted(),
            source="llm",
            options=CausalOptions(pairs=30, seed=seed, force=True),
        )
        for seed in (0, 0, 1)
    )
    assert sorted(pair.query for pair in few.pairs) == sorted(texts.queries["id"])
    assert few == same
    assert few.pairs != reseeded.pairs
    fitted_on_one = fit_causal(
        judged(texts, ["q1", "q2"]), Planted(), source="llm", options=CausalOptions(force=True)
    )
    assert (set(fitted_on_one.queries), len(fitted_on_one.pairs)) == ({"q1", "q2"}, 6)
    frame = Planted().rank(texts).frame()
    gone = pl.struct("query_id", "doc_id").is_in(
        [{"query_id": q, "doc_id": f"{q[1:]}-llm"} for q in ("q0", "q1")]
    )
    file = Run.from_frame(frame.filter(~gone)).save(tmp_path / "run.trec")
    fit = fit_causal(texts, Replay(str(file)), source="llm")
    assert (len(fit.pairs), fit.spec["missing"]) == (88, 2)
    assert "over 88 pairs of 30 queries, 2 more not scored; " in causal_sentence(fit)
    assert fit.coefficient == pytest.approx(-0.5, abs=0.03)


def test_a_model_reads_the_candidates_only(
    texts: Collection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[set[str]] = []

    def measure(self: PerplexityProbe, collection: Collection, reference: str, ranked: None) -> Any:
        read.append(set(collection.ids))
        return (collection.docs["source"] == "human").cast(pl.Float64).to_numpy() + 1

    monkeypatch.setattr(PerplexityProbe, "measure", measure)
    probe = PerplexityProbe("some/model", kind="causal", precision="float32")
    fit = fit_causal(texts, BM25(), source="llm", options=CausalOptions(probe=probe, force=True))
    assert fit.perplexity_gap == -1
    assert fit.spec["perplexity"] == probe.options
    file = fit.save(tmp_path / "fit.json")
    run = run_of(texts, {"q0": {"0-human": 2.0, "3-llm": 1.0}}, ranker="bm25")
    corrected = Causal(fit=str(file)).rank(texts, run)
    assert read[-1] == {"0-human", "3-llm"}
    assert sorted(corrected.scores) == sorted([2 - 2 * fit.coefficient, 1 - fit.coefficient])


def test_what_cannot_be_fitted_is_refused_a_weak_instrument_unless_forced(
    texts: Collection, tmp_path: Path
) -> None:
    lone = collection_of(
        [{"id": "a", "text": "x y", "source": s} | {"id": s} for s in ("human", "llm")], {}, {}
    )
    saved = Replay(str(write_run(tmp_path / "run.trec", {"q0": {"0-human": 2.0, "0-llm": 1.0}})))
    probe = PerplexityProbe("model", context="origin")
    cases: list[tuple[Collection, Any, dict[str, Any], str]] = [
        (
            lone,
            Planted(),
            {},
            "causal needs twins: no document of 'llm' shares its origin with one of 'human'",
        ),
        (
            judged(texts, []),
            Planted(),
            {},
            "causal learns from judged queries; none has a relevant document of 'human",
        ),
        (texts, Planted(), {"source": "gpt"}, "unknown source 'gpt' (valid: human, llm)"),
        (
            texts,
            Planted(),
            {"options": CausalOptions(probe=probe)},
            "causal needs the perplexity of texts alone; leave out context",
        ),
        (
            texts,
            ranker("bm25@9>>causal"),
            {},
            "causal is fitted on a ranker's own scores, and causal has changed them",
        ),
        (
            texts,
            saved,
            {},
            f"causal needs at least 3 pairs with both sides scored by {saved!r}, got 1 of 90",
        ),
    ]
    for collection, scored, options, message in cases:
        with pytest.raises(UserError, match="^" + re.escape(message)):
            fit_causal(collection, scored, **{"source": "llm", **options})
    alike = text_column(common=0.3)
    same = alike.docs.with_columns(text=pl.col("text").first().over("origin"))
    copies = Collection(same, alike.queries, alike.qrels)
    weak = text_column(12, common=0.22)
    with pytest.raises(
        UserError,
        match=r"differ too little in perplexity \(first-stage F 0.0, expected at least 10\)",
    ):
        fit_causal(copies, Planted(), source="llm", options=CausalOptions(force=True))
    forced = fit_causal(weak, Planted(), source="llm", options=CausalOptions(force=True))
    assert forced.f < 10
    with pytest.raises(
        UserError,
        match=rf"\(first-stage F {forced.f:.1f}, expected at least 10\), .*; set force to go on "
        "anyway$",
    ):
        fit_causal(weak, Planted(), source="llm")


def test_what_cannot_be_corrected_is_refused(texts: Collection, file: str, tmp_path: Path) -> None:
    ranks, scores = (
        {"q0": {"0-human": 3.0, "0-llm": second, "1-llm": 1.0}} for second in (2.0, 2.2)
    )
    frame = pl.DataFrame(
        {"query_id": "q0", "doc_id": ["0-human", "x", "y"], "score": [9.0, 7.0, 1.0]}
    )
    correction = Causal(fit=file)
    for candidates, message in (
        (
            run_of(texts, scores, ranker="bm25@3"),
            f"{file} was fitted on scores of planted, but the candidates come from",
        ),
        (
            run_of(texts, ranks, ranker="planted"),
            f"{correction!r} reads scores, and planted gives only an order",
        ),
        (
            Run.from_frame(frame, spec={"ranker": "planted"}),
            "causal reads texts, and 2 of 3 candidates are not in the",
        ),
        (None, f"{correction!r} re-ranks candidates; put a ranker before it, such as bm25@100>>"),
    ):
        with pytest.raises(UserError, match="^" + re.escape(message)):
            correction.rank(texts, candidates)
    with refused("causal needs a fit: causal(fit=FILE), a file that ranktilt mitigate writes"):
        Causal().check()
    with refused("causal: expected a strength from 0 to 1, got 1.5"):
        Causal(fit=file, strength=1.5)
    with refused("causal is fitted on sources and on no other column, got by=gender"):
        Causal(fit=file, by="gender")
    with pytest.raises(DataError, match="expected a fit of the causal correction"):
        Causal(fit=str(BM25(k=3).rank(texts).save(tmp_path / "run").with_name("run.json"))).check()
