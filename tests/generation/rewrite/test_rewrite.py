"""Rewriting: what is asked, what is kept, what is left out, and the collection that comes of it."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from ranktilt.data.collection import Collection
from ranktilt.errors import UserError
from ranktilt.generation.pooling import pool
from ranktilt.generation.rewrite.prepare import prepare_rewrites
from ranktilt.generation.rewrite.rewrite import Rewritten, rewrite
from ranktilt.generation.settings import Rewriting
from ranktilt.llm.base import Failure
from ranktilt.llm.journal import Journal
from ranktilt.rankers.lexical.bm25 import BM25
from tests.generation.scripted import GOOD, TEXTS, Scripted, good, humans, texts_of
from tests.toy import write

SOURCE = "tiny-tmp0.2"
Do = Callable[..., Rewritten]


@pytest.fixture
def do(tmp_path: Path) -> Do:
    """Rewrite with a journal of this test."""

    def run(collection: Collection, llm: Scripted, only: Any = None, **options: Any) -> Rewritten:
        return rewrite(
            collection, llm, Rewriting(**options), only=only, journal=Journal(tmp_path / "journal")
        )

    return run


def test_each_document_gets_its_rewrite_and_prompts_hold_nothing_of_queries(
    do: Do, tmp_path: Path
) -> None:
    llm = Scripted()
    rewritten = do(humans(), llm)
    assert texts_of(rewritten.collection, SOURCE) == {
        f"{name}-{SOURCE}": text for name, text in GOOD.items()
    }
    assert texts_of(rewritten.collection, "human") == {
        f"{name}-human": text for name, text in TEXTS.items()
    }
    assert sorted(llm.prompts) == sorted(
        f"Please rewrite the following text: {text}" for text in TEXTS.values()
    )
    assert {(s.temperature, s.top_p, s.max_tokens) for s in llm.samplings} == {(0.2, 1.0, None)}
    assert rewritten.left_out.height == rewritten.unanswered == 0
    columns = (
        rewritten.collection.docs.select("source", "model", "temperature", "prompt")
        .unique()
        .sort("source")
    )
    assert columns.rows() == [("human", None, None, None), (SOURCE, "lab/tiny", 0.2, "paper")]
    assert not {"cut_to", "pool"} & set(rewritten.collection.docs.columns)
    assert rewritten.spec["llm"] == {"llm": "scripted lab/tiny", "model": "lab/tiny"}
    assert rewritten.spec["prompt"] == {
        "name": "paper",
        "text": "Please rewrite the following text: {text}",
    }
    assert (rewritten.spec["sources"], rewritten.spec["top_p"], rewritten.spec["attempts"]) == (
        {SOURCE: 0.2},
        1.0,
        3,
    )
    assert json.loads(json.dumps(rewritten.spec)) == rewritten.spec
    llm = Scripted()
    do(humans(), llm, prompt=write(tmp_path / "both.txt", "{title} | {text}"))
    assert sorted(llm.prompts) == [f"On {name} | {text}" for name, text in TEXTS.items()]


def test_twins_share_origin_title_and_judgments_and_ids_of_a_collection_with_twins_stay(
    do: Do,
) -> None:
    rewritten = do(humans(), Scripted()).collection
    assert rewritten.pairs("human", SOURCE).rows() == [
        (f"{d}-human", f"{d}-human", f"{d}-{SOURCE}") for d in TEXTS
    ]
    titles = rewritten.docs.group_by("origin", maintain_order=True).agg(pl.col("title").unique())
    assert titles["title"].to_list() == [["On d1"], ["On d2"], ["On d3"]]
    grades = {(q, d): g for q, d, g in rewritten.qrels.iter_rows()}
    expected = {("q1", "d1"): 2, ("q2", "d2"): 1}
    assert grades == {
        (q, f"{d}-{s}"): g for (q, d), g in expected.items() for s in ("human", SOURCE)
    }
    texts = {name: f"{text} It was so." for name, text in TEXTS.items()}
    docs = humans(texts).docs.with_columns(
        pl.format("{}-human", "id").alias("id"), origin=pl.format("{}-human", "id")
    )
    twins = pl.concat(
        [docs, docs.with_columns(id=pl.Series(["d1-x", "d2-x", "d3-x"]), source=pl.lit("x"))]
    )
    collection = Collection(twins, humans().queries, humans().qrels.clear())
    rewritten = do(collection, Scripted()).collection
    names = [f"{d}-{s}" for s in ("human", "x", SOURCE) for d in TEXTS]
    assert rewritten.ids.to_list() == names
    assert rewritten.docs["origin"].to_list() == [f"{d}-human" for d in TEXTS] * 3


def test_side_is_named_as_told_where_no_document_has_a_source(do: Do) -> None:
    plain = humans(source=[None] * 3)
    for settings, name in (({}, "human"), ({"of": "people"}, "people")):
        rewritten = do(plain, Scripted(), **settings)
        assert rewritten.collection.docs["source"].to_list() == [name] * 3 + [SOURCE] * 3
        assert rewritten.collection.pairs(name, SOURCE).height == 3
        assert rewritten.spec["named_source"] == {"source": name, "documents": 3}
    assert do(humans(), Scripted()).spec["named_source"] is None


def test_documents_without_a_source_stay_without_one_where_others_have_one(do: Do) -> None:
    rewritten = do(humans(source=["human", None, "human"]), Scripted()).collection
    assert dict(rewritten.docs.select("id", "source").iter_rows()) == {
        "d1-human": "human",
        "d2": None,
        "d3-human": "human",
        f"d1-{SOURCE}": SOURCE,
        f"d3-{SOURCE}": SOURCE,
    }
    with pytest.raises(
        UserError,
        match=r"^unknown source 'human' \(valid: x\); 1 document has no source; name it: ",
    ):
        do(humans(source=["x", None, "x"]), Scripted())
    assert pool(humans(source=[None] * 3), [BM25()], depth=1, of="people").spec["of"] == "people"


def test_each_temperature_makes_a_source_named_after_model_temperature_and_prompt(do: Do) -> None:
    llm = Scripted()
    rewritten = do(humans(), llm, temperatures=(0.2, 1.0))
    assert rewritten.collection.sources == ("human", SOURCE, "tiny-tmp1.0")
    assert rewritten.collection.docs.group_by("source").len()["len"].to_list() == [3, 3, 3]
    assert [s.temperature for s in llm.samplings] == [0.2] * 3 + [1.0] * 3
    summary = [(row.source, row.temperature, row.rewritten) for row in rewritten.summaries]
    assert summary == [(SOURCE, 0.2, 3), ("tiny-tmp1.0", 1.0, 3)]
    for options, name, source in (
        ({}, "models/my tiny/", "my_tiny-tmp0.2"),
        ({"temperatures": (1,)}, "tiny", "tiny-tmp1.0"),
        ({"prompt": "paraphrase"}, "tiny", "tiny-tmp0.2-paraphrase"),
        ({"source": "mine", "prompt": "polish"}, "tiny", "mine"),
    ):
        assert list(
            prepare_rewrites(humans(), Scripted(name=name), Rewriting(**options)).sources
        ) == [source]


def test_a_collection_with_rewrites_gets_more(do: Do) -> None:
    first = do(humans(), Scripted()).collection
    llm = Scripted()
    both = do(first, llm, temperatures=(1.0,)).collection
    assert texts_of(both, SOURCE) == texts_of(first, SOURCE)
    assert len(llm.prompts) == 3
    assert both.pairs(SOURCE, "tiny-tmp1.0").height == 3
    temperatures = both.docs.select("source", "temperature").unique(maintain_order=True).rows()
    assert temperatures == [("human", None), (SOURCE, 0.2), ("tiny-tmp1.0", 1.0)]
    again = do(
        first, Scripted(lambda prompt, times: TEXTS["d1"]), of=SOURCE, source="again"
    ).collection
    assert again.pairs(SOURCE, "again").height == again.pairs("human", "again").height == 3


def test_a_flagged_answer_is_asked_for_again_by_the_limits_of_the_prompt_or_others(do: Do) -> None:
    def says(prompt: str, times: int) -> str:
        return (
            "I cannot help with rewriting that."
            if times < 3 and "clocks" in prompt
            else good(prompt, 1)
        )

    llm = Scripted(says)
    rewritten = do(humans(), llm, seed=5)
    assert texts_of(rewritten.collection, SOURCE)[f"d3-{SOURCE}"] == GOOD["d3"]
    assert [
        seed for prompt, seed in zip(llm.prompts, llm.seeds, strict=True) if "clocks" in prompt
    ] == [5, 6, 7]
    assert len(llm.prompts) == 5
    assert rewritten.answers.filter(id="d3-human")["flags"].list.len().sign().to_list() == [1, 1, 0]
    assert rewritten.summaries[0].rejected == {}
    short = Scripted(lambda prompt, times: "A new spring mends them.")
    assert do(humans(), short, attempts=1).summaries[0].rewritten == 0
    assert do(humans(), short, attempts=1, prompt="summarise").summaries[0].rewritten == 3
    assert do(humans(), short, attempts=1, shortest=0.1).summaries[0].rewritten == 3


@pytest.mark.parametrize(
    ("reason", "text", "unanswered"),
    [("unanswered", "503 after 8 tries", 1), ("refused", "filtered by policy", 0)],
)
def test_what_is_not_answered_is_listed_and_asked_next_time(
    do: Do, reason: str, text: str, unanswered: int
) -> None:
    failure = Failure(kind="unavailable" if unanswered else "refused", message=text)
    rewritten = do(
        humans(),
        Scripted(lambda prompt, times: failure if "river" in prompt else good(prompt, times)),
    )
    assert rewritten.left_out.rows() == [("d2-human", SOURCE, "text", reason, [], 0, text)]
    assert rewritten.unanswered == unanswered
    llm = Scripted()
    again = do(humans(), llm)
    assert [("river" in prompt) for prompt in llm.prompts] == [True]
    assert (again.unanswered, again.summaries[0].rewritten) == (0, 3)


def fits(words: int) -> Callable[[str, int], Any]:
    """A model that takes prompts of so many words, the instruction's five not counted."""

    def says(prompt: str, times: int) -> Any:
        document = prompt.split(": ", 1)[1]
        if len(document.split()) > words:
            return Failure(kind="too long", message="the context is full")
        halves = document.rstrip(".").split(" ")
        return f"{' '.join(halves[len(halves) // 2 :])} and {' '.join(halves[: len(halves) // 2])}."

    return says


LONG = {**TEXTS, "long": " ".join(f"word{n}" for n in range(99)) + " end."}


def asked_words(llm: Scripted) -> list[int]:
    return [len(prompt.split()) - 5 for prompt in llm.prompts if "word0 " in prompt]


def test_what_is_empty_or_too_long_is_left_out_or_shortened_until_the_server_takes_it(
    do: Do,
) -> None:
    rewritten = do(humans({**LONG, "empty": "", "blank": " \n "}), Scripted(fits(40)))
    assert rewritten.left_out.select("id", "reason", "attempts", "message").rows() == [
        ("long-human", "too long", 0, "the context is full"),
        ("empty-human", "empty", 0, ""),
        ("blank-human", "empty", 0, ""),
    ]
    assert (rewritten.summaries[0].documents, rewritten.summaries[0].rewritten) == (6, 3)
    llm = Scripted(fits(9))
    rewritten = do(humans({"long": LONG["long"]}), llm, truncate=True, attempts=1)
    assert asked_words(llm) == [100, 75, 56, 42, 31, 23, 17, 12, 10]
    assert rewritten.left_out["reason"].to_list() == ["too long"]
    llm = Scripted(fits(40))
    rewritten = do(humans(LONG), llm, truncate=True)
    assert rewritten.left_out.height == 0
    assert rewritten.answers.filter(id="long-human")["flags"].to_list() == [[]], (
        "checked against what the model was given"
    )
    assert asked_words(llm) == [100, 75, 56, 42, 31]
    docs = rewritten.collection.docs.filter(source=SOURCE)
    assert docs["cut_to"].to_list() == [None, None, None, 31]
    assert (len(docs["text"][3].split()), rewritten.summaries[0].cut) == (32, 1)


def titled(prompt: str, times: int) -> str:
    """Good texts, and titles in capitals; the title of d2 is refused."""
    if prompt.startswith("Please rewrite the following title"):
        return (
            "I cannot help with rewriting that."
            if "d2" in prompt
            else prompt.split(": ")[1].upper()
        )
    return good(prompt, times)


def test_titles_are_rewritten_by_requests_of_their_own(do: Do) -> None:
    rewritten = do(humans(), Scripted(titled), titles="rewrite")
    docs = rewritten.collection.docs.filter(pl.col("source") == SOURCE)
    assert docs["title"].to_list() == ["ON D1", "ON D3"]
    assert rewritten.left_out.rows() == [
        ("d2-human", SOURCE, "title", "flagged", ["refusal"], 3, "")
    ]
    assert rewritten.answers["part"].value_counts().sort("part").rows() == [
        ("text", 3),
        ("title", 5),
    ]
    docs = do(humans(), Scripted(), titles="drop").collection.docs
    assert docs["title"].to_list() == ["On d1", "On d2", "On d3", "", "", ""]


def test_only_named_documents_are_rewritten_and_marked(do: Do) -> None:
    rewritten = do(humans(), Scripted(), only=["d3", "d1"])
    assert list(texts_of(rewritten.collection, SOURCE)) == [f"d1-{SOURCE}", f"d3-{SOURCE}"]
    marked = dict(rewritten.collection.docs.select("id", "pool").iter_rows())
    assert marked == {
        "d1-human": True,
        "d2-human": False,
        "d3-human": True,
        f"d1-{SOURCE}": True,
        f"d3-{SOURCE}": True,
    }
    assert rewritten.spec["pool"] is None
    trial = do(humans(), Scripted(), first=2).collection
    assert (list(texts_of(trial, SOURCE)), trial.docs.height) == (
        [f"d1-{SOURCE}", f"d2-{SOURCE}"],
        5,
    )
    chosen = pool(humans(), [BM25()], depth=1)
    pooled = do(humans(), Scripted(), only=chosen)
    assert len(texts_of(pooled.collection, SOURCE)) == len(chosen.ids) < 4
    assert pooled.spec["pool"] == list(chosen.sentences)


def test_sources_of_a_collection_share_the_choice_of_an_earlier_pool(do: Do) -> None:
    first = do(humans(), Scripted(), only=["d3", "d1"]).collection
    for options, names in (({"first": 1}, ["d1"]), ({}, ["d1", "d3"])):
        both = do(first, Scripted(), temperatures=(1.0,), **options).collection
        assert list(texts_of(both, "tiny-tmp1.0")) == [f"{name}-tiny-tmp1.0" for name in names]
        assert both.docs.filter(source="human")["pool"].to_list() == [True, False, True]
    llm = Scripted()
    with pytest.raises(
        UserError, match=r"^this collection's rewrites come from a pool of 2 documents, "
    ):
        do(first, llm, ["d1-human"], temperatures=(1.0,))
    assert llm.prompts == []
    assert (
        do(humans(pool=[True, False, True]), Scripted()).summaries[0].rewritten == 3
    )  # a column without rewrites


ONE_ORIGIN = humans(origin=["d1", "d1", "d3"])


@pytest.mark.parametrize(
    ("collection", "options", "only", "message"),
    [
        (
            humans(),
            {"of": "humans"},
            None,
            "unknown source 'humans'; did you mean 'human'? (valid: human)",
        ),
        (
            humans(),
            {"source": "human"},
            None,
            "source 'human' is already in this collection, and a document has one",
        ),
        (
            humans(),
            {},
            ["d9"],
            "document 'd9' is to be rewritten, but source 'human' does not have it",
        ),
        (
            ONE_ORIGIN,
            {},
            None,
            "documents 'd1' and 'd2' of source 'human' have the same origin, 'd1', so nobody could",
        ),
        (
            humans({**TEXTS, f"d1-{SOURCE}": "x"}),
            {},
            None,
            f"two documents would be called 'd1-{SOURCE}', because",
        ),
        (
            humans({"x": "a", "x-human": "b", "y": "c"}),
            {},
            ["y"],
            "two documents would be called 'x-human', because",
        ),
    ],
)
def test_no_plan_is_an_error(
    do: Do, collection: Collection, options: dict[str, Any], only: Any, message: str
) -> None:
    llm = Scripted()
    with pytest.raises(UserError, match="^" + re.escape(message)):
        do(collection, llm, only, **options)
    assert (llm.prompts, llm.checked) == ([], 0)
