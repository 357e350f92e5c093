"""Listwise, pairwise and setwise rankers ask a real server, and find what a perfect judge would."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from ranktilt import Collection, Run, ranker
from ranktilt.errors import UserError
from ranktilt.rankers.llm.listwise import borda, windows
from tests.llm.server import Server
from tests.rankers.llm.judge import Judge
from tests.toy import collection_of


def worths(count: int, queries: int = 2, seed: int = 0) -> tuple[Collection, Run]:
    """Documents that say what they are worth, and a first stage that knows nothing of it."""
    chance = random.Random(seed)
    values = chance.sample(range(10 * count), count)
    docs = [
        {"id": f"d{number}", "text": f"worth {value} of [7] things", "source": "human", "origin": f"d{number}"}
        for number, value in enumerate(values)
    ]
    names = {f"q{number}": f"question {number}" for number in range(queries)}
    collection = collection_of(docs, names, {name: {"d0": 1} for name in names})
    offsets = np.arange(queries + 1) * count
    order = np.concatenate([chance.sample(range(count), count) for _ in names])
    scores = np.tile(np.arange(count, 0, -1, dtype=np.float64), queries)
    return collection, Run(tuple(names), offsets, order, scores, collection.ids)


def texts_of(texts: dict[str, str]) -> tuple[Collection, Run]:
    """Documents with some texts, ranked for one query in their order."""
    docs = [{"id": name, "text": text, "source": "human", "origin": name} for name, text in texts.items()]
    collection = collection_of(docs, {"q": "question"}, {"q": {docs[0]["id"]: 1}})
    count = len(docs)
    scores = np.arange(count, 0, -1, dtype=np.float64)
    return collection, Run(("q",), np.array([0, count]), np.arange(count), scores, collection.ids)


def best(collection: Collection) -> list[str]:
    """Ids in the order of a perfect judge."""
    values = [int(text.split()[1]) for text in collection.docs["text"]]
    return [collection.ids[place] for place in sorted(range(len(values)), key=lambda place: -values[place])]


def ids(run: Run, query: int = 0) -> list[str]:
    """Ids of one query's documents, best first."""
    return run.ids.gather(run.docs[run.offsets[query] : run.offsets[query + 1]]).to_list()


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Callable[..., tuple[Run, Server]]]:
    """Rank with a ranker's text behind a server that a judge answers for."""
    monkeypatch.setenv("RANKTILT_CACHE", str(tmp_path / "cache"))

    def ask(text: str, candidates: tuple[Collection, Run], judge: Judge | None = None) -> tuple[Run, Server]:
        with Server(answer=judge or Judge()) as server:
            monkeypatch.setenv("OPENAI_BASE_URL", server.url)
            return ranker(text).rank(*candidates), server

    return ask


@pytest.mark.parametrize(
    ("text", "count", "sorted_to", "prompts"),
    [
        ("listwise:openai:tiny", 12, 12, 1),
        ("listwise:openai:tiny(window=6,step=3)", 17, 3, 5),
        ("listwise:openai:tiny(window=6,step=3,shuffles=3)", 6, 6, 3),
        ("pairwise:openai:tiny(method=allpairs)", 7, 7, 42),
        ("pairwise:openai:tiny(method=heapsort,top=3)", 11, 3, None),
        ("pairwise:openai:tiny(method=sliding,top=3)", 8, 3, 2 * (7 + 6 + 5)),
        ("setwise:openai:tiny(top=5)", 14, 5, None),
        ("setwise:openai:tiny(size=3,top=14)", 14, 14, None),
    ],
)
def test_a_perfect_judge_sorts_as_far_as_the_method_reaches(asked, text, count, sorted_to, prompts) -> None:
    candidates = worths(count)
    run, server = asked(text, candidates)
    for query in range(2):
        assert ids(run, query)[:sorted_to] == best(candidates[0])[:sorted_to]
        assert sorted(ids(run, query)) == sorted(candidates[0].ids)
    made = ranker(text)
    assert repr(made) == text.replace("method=heapsort,", "")
    answers = run.spec["llm_answers"]
    if prompts is not None:
        assert answers["requests"] == 2 * prompts == 2 * made.requests(count)
    assert answers["kinds"] == {"ok": answers["requests"]}
    assert answers["fresh"] == len(server.requests) <= answers["requests"] <= 2 * made.requests(count)


def test_what_a_heap_does_not_reach_stays_in_the_first_stages_order(asked) -> None:
    collection, first = worths(9)
    run, _ = asked("setwise:openai:tiny(top=2)", (collection, first))
    assert ids(run)[2:] == [name for name in ids(first) if name not in ids(run)[:2]]


def test_windows_cover_every_candidate() -> None:
    for count in (*range(60), 100, 200):
        for window in (2, 5, 20, 50):
            for step in {1, window // 2, window - 1}:
                made = list(windows(count, window, step))
                covered = {place for start, stop in made for place in range(start, stop)}
                assert covered == set(range(count if count > 1 else 0))
                assert all(0 < stop - start <= window for start, stop in made)
                assert all(later[1] > earlier[0] for earlier, later in itertools.pairwise(made))


def test_shuffled_answers_count_by_mean_place() -> None:
    rankings = np.array([[0, 1, 2, 3], [1, 0, 3, 2], [1, 2, 0, 3]])
    assert borda(rankings) == [1, 0, 2, 3], "places 1/3, 1, 2, 8/3 of the four"
    assert borda(np.array([[2, 0, 1], [0, 2, 1]])) == [2, 0, 1], "a tie goes as in the first"


def test_shuffles_outvote_a_judge_who_likes_what_stands_first_and_both_orders_tie_its_pairs(asked) -> None:
    candidates, judge = worths(6, queries=1), Judge(first=1_000)
    swayed, _ = asked("listwise:openai:tiny", candidates, judge)
    assert ids(swayed)[0] == ids(candidates[1])[0]
    steady, _ = asked("listwise:openai:tiny(shuffles=9)", candidates, judge)
    assert ids(steady)[:2] == best(candidates[0])[:2]
    pairs, _ = asked("pairwise:openai:tiny(method=allpairs)", candidates, judge)
    assert pairs.scores.tolist() == [2.5] * 6


def test_answers_without_a_ranking_are_counted_and_do_not_leave_the_first_stages_order(asked) -> None:
    candidates = worths(20, queries=30)
    run, _ = asked("listwise:openai:tiny", candidates, Judge(prose=1.0))
    answers = run.spec["llm_answers"]
    assert answers["kinds"] == {"off-format": 30}
    assert answers["unreadable"] == "20 passages have been provided."
    places = np.array([[ids(candidates[1], q).index(one) for one in ids(run, q)] for q in range(30)])
    assert abs(np.corrcoef(np.tile(np.arange(20), 30), places.ravel())[0, 1]) < 0.15


@pytest.mark.parametrize(
    ("options", "count", "message"),
    [
        (
            "max_failures=0.5",
            3,
            r"100% of 2 answers could not be read, max_failures=0.5 allows 50% \(first: '3 passages",
        ),
        ("context=450", 20, r"20 passages and the answer may take [\d,]+ tokens, more than the context of 450; show"),
    ],
)
def test_unreadable_answers_and_a_context_too_small_are_refused(asked, options: str, count: int, message: str) -> None:
    with pytest.raises(UserError, match=message):
        asked(f"listwise:openai:tiny({options})", worths(count), Judge(prose=1.0))


@pytest.mark.parametrize(
    ("typed", "printed"),
    [
        ("listwise:openai:m(preset=wang)", "listwise:openai:m(text=title,prompt=neutral,window=5,step=1)"),
        (
            "listwise:openai:m(step=3,preset=wang,window=10,prompt=sensitive,attribute=female)",
            "listwise:openai:m(text=title,prompt=sensitive,attribute=female,window=10,step=3)",
        ),
        ("pairwise:openai:m(preset=wang)", "pairwise:openai:m(text=title,prompt=pairwise-neutral)"),
    ],
)
def test_a_preset_prints_as_what_it_stands_for(typed: str, printed: str) -> None:
    assert repr(ranker(typed)) == printed
    assert ranker(printed) == ranker(typed)


def test_a_prompt_of_ones_own_is_filled_in(asked, tmp_path: Path) -> None:
    file = tmp_path / "mine.txt"
    file.write_text("As a {attribute} editor: {query}\n{items}")
    judge, candidates = Judge(), worths(3, queries=1)
    run, server = asked(f'listwise:openai:tiny(prompt="{file}",attribute=female)', candidates, judge)
    text = server.bodies[0]["messages"][0]["content"]
    assert text.startswith("As a female editor: question 0\n[1] worth ")
    assert run.spec["llm"]["prompt"] == "mine"
    assert ids(run) == best(candidates[0])


def test_the_papers_prompts_are_its_words() -> None:
    from importlib import resources

    said = resources.files("ranktilt.rankers.llm").joinpath("prompts", "sensitive.txt").read_text().strip()
    assert said == (
        "You are the search system for the {attribute} WikiProject coordinators as users; their goal is to search for "
        "relevant articles and produce a ranked list of articles needing work that editors can then consult when "
        "looking for work to do. Search Query: {query}. Rank the passages based on their relevance to the search "
        "query: {items}"
    )
