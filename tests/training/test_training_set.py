"""What is learned from, and what a training is told: its options, its folder, its clock."""

import json
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ranktilt as rt
from ranktilt.data.collection import Collection
from ranktilt.errors import DataError, UserError
from ranktilt.papers.askari.triples import triples
from ranktilt.training.options import RerankerTraining, RetrieverTraining, Schedule
from ranktilt.training.trainer import CHECKPOINTS, TrainingRun, last_checkpoint
from ranktilt.training.training_set import TrainingSet, only_sources, reranker_set, retriever_set
from tests.rankers.tiny import write_json
from tests.refusals import refused
from tests.toy import Row, Table, collection_of, toy, write
from tests.training.material import WORDS, marked


def learned(collection: Collection, **options: object) -> dict[str, tuple[set[str], set[str]]]:
    """Texts of positives and negatives by text of the query."""
    training_set = reranker_set(collection, RerankerTraining(**options))  # type: ignore[arg-type]
    return {
        query: (
            {training_set.texts[i] for i in positives},
            {training_set.texts[i] for i in np.concatenate(negatives)},
        )
        for query, positives, negatives in zip(
            training_set.queries, training_set.positives, training_set.negatives, strict=True
        )
    }


def apples(*more: Row, qrels: Table | None = None) -> Collection:
    """One query; one relevant document, one that shares a word with it, one that shares none, and
    more.
    """
    texts = {"good": "red apples", "bad": "red cars", "far": "blue sky"}
    docs = [*({"id": name, "text": text} for name, text in texts.items()), *more]
    return collection_of(docs, {"q": "red apples"}, qrels or {"q": {"good": 1}})


COPY = {"id": "copy", "text": "red apples"}
TITLED = {"id": "titled", "title": "Red", "text": "barn"}


def test_relevant_documents_are_learned_against_others_that_bm25_finds() -> None:
    for more, grades, options, positives, negatives in (
        ([], {"good": 1}, {}, {"red apples"}, {"red cars"}),
        ([], {"good": 2, "bad": 0, "far": -1}, {}, {"red apples"}, {"red cars"}),
        (
            [],
            {"good": 1, "far": 1},
            {},
            {"red apples"},
            {"red cars"},
        ),  # BM25 does not find the other one
        ([], {"good": 1, "far": 1}, {"positives": "all"}, {"red apples", "blue sky"}, {"red cars"}),
        ([], {"good": 1, "gone": 1}, {}, {"red apples"}, {"red cars"}),
        ([COPY], {"good": 1}, {}, {"red apples"}, {"red cars"}),
        ([TITLED], {"good": 1}, {}, {"red apples"}, {"red cars", "Red barn"}),
        ([TITLED], {"good": 1}, {"text": "text"}, {"red apples"}, {"red cars"}),
    ):
        collection = apples(*more, qrels={"q": grades, "lost": {"bad": 1}})
        assert learned(collection, **options) == {"red apples": (positives, negatives)}


def test_random_negatives_are_irrelevant_and_queries_without_left_out() -> None:
    version = {"id": "good-llm", "text": "apples that are red", "source": "llm", "origin": "good"}
    more = (version, COPY, {"id": "q", "text": "what is asked"}, {"id": "x", "text": "x"})
    random = {"negatives": "random:3", "negatives_per_positive": 2}
    assert learned(apples(*more), **random) == {
        "red apples": ({"red apples"}, {"red cars", "blue sky", "x"})
    }
    with pytest.raises(UserError, match="than there are: 3 of 7 are not relevant to query 'q'"):
        learned(apples(*more), **{**random, "negatives": "random:4"})
    docs = [
        {"id": name, "text": name} for name in ("red apples", "red cars", "red", "old clock", "sea")
    ]
    queries = {"q1": "red apples", "q2": "old clock", "q3": "boats"}
    qrels = {"q1": {"red apples": 1}, "q2": {"old clock": 1}, "q3": {"sea": 1}}
    collection = collection_of(docs, queries, qrels)
    training_set = reranker_set(collection, RerankerTraining())
    assert (training_set.queries, training_set.skipped_queries, training_set.skipped_positives) == (
        ["red apples"],
        2,
        2,
    )
    assert learned(collection) == {"red apples": ({"red apples"}, {"red cars", "red"})}
    assert learned(collection, negatives="bm25:2") == {"red apples": ({"red apples"}, {"red"})}


def test_positives_have_own_negatives_and_limits_follow_seed() -> None:
    options = RerankerTraining(negatives="random:40")
    first, again, reseeded = (
        reranker_set(marked(), replace(options, seed=seed)) for seed in (5, 5, 6)
    )
    pools = [
        [pool.tolist() for pools in training_set.negatives for pool in pools]
        for training_set in (first, again, reseeded)
    ]
    assert pools[0] == pools[1] != pools[2]
    assert len({tuple(pool) for pool in pools[0]}) == len(pools[0]) == 2 * len(WORDS)
    assert all(len(set(pool)) == 40 for pool in pools[0])
    for query, negatives in zip(first.queries, first.negatives, strict=True):
        assert not any(
            first.texts[row].startswith(f"{query} zz") for pool in negatives for row in pool
        )
    drawn = np.bincount([row for pool in pools[0] for row in pool], minlength=240)
    assert drawn.min() > 0  # 1,600 draws reach every one of 240 documents
    options = RerankerTraining(sources=("human",), limits=(("human", 9),))
    first, again, reseeded = (
        reranker_set(marked(), replace(options, seed=seed)) for seed in (1, 1, 2)
    )
    assert sum(map(len, first.positives)) == 9
    chosen = [
        {int(d) for rows in training_set.positives for d in rows}
        for training_set in (first, again, reseeded)
    ]
    assert chosen[0] == chosen[1] != chosen[2]
    assert not any(
        "zz" in first.texts[d] for pools in first.negatives for pool in pools for d in pool
    )


def test_other_sources_count_and_queries_never_learn_from_themselves() -> None:
    bare = {
        "red apples": ("h-good", "human", "h-good"),
        "apples in red": ("l-good", "llm", "h-good"),
    }
    rest = {
        "red apples too": ("l-judged", "llm", "l-judged"),
        "red cars": ("l-bad", "llm", "l-bad"),
    }
    docs = [
        {"id": i, "text": t, "source": s, "origin": o} for t, (i, s, o) in {**bare, **rest}.items()
    ]
    both = collection_of(docs, {"q": "red apples"}, {"q": {"h-good": 1, "l-judged": 1}})
    assert learned(both, sources=["llm"]) == {"red apples": ({"red apples too"}, {"red cars"})}
    docs = [
        {"id": f"d{i}", "text": f"red {word}"} for i, word in enumerate(("apples", "cars", "barns"))
    ]
    collection = collection_of(docs, {"d0": "red apples"}, {"d0": {"d1": 1}})
    assert learned(collection) == {"red apples": ({"red cars"}, {"red barns"})}
    assert rt.ranker("bm25").rank(collection).docs.tolist() == [1, 2]


@settings(max_examples=15)
@given(grades=st.lists(st.integers(-1, 2), min_size=12, max_size=12), data=st.data())
def test_a_negative_is_never_relevant_nor_a_version_of_what_is(
    grades: list[int], data: st.DataObject
) -> None:
    sources = data.draw(st.sampled_from([None, ["human"], ["llm"], ["human", "llm"]]))
    base = marked()
    judged = data.draw(st.permutations([d for d in base.ids if d.startswith("wab")]))
    qrels = {
        "q-wab": dict(zip(judged, grades, strict=True)),
        "q-wba": {"wba0-human": 1, "wba0-llm": 1},
    }
    docs = base.docs.to_dicts()
    mixed = collection_of(docs, dict(base.queries.iter_rows()), qrels)
    relevant = {doc["text"] for doc in docs if qrels["q-wab"].get(doc["id"], 0) > 0}
    origin = {doc["text"]: doc["origin"] for doc in docs}
    positives, negatives = learned(mixed, sources=sources).get("wab", (set(), set()))
    assert positives <= relevant
    assert not {origin[text] for text in negatives} & {origin[text] for text in relevant}
    allowed = {doc["source"] for doc in docs} if sources is None else set(sources)
    assert {doc["source"] for doc in docs if doc["text"] in positives | negatives} <= allowed


@pytest.mark.parametrize(
    ("collection", "options", "message"),
    [
        (
            toy(),
            {"sources": ("hunan",)},
            "unknown source 'hunan'; did you mean 'human'? (valid: human, llm)",
        ),
        (
            marked(),
            {"sources": ("llm",)},
            "the collection: no document of source 'llm' is judged relevant; there is",
        ),
        (
            apples(qrels={"q": {"bad": 0}}),
            {},
            "the collection: no document is judged relevant; there is nothing",
        ),
        (
            apples(qrels={"q": {"far": 1}}),
            {},
            "the collection: no query has relevant documents and others among BM25's best ",
        ),
    ],
)
def test_what_cannot_be_learned_from_is_refused(
    collection: Collection, options: Any, message: str
) -> None:
    with pytest.raises(UserError, match="^" + re.escape(message)):
        reranker_set(collection, RerankerTraining(**options))


DOCS = [
    {"id": "a", "text": "apple", "source": "human", "origin": "a"},
    {"id": "b", "text": "pear", "source": "human", "origin": "b"},
    {"id": "c", "text": "plum", "source": "human", "origin": "c"},
    {"id": "copy", "text": "apple", "source": "human", "origin": "copy"},
    {"id": "a-llm", "text": "an apple", "source": "llm", "origin": "a"},
    {"id": "c-llm", "text": "a plum", "source": "llm", "origin": "c"},
    {"id": "a-two", "text": "apples", "source": "two", "origin": "a"},
]
QUERIES = {"q": "fruit", "r": "pome", "s": "stone", "t": "nothing"}
QRELS = {"q": {"a": 1, "b": 2}, "r": {"c": 1, "b": 0}, "s": {"a-llm": 1}}


def fruit(
    docs: list[dict[str, str]] = DOCS, qrels: dict[str, dict[str, int]] = QRELS
) -> Collection:
    return collection_of(docs, QUERIES, qrels)


def fruit_set(**options: object) -> TrainingSet:
    return retriever_set(fruit(), RetrieverTraining(**options))  # type: ignore[arg-type]


def test_first_source_is_learned_and_copies_barred_with_known_twins() -> None:
    training_set = fruit_set()
    assert training_set.subset.docs["id"].to_list() == ["a", "b", "c", "copy"]
    assert training_set.queries == ["fruit", "pome"]
    assert [rows.tolist() for rows in training_set.positives] == [[0, 1], [2]]
    assert training_set.skipped_queries == 1  # what is relevant to s is no human text
    assert [rows.tolist() for rows in fruit_set().barred] == [[0, 1, 3], [2]]
    judged_elsewhere = fruit(qrels={"q": {"b": 1, "a-llm": 1}})
    assert [
        rows.tolist() for rows in retriever_set(judged_elsewhere, RetrieverTraining()).barred
    ] == [[0, 1]]
    for options, source, twins, paired in (
        ({}, "llm", ["an apple", "pear", "a plum", "apple"], 2),
        ({"twins": "two"}, "two", ["apples", "pear", "plum", "apple"], 1),
    ):
        training_set = fruit_set(**options)
        assert (training_set.twin_source, training_set.twin_count) == (source, paired)
        assert [training_set.texts[row] for row in training_set.twins] == twins
    collection = fruit()
    first = retriever_set(collection, RetrieverTraining())
    assert retriever_set(collection, RetrieverTraining(alpha=0.5, seed=3)) is first
    assert retriever_set(collection, RetrieverTraining(text="text")) is not first


def test_missing_twin_is_refused_under_constraint_and_twins_cross_sources() -> None:
    human = [doc for doc in DOCS if doc["source"] == "human"]
    alone, unrelated = fruit(human), fruit([*human, DOCS[5]], {"q": {"b": 1}})
    assert (retriever_set(alone, RetrieverTraining()).twins == np.arange(4)).all()
    for collection, options in ((alone, {"alpha": 0.1}), (unrelated, {"variant": "code"})):
        with pytest.raises(
            UserError, match="no relevant document to learn from has a twin, and the constr"
        ):
            retriever_set(collection, RetrieverTraining(**options))  # type: ignore[arg-type]
    with refused("training: 'human' is trained on, so it cannot hold the twins too"):
        fruit_set(twins="human")
    with pytest.raises(UserError, match=r"^unknown source 'thre'"):
        fruit_set(twins="thre")


FRUIT = collection_of(
    [
        {"id": "a", "title": "T", "text": "red\tapples"},
        {"id": "b", "title": "T", "text": "old clock"},
        {"id": "c", "title": "T", "text": "sea"},
    ],
    {"q1": "fruit", "q2": "time"},
    {"q1": {"a": 1, "c": 0}, "q2": {"b": 2, "a": 1}},
)


def by_query(path: Path) -> dict[str, list[tuple[str, list[str]]]]:
    """Positives of each query, each with what it is learned against."""
    training_set = reranker_set(FRUIT, RerankerTraining(triples=str(path), text="text"))
    assert (training_set.skipped_queries, training_set.skipped_positives) == (
        2 - len(training_set.queries),
        3 - sum(map(len, training_set.positives)),
    )
    return {
        query: [
            (training_set.texts[good], [training_set.texts[row] for row in pool])
            for good, pool in zip(positives, negatives, strict=True)
        ]
        for query, positives, negatives in zip(
            training_set.queries, training_set.positives, training_set.negatives, strict=True
        )
    }


def test_lines_are_gathered_by_positive_and_read_back_as_written(
    tmp_path: Path,
) -> None:
    for name in ("t.tsv", "t.tsv.gz"):
        file = write(tmp_path / name, "q1\ta\tb\nq1\ta\tc\n\nq2\tb\tc")
        expected = {
            "fruit": [("red\tapples", ["old clock", "sea"])],
            "time": [("old clock", ["sea"])],
        }
        assert by_query(file) == expected
        assert by_query(write(tmp_path / name, "q2\tb\tc\n")) == {"time": expected["time"]}
    human = only_sources(marked(), ["human"])
    file = write(tmp_path / "t.tsv", b"".join(triples(human, 7)))
    training_set = reranker_set(marked(), RerankerTraining(triples=str(file), sources=("human",)))
    assert (len(training_set.queries), training_set.skipped_positives) == (len(WORDS), 0)
    assert {len(pool) for pools in training_set.negatives for pool in pools} == {7}
    texts = dict(marked().docs.select("id", "text").iter_rows())
    written = [texts[line.split("\t")[2]] for line in file.read_text().splitlines()]
    assert [
        training_set.texts[row]
        for pools in training_set.negatives
        for pool in pools
        for row in pool
    ] == written


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "q1\ta\n",
            ":1: expected query, positive and negative (3 tab-separated fields), got 'q1\\ta'",
        ),
        (
            "q1\ta\tb\nq9\ta\tb\n",
            ":2: the collection has no query 'q9'; are these the triples of another collection?",
        ),
        (
            "q1\ta\tb\nq1\ta\tz\n",
            ":2: the collection has no document to learn from 'z'; are these the triples of",
        ),
        (
            "q1\tx\tb\n",
            ":1: the collection has no document to learn from 'x'; are these the triples of "
            "another",
        ),
        (
            "q1\ta\tb\n\nq1\tc\tb\n",
            ":3: document 'c' is not judged relevant to query 'q1' in the collection",
        ),
        ("\n\n", ": the file is empty"),
    ],
)
def test_what_is_no_triple_of_the_collection_is_refused(
    tmp_path: Path, text: str, message: str
) -> None:
    path = write(tmp_path / "t.tsv", text)
    with pytest.raises(DataError, match="^" + re.escape(f"{path}{message}")):
        by_query(path)


SPEC = {"kind": "toy", "steps": 5, "sources": ("human",)}


@pytest.fixture
def run(tmp_path: Path) -> TrainingRun:
    return TrainingRun(
        label="train toy",
        folder=tmp_path / "model",
        options=Schedule(),
        spec=SPEC,
        started_at=0.0,
    )


@pytest.mark.parametrize(
    ("figures", "holder"), [({}, "an unfinished training"), ({"steps": 5}, "a model trained")]
)
def test_the_same_training_is_known_another_refused(
    run: TrainingRun, figures: dict[str, int], holder: str
) -> None:
    write_json(
        run.folder / "training.json", {"spec": SPEC, **({"figures": figures} if figures else {})}
    )
    trained = run.finished
    assert (trained.resumed if trained else None) == figures.get("steps")
    with refused(
        f"{run.folder}: holds {holder} with steps 5, not 6; name another folder, or remove this one"
    ):
        _ = replace(run, spec={**SPEC, "steps": 6}).finished
    with pytest.raises(UserError, match=r"with sources \['human'\], not None \(and seed\); name"):
        _ = replace(run, spec={**SPEC, "sources": None, "seed": 1}).finished


def test_other_folders_are_refused_and_a_cut_short_checkpoint_passed_over(
    run: TrainingRun, tmp_path: Path
) -> None:
    assert run.finished is None
    assert not run.folder.exists()
    record, letters = write(run.folder / "training.json", "{"), run.folder / "letters.txt"
    with pytest.raises(UserError, match=r"training\.json: expected .* as JSON"):
        _ = replace(run).finished
    record.rename(letters)
    with refused(f"{run.folder}: holds files of something else; name a new folder"):
        _ = replace(run).finished
    with refused(f"{letters}: expected a folder to write to, this is a file"):
        _ = replace(run, folder=letters).finished
    assert last_checkpoint(tmp_path) is None
    folder = tmp_path / CHECKPOINTS
    for step, state in ((9, '{"global_step": 9}'), (10, '{"global_step": 10}'), (11, '{"glo')):
        write(folder / f"checkpoint-{step}" / "trainer_state.json", state)
    (folder / "checkpoint-12").mkdir()
    assert last_checkpoint(tmp_path) == folder / "checkpoint-10"
    assert {path.name for path in folder.iterdir()} == {"checkpoint-9", "checkpoint-10"}


@pytest.mark.neural
def test_the_clock_rules_a_training_by_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("transformers")
    from ranktilt.training import callbacks

    times = iter((100.0, 100.0, 100.0, 106.0, 160.0, 210.0, 214.0))
    monkeypatch.setattr(callbacks, "time", SimpleNamespace(monotonic=lambda: next(times)))
    clock = callbacks.Clock("train toy", minutes=2, rate=1.0, spent=6)
    group = {"lr": 0.0}
    state = SimpleNamespace(global_step=0, max_steps=9)
    optimizer = SimpleNamespace(param_groups=[group])
    rates, saved, stopped = [], [], []
    clock.on_train_begin(None, state, None)
    for _ in range(5):
        control = SimpleNamespace(should_save=False, should_training_stop=False)
        clock.on_step_end(None, state, control)
        clock.on_step_begin(None, state, control, optimizer=optimizer)
        rates.append(group["lr"])
        saved.append(control.should_save)
        stopped.append(control.should_training_stop)
    assert rates == pytest.approx(
        [0.5, 1.0, 0.5, 0.0370, 0.0], abs=1e-3
    )  # 12 of 120 s up, the others down
    assert (saved, stopped) == ([False, False, True, False, False], [False] * 4 + [True])
    assert json.loads(json.dumps(clock.state()))["args"]["spent"] == 120
    with refused("train toy: the loss is NaN or infinite at step 0; choose a lower rate than 1"):
        clock.on_log(SimpleNamespace(learning_rate=1.0), state, None, logs={"loss": float("nan")})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"steps": 0}, "training: expected steps of at least 1, got 0"),
        ({"rate": 0.0}, "training: expected rate of more than 0, got 0.0"),
        ({"minutes": float("inf")}, "training: expected minutes of more than 0, got inf"),
        (
            {"steps": 5, "minutes": 5.0},
            "training: choose a number of steps or of minutes, not both",
        ),
        ({"sources": ()}, "training: expected at least one source, got none"),
        ({"alpha": -1}, "training: expected alpha of at least 0, got -1"),
        (
            {"negatives": "random:0"},
            "training: expected negatives as bm25:K or random:N, such as random:1000, got",
        ),
        (
            {"negatives": "bm25:x"},
            "training: expected negatives as bm25:K or random:N, such as random:1000, got",
        ),
        (
            {"negatives": "random:3"},
            "training: negatives=random:3 are fewer than the 4 of each positive",
        ),
        (
            {"negatives": "random:9", "positives": "retrieved"},
            "training: positives=retrieved come from BM25's best",
        ),
        (
            {"triples": "t.tsv", "positives": "all"},
            "training: triples already name positives and negatives; omit",
        ),
        ({"loss": "hinge"}, "unknown loss of training 'hinge'"),
    ],
)
def test_options_that_do_not_fit_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match="^" + re.escape(message)):
        RerankerTraining(**options)


def test_presets_what_is_learned_from_and_batches_of_whole_groups() -> None:
    paper, notebook = (RerankerTraining.from_preset(name) for name in ("askari", "askari-notebook"))
    names = (
        "rate",
        "max_query_tokens",
        "max_document_tokens",
        "weight_decay",
        "warmup_steps",
        "dropout",
        "epochs",
    )
    assert [getattr(paper, name) for name in names] == [7e-6, 30, 200, 0.0, None, False, 1]
    assert [getattr(notebook, name) for name in names] == [2e-5, 70, 350, 0.01, 5000, True, 1000]
    for preset in (paper, notebook):
        assert (preset.pool, preset.retrieved_only, preset.negatives_per_positive) == (
            ("random", 1000),
            False,
            4,
        )
        assert (preset.loss, preset.batch, preset.rows_per_batch, preset.positives_per_query) == (
            "binary",
            32,
            32,
            None,
        )
    with_triples = RerankerTraining.from_preset("askari", triples="t.tsv")
    assert (
        with_triples.triples,
        with_triples.negatives,
        with_triples.positives,
        with_triples.rate,
    ) == (
        "t.tsv",
        None,
        None,
        7e-6,
    )
    assert RerankerTraining.from_preset("askari", negatives="bm25:50").positives == "all"
    choices = [{}, {"positives": "all"}, {"negatives": "random:9"}, {"negatives": "bm25:9"}]
    assert [RerankerTraining(**options).retrieved_only for options in choices] == [
        True,
        False,
        False,
        True,
    ]
    for batch, negatives, groups in ((32, 4, 6), (32, 3, 8), (5, 4, 1), (3, 4, 1)):
        assert (
            RerankerTraining(batch=batch, negatives_per_positive=negatives).rows_per_batch == groups
        )
        assert (
            RerankerTraining(
                batch=batch, negatives_per_positive=negatives, loss="binary"
            ).rows_per_batch
            == batch
        )
