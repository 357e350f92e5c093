"""Factors of designed versions: what each does to being cited, and cited first."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from ranktilt.citing.experiment.factors import citation_factor_effects, session_factor_effects
from ranktilt.citing.making.contexts import build_contexts
from ranktilt.citing.making.make import make_answers
from ranktilt.citing.making.save import save_answers
from ranktilt.citing.making.session import AnswerSession
from ranktilt.citing.making.settings import AnswerMaking
from ranktilt.data.answers import Answers
from ranktilt.data.collection import Collection
from ranktilt.data.formats.citations.answer_file import read_answers
from ranktilt.data.runs.run import Run
from ranktilt.errors import UserError
from ranktilt.explaining.factors.result import FactorEffect, FactorEffects
from ranktilt.generation.versions.make import versions
from ranktilt.llm.journal import Journal
from ranktilt.reporting.sentences.explaining.factors import factor_sentences, meaning_sentence
from ranktilt.reporting.views.explain.factors import view
from tests.citing.planted import Chance, Document, PlantedModel, fair
from tests.toy import collection_of, run_of, toy

QUERIES, DOCUMENTS, DEPTH = 24, 30, 6
PAGE_TYPES = {
    "answer": pl.Int64,
    "page": pl.String,
    "citation_rank": pl.Int64,
    "is_consulted": pl.Boolean,
    "retrieval_rank": pl.Int64,
    "cited_words": pl.Float64,
}
LEVELS = [("low", "low"), ("high", "low"), ("low", "high"), ("high", "high")]


def answer_versions(*, is_judged: bool = False) -> Collection:
    """Return documents whose second sentence answers, moved to the beginning and halved or not."""
    docs, queries, qrels = [], {}, {}
    for number in range(DOCUMENTS):
        text = f"Rest is good. Metal{number} cures all. Some drink tea. Then they sleep."
        docs.append({"id": f"d{number}", "text": text, "source": "human", "origin": f"d{number}"})
    for number in range(QUERIES):
        queries[f"q{number}"] = f"metal{number}"
        qrels[f"q{number}"] = {f"d{number}": 1}
    collection = collection_of(docs, queries, qrels)
    designed = versions(collection, ["position:beginning", "length"], by_rule=True).collection
    # Documents that answer no query keep their texts, and their levels say nothing.
    no_judgments = designed.qrels.head(0)
    qrels_of_versions = designed.qrels if is_judged else no_judgments
    spec = {**designed.spec, "design": {**designed.spec["design"], "failed": []}}
    return Collection(designed.docs, designed.queries, qrels_of_versions, spec)


def run_of_originals(collection: Collection) -> Run:
    """Return a run that ranks the document that answers, and five others, as they are."""
    rng = np.random.default_rng(0)
    scores = {}
    for number in range(QUERIES):
        rest = rng.permutation([index for index in range(DOCUMENTS) if index != number])
        names = [f"d{number}", *(f"d{index}" for index in rest[: DEPTH - 1])]
        scores[f"q{number}"] = {name: float(DEPTH - n) for n, name in enumerate(names)}
    return run_of(collection, scores)


def fond_of_short(document: Document) -> float:
    """Cite halved texts more often."""
    return 0.75 if "sleep" not in document.text else 0.25


def session_of(
    chance: Chance, folder: Path, *, repeats: int, is_judged: bool = False
) -> AnswerSession:
    """Let a planted model answer from drawn versions."""
    collection = answer_versions(is_judged=is_judged)
    return make_answers(
        collection,
        PlantedModel(chance),
        run_of_originals(collection),
        AnswerMaking(draws_versions=True, context=DEPTH, repeats=repeats),
        journal=Journal(folder / "journal"),
    )


def effect_of(effects: FactorEffects, estimand: str, name: str) -> FactorEffect:
    """Return one effect."""
    (row,) = [row for row in effects.of(estimand) if row.effect == name]
    return row


def test_each_context_holds_one_version_of_each_document_and_repeats_go_round() -> None:
    collection = answer_versions()
    making = AnswerMaking(draws_versions=True, context=4, repeats=8)
    contexts = build_contexts(collection, run_of_originals(collection), making).contexts
    assert len(contexts) == QUERIES * 8
    origins = collection.docs["origin"]
    for context in contexts:
        assert len(set(origins.gather(list(context.rows)))) == 4
    repeats_by_row = Counter(
        row for context in contexts if context.query == "q3" for row in context.rows
    )
    assert len(repeats_by_row) == 16
    assert set(repeats_by_row.values()) == {2}
    again = build_contexts(collection, run_of_originals(collection), making).contexts
    assert again == contexts
    making = AnswerMaking(draws_versions=True, context=4, repeats=8, order_seed=1)
    assert build_contexts(collection, run_of_originals(collection), making).contexts != contexts


@pytest.mark.parametrize("repeats", [1, 4])
def test_planted_factor_is_found_and_the_other_is_not(tmp_path: Path, repeats: int) -> None:
    effects = session_factor_effects(session_of(fond_of_short, tmp_path, repeats=repeats))
    assert effects.estimands == ("cited", "cited first")
    length = effect_of(effects, "cited", "length")
    assert length.low < 50 < length.high
    assert length.is_shown
    assert not effect_of(effects, "cited", "position").is_shown
    first = effect_of(effects, "cited first", "length")
    assert 0 < first.value < length.value
    # What an answer cites first is one of its documents: the mean is at most 1 / 6.
    assert effect_of(effects, "cited first", "position").error < length.value


def test_fair_model_shows_no_factor(tmp_path: Path) -> None:
    effects = session_factor_effects(session_of(fair, tmp_path, repeats=4))
    assert not any(row.is_shown for row in effects.rows)
    assert "no effect of" in effects.headline


def test_only_relevant_documents_count_where_documents_are_judged(tmp_path: Path) -> None:
    effects = session_factor_effects(session_of(fair, tmp_path, repeats=4, is_judged=True))
    row = effect_of(effects, "cited", "position")
    assert (row.queries, row.origins, row.versions) == (QUERIES, QUERIES, QUERIES * 4)


def test_effects_are_means_by_hand() -> None:
    """Two documents under two queries, each read in both versions, by one factor."""
    rows = [
        {"id": name, "text": "t", "source": "human", "origin": name[:2], "factor:tone": level}
        for name, level in (("d1", "low"), ("d1+tone", "high"), ("d2", "low"), ("d2+tone", "high"))
    ]
    collection = collection_of(rows, {"q1": "a", "q2": "b"}, {})
    read = [
        ("q1", "1", ["d1", "d2"], ["d2", "d1"]),
        ("q1", "2", ["d1+tone", "d2+tone"], ["d1+tone"]),
        ("q2", "1", ["d1+tone", "d2+tone"], ["d1+tone"]),
        ("q2", "2", ["d1", "d2"], []),
    ]
    pages = []
    for number, (_query, _repeat, consulted, cited) in enumerate(read):
        for page in consulted:
            rank = cited.index(page) + 1 if page in cited else None
            pages.append((number, page, rank, True, None, None))
    answers = Answers(
        answers=pl.DataFrame(
            [(query, repeat, True, False) for query, repeat, *_ in read],
            schema=["query", "repeat", "has_consulted", "has_retrieved"],
            orient="row",
        ),
        pages=pl.DataFrame(
            pages,
            schema=PAGE_TYPES,
            orient="row",
        ),
        spec={"exact_urls": True},
    )
    effects = citation_factor_effects(answers, collection)
    # High: cited 2 of 4, first 2 of 4. Low: cited 2 of 4, first 1 of 4.
    assert effect_of(effects, "cited", "tone").value == pytest.approx(0.0)
    assert effect_of(effects, "cited first", "tone").value == pytest.approx(25.0)
    assert np.isnan(effect_of(effects, "cited", "tone").p), "two queries test nothing"


def test_saved_answers_say_the_same(tmp_path: Path) -> None:
    session = session_of(fond_of_short, tmp_path, repeats=4)
    save_answers(session, tmp_path / "a.jsonl")
    saved = citation_factor_effects(read_answers(tmp_path / "a.jsonl"), session.collection)
    fresh = session_factor_effects(session)
    values = [(row.estimand, row.effect, row.value, row.low) for row in fresh.rows]
    assert [(row.estimand, row.effect, row.value, row.low) for row in saved.rows] == values


def test_words_are_those_of_citations(tmp_path: Path) -> None:
    effects = session_factor_effects(session_of(fond_of_short, tmp_path, repeats=4))
    (sentence,) = factor_sentences(effects)
    assert sentence.startswith("Halving a text makes answers cite it more often, by ")
    assert " points [" in sentence
    assert "cited first: halving a text +" in sentence
    assert "rank" not in sentence
    assert "answers read the same documents with and without each change" in meaning_sentence(
        effects
    )
    document = view(effects)
    assert "rank" not in " ".join(document.legend)
    assert FactorEffects.load(effects.save(tmp_path / "e.json")) == effects


def test_answers_without_versions_are_refused(tmp_path: Path) -> None:
    collection = toy()
    run = run_of(collection, {"q1": {"d1-human": 2.0, "d2-llm": 1.0}})
    with pytest.raises(UserError, match="--by-factor needs versions by design"):
        build_contexts(collection, run, AnswerMaking(draws_versions=True))
    with pytest.raises(UserError, match="go with neither twins nor shown labels"):
        AnswerMaking(draws_versions=True, has_twins=True)
    (tmp_path / "a.jsonl").write_text('{"query_id": "q1", "cited": ["x"], "consulted": ["x"]}\n')
    with pytest.raises(UserError, match="no answer consulted a version of the collection"):
        citation_factor_effects(read_answers(tmp_path / "a.jsonl"), answer_versions())
    record = '{"query_id": "q1", "cited": ["d1"], "consulted": ["d1", "d2"]}\n'
    (tmp_path / "a.jsonl").write_text(record)
    with pytest.raises(UserError, match=r"do not tell the factors apart: ask more often"):
        citation_factor_effects(read_answers(tmp_path / "a.jsonl"), answer_versions())
    record = '{"query_id": "q1", "cited": ["d2"], "consulted": ["d2", "d3"]}\n'
    (tmp_path / "a.jsonl").write_text(record)
    with pytest.raises(UserError, match="judged relevant to its query"):
        citation_factor_effects(read_answers(tmp_path / "a.jsonl"), answer_versions(is_judged=True))


def drawn_world(rng: np.random.Generator, repeats: int, spread: float) -> FactorEffects:
    """Draw answers to 40 queries, in which a factor has an effect on no average.

    `spread` is how much its effect differs between documents, and between queries.
    """
    queries, documents, size = 40, 80, 6
    rows = [
        {"id": f"d{document}+{cell}", "origin": f"d{document}", "text": "t", "factor:a": a}
        | {"factor:b": b, "source": "human"}
        for document in range(documents)
        for cell, (a, b) in enumerate(LEVELS)
    ]
    merit, of_document = rng.normal(0, 1, documents), rng.normal(0, spread, documents)
    answers, pages = [], []
    for query in range(queries):
        read_documents = rng.choice(documents, size, replace=False)
        orders = {document: rng.permutation(len(LEVELS)) for document in read_documents}
        level, of_query = rng.normal(-0.8, 0.8), rng.normal(0, spread)
        for repeat in range(repeats):
            rank = 0
            for document in rng.permutation(read_documents):
                cell = orders[document][repeat % len(LEVELS)]
                side = 0.5 if LEVELS[cell][0] == "high" else -0.5
                logit = level + merit[document] + side * (of_document[document] + of_query)
                is_cited = rng.random() < 1 / (1 + np.exp(-logit))
                rank += is_cited
                citation_rank = int(rank) if is_cited else None
                page = (len(answers), f"d{document}+{cell}", citation_rank, True, None, None)
                pages.append(page)
            answers.append((f"q{query}", str(repeat), True, False))
    columns = ["query", "repeat", "has_consulted", "has_retrieved"]
    return citation_factor_effects(
        Answers(
            answers=pl.DataFrame(answers, schema=columns, orient="row"),
            pages=pl.DataFrame(pages, schema=PAGE_TYPES, orient="row"),
            spec={"exact_urls": True},
        ),
        collection_of(rows, {f"q{query}": "?" for query in range(queries)}, {}),
    )


@pytest.mark.long
@pytest.mark.parametrize(("repeats", "spread"), [(1, 0.0), (4, 0.0), (1, 0.8), (4, 0.8)])
def test_factors_without_an_effect_are_rarely_found(repeats: int, spread: float) -> None:
    worlds = 200
    rejections = Counter[tuple[str, str]]()
    for seed in range(worlds):
        effects = drawn_world(np.random.default_rng([seed, repeats]), repeats, spread)
        rejections.update((row.estimand, row.effect) for row in effects.rows if row.p < 0.05)
    for estimand in ("cited", "cited first"):
        for name in ("a", "b"):
            assert rejections[estimand, name] <= 0.1 * worlds, (estimand, name)
