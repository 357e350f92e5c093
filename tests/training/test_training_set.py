"""What is learned from: BM25's relevant documents, and negatives that are no version of a relevant one."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ranktilt as rt
from ranktilt.collection import Collection
from ranktilt.errors import UserError
from ranktilt.training.options import RerankerTraining
from ranktilt.training.training_set import reranker_set
from tests.refusals import refused
from tests.toy import Row, Table, collection_of, toy
from tests.training.material import WORDS, marked


def learned(collection: Collection, **options: object) -> dict[str, tuple[set[str], set[str]]]:
    """Texts of positives and negatives by text of the query."""
    found = reranker_set(collection, RerankerTraining(**options))  # type: ignore[arg-type]
    return {
        query: ({found.texts[i] for i in positives}, {found.texts[i] for i in np.concatenate(negatives)})
        for query, positives, negatives in zip(found.queries, found.positives, found.negatives, strict=True)
    }


def apples(*more: Row, qrels: Table | None = None) -> Collection:
    """One query; one relevant document, one that shares a word with it, one that shares none, and more."""
    docs = [
        {"id": "good", "text": "red apples"},
        {"id": "bad", "text": "red cars"},
        {"id": "far", "text": "blue sky"},
        *more,
    ]
    return collection_of(docs, {"q": "red apples"}, qrels or {"q": {"good": 1}})


def test_relevant_documents_are_learned_against_what_bm25_finds() -> None:
    assert learned(apples()) == {"red apples": ({"red apples"}, {"red cars"})}


def test_a_document_judged_not_relevant_is_a_negative() -> None:
    qrels = {"q": {"good": 2, "bad": 0}}
    assert learned(apples(qrels=qrels)) == {"red apples": ({"red apples"}, {"red cars"})}
    qrels = {"q": {"good": 2, "bad": -1}}
    assert learned(apples(qrels=qrels)) == {"red apples": ({"red apples"}, {"red cars"})}


def test_a_relevant_document_that_bm25_does_not_find_is_not_learned() -> None:
    qrels = {"q": {"good": 1, "far": 1}}
    assert learned(apples(qrels=qrels)) == {"red apples": ({"red apples"}, {"red cars"})}


def test_all_that_is_relevant_is_learned_when_asked_for() -> None:
    qrels = {"q": {"good": 1, "far": 1}}
    assert learned(apples(qrels=qrels), positives="all") == {"red apples": ({"red apples", "blue sky"}, {"red cars"})}
    found, every = (reranker_set(apples(qrels=qrels), RerankerTraining(positives=kind)) for kind in (None, "all"))
    assert (found.skipped_positives, every.skipped_positives) == (1, 0)


def test_random_negatives_are_any_documents_that_are_not_relevant() -> None:
    version = {"id": "good-llm", "text": "apples that are red", "source": "llm", "origin": "good"}
    more = (
        version,
        {"id": "copy", "text": "red apples"},
        {"id": "q", "text": "what is asked"},
        {"id": "x", "text": "x"},
    )
    given = {"negatives": "random:3", "negatives_per_positive": 2}
    assert learned(apples(*more), **given) == {"red apples": ({"red apples"}, {"red cars", "blue sky", "x"})}
    with refused(
        "training: negatives=random:4 asks for more documents than there are: 3 of 7 are not relevant to query 'q'"
    ):
        learned(apples(*more), **{**given, "negatives": "random:4"})


def test_each_positive_has_random_negatives_of_its_own() -> None:
    given = RerankerTraining(negatives="random:40", seed=5)
    first, again, other = (reranker_set(marked(), replace(given, seed=seed)) for seed in (5, 5, 6))
    pools = [[pool.tolist() for pools in found.negatives for pool in pools] for found in (first, again, other)]
    assert pools[0] == pools[1] != pools[2]
    assert len(pools[0]) == 2 * len(WORDS)
    assert all(len(set(pool)) == 40 for pool in pools[0])
    assert len({tuple(pool) for pool in pools[0]}) == len(pools[0])
    for query, negatives in zip(first.queries, first.negatives, strict=True):
        texts = {first.texts[row] for pool in negatives for row in pool}
        assert not any(text.startswith(f"{query} zz") for text in texts)
    drawn = np.bincount([row for pool in pools[0] for row in pool], minlength=240)
    assert drawn.min() > 0  # 1,600 draws reach every one of 240 documents


def test_no_copy_of_a_relevant_document_is_a_negative() -> None:
    assert learned(apples({"id": "copy", "text": "red apples"})) == {"red apples": ({"red apples"}, {"red cars"})}


def test_titles_are_read_with_texts_unless_asked_otherwise() -> None:
    titled = apples({"id": "titled", "title": "Red", "text": "barn"})
    assert learned(titled)["red apples"][1] == {"red cars", "Red barn"}
    assert learned(titled, text="text")["red apples"][1] == {"red cars"}


def test_depth_cuts_what_is_learned_from() -> None:
    many = apples(*({"id": f"m{i}", "text": f"red {'thing ' * i}"} for i in range(1, 9)))
    assert len(learned(many)["red apples"][1]) == 9
    assert len(learned(many, negatives="bm25:4")["red apples"][1]) == 3


def test_queries_without_a_positive_or_a_negative_are_counted_and_left_out() -> None:
    docs = [{"id": name, "text": name} for name in ("red apples", "red cars", "old clock", "sea")]
    queries = {"q1": "red apples", "q2": "old clock", "q3": "boats"}
    qrels = {"q1": {"red apples": 1}, "q2": {"old clock": 1}, "q3": {"sea": 1}}
    found = reranker_set(collection_of(docs, queries, qrels), RerankerTraining())
    assert found.queries == ["red apples"]
    assert found.skipped == 2


def test_only_the_documents_of_the_sources_are_learned_from() -> None:
    both = marked()
    assert {text[-1] for text in reranker_set(both, RerankerTraining(sources=("human",))).texts} == {"h"}
    for positives, negatives in learned(both, sources=["human"]).values():
        assert len(positives) == 2
        assert len(negatives) == 4
    # Nobody judged the other side, but its versions of relevant documents are no negatives.
    with pytest.raises(UserError, match="no document of source 'llm' is judged relevant"):
        reranker_set(both, RerankerTraining(sources=("llm",)))


def test_versions_of_other_sources_count_when_a_source_is_chosen() -> None:
    bare = {"red apples": ("h-good", "human", "h-good"), "apples in red": ("l-good", "llm", "h-good")}
    rest = {"red apples too": ("l-judged", "llm", "l-judged"), "red cars": ("l-bad", "llm", "l-bad")}
    docs = [{"id": i, "text": t, "source": s, "origin": o} for t, (i, s, o) in {**bare, **rest}.items()]
    both = collection_of(docs, {"q": "red apples"}, {"q": {"h-good": 1, "l-judged": 1}})
    assert learned(both, sources=["llm"]) == {"red apples": ({"red apples too"}, {"red cars"})}


@settings(max_examples=40)
@given(grades=st.lists(st.integers(-1, 2), min_size=12, max_size=12), data=st.data())
def test_a_negative_is_never_relevant_nor_a_version_of_what_is(grades: list[int], data: st.DataObject) -> None:
    sources = data.draw(st.sampled_from([None, ["human"], ["llm"], ["human", "llm"]]))
    base = marked()
    judged = data.draw(st.permutations([d for d in base.ids if d.startswith("wab")]))
    qrels = {"q-wab": dict(zip(judged, grades, strict=True)), "q-wba": {"wba0-human": 1, "wba0-llm": 1}}
    docs = base.docs.to_dicts()
    mixed = collection_of(docs, dict(base.queries.iter_rows()), qrels)
    of_text = {text: (name, origin) for name, text, origin in mixed.docs.select("id", "text", "origin").iter_rows()}
    origins = {of_text[text][1] for text in of_text if qrels["q-wab"].get(of_text[text][0], 0) > 0}
    positives, negatives = learned(mixed, sources=sources).get("wab", (set(), set()))
    assert all(qrels["q-wab"][of_text[text][0]] > 0 for text in positives)
    assert not {of_text[text][1] for text in negatives} & origins
    wanted = {d["source"] for d in docs} if sources is None else set(sources)
    assert {d["source"] for d in docs if d["text"] in positives | negatives} <= wanted


@pytest.mark.parametrize(
    ("collection", "options", "message"),
    [
        (toy(), {"sources": ("hunan",)}, "unknown source 'hunan'; did you mean 'human'? (valid: human, llm)"),
        (
            apples(qrels={"q": {"bad": 0}}), {},
            "the collection: no document is judged relevant; there is nothing to learn",
        ),
        (
            apples(qrels={"q": {"far": 1}}), {},
            "the collection: no relevant document beside others among BM25's best 100; there is nothing to learn",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_learned_from_is_refused(collection: Collection, options: Any, message: str) -> None:
    with refused(message):
        reranker_set(collection, RerankerTraining(**options))


def test_judgments_of_what_is_not_there_do_not_count() -> None:
    assert learned(apples(qrels={"q": {"good": 1, "gone": 1}, "lost": {"bad": 1}})).keys() == {"red apples"}


def test_queries_that_are_documents_do_not_learn_from_themselves() -> None:
    docs = [{"id": f"d{i}", "text": f"red {word}"} for i, word in enumerate(("apples", "cars", "barns"))]
    collection = collection_of(docs, {"d0": "red apples"}, {"d0": {"d1": 1}})
    assert learned(collection) == {"red apples": ({"red cars"}, {"red barns"})}
    assert rt.ranker("bm25").rank(collection).docs.tolist() == [1, 2]


def test_limits_are_drawn_by_the_seed_and_leave_no_false_negatives() -> None:
    first, again, other = (
        reranker_set(marked(), RerankerTraining(sources=("human",), limits=(("human", 9),), seed=seed))
        for seed in (1, 1, 2)
    )
    assert sum(map(len, first.positives)) == 9
    chosen = [{int(d) for rows in found.positives for d in rows} for found in (first, again, other)]
    assert chosen[0] == chosen[1] != chosen[2]
    assert not any("zz" in first.texts[d] for pools in first.negatives for pool in pools for d in pool)
