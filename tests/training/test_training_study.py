"""The training study from end to end: what is trained, ranked, kept, resumed and refused."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from ranktilt import Collection, Run, TrainingStudy, UserError, audit, load, ranker
from ranktilt.explaining.equivalence import only_group
from ranktilt.training import study_rankers
from ranktilt.training.study import training_study
from ranktilt.training.study_collections import draw_queries, remove_overlap
from ranktilt.training.study_options import StudyOptions, ZeroShot
from ranktilt.training.study_rankers import tuning_task
from tests.mitigation.planted import answered_folder, mixed
from tests.refusals import refused
from tests.toy import jsonl, tsv, write
from tests.training.material import QUICK, WORDS

pytestmark = pytest.mark.neural


Finished = tuple[TrainingStudy, Path]
FEW = StudyOptions(training=replace(QUICK, steps=2, device="cpu"), depth=20)


def study(folder: Path, body: Path, work: Path, **options: Any) -> TrainingStudy:
    return training_study(folder, [body], work, options=replace(FEW, **options), resamples=100)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return answered_folder(tmp_path_factory.mktemp("qa") / "qa")


@pytest.fixture(scope="module")
def candidates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two lists of candidates with texts, the relevant document last, and its judgments."""
    folder = tmp_path_factory.mktemp("candidates")
    hits = {
        q: [{"qid": q, "docid": f"{q}{n}", "content": f"text {n} {q}"} for n in range(3)]
        for q in "ab"
    }
    lists = [
        {"query": f"text {query}", "hits": hits_of_query} for query, hits_of_query in hits.items()
    ]
    write(folder / "lists.json", json.dumps(lists))
    write(folder / "qrels.tsv", tsv([("a", "a2", 2), ("b", "b2", 1), ("b", "elsewhere", 1)]))
    return folder


@pytest.fixture(scope="module")
def finished(
    folder: Path, tiny: Path, candidates: Path, tmp_path_factory: pytest.TempPathFactory
) -> Finished:
    work = tmp_path_factory.mktemp("work") / "work"
    lists, qrels = str(candidates / "lists.json"), str(candidates / "qrels.tsv")
    zero_shot = (ZeroShot(lists, qrels=qrels, name="lists"),)
    curve = ((("human", 4), ("llm", 0)), (("human", 4), ("llm", 4)))
    return study(folder, tiny, work, zero_shot=zero_shot, curve=curve), work


def test_every_side_is_trained_and_every_collection_ranked(finished: Finished, tiny: Path) -> None:
    result, work = finished
    assert [training.learned for training in result.rankers] == [
        "human",
        "llm",
        "4 human",
        "4 human and 4 llm",
    ]
    assert {training.tuned for training in result.rankers} == {"retrieval"}
    assert [(evaluation.name, evaluation.kind) for evaluation in result.evaluations] == [
        ("qa-test", "supervised"),
        ("lists", "zero-shot"),
        ("qa-train queries, human documents", "seen"),
        ("qa-train (human responses)", "first stage"),
        ("qa-train (llm responses)", "first stage"),
        ("qa-test (human responses)", "first stage"),
        ("qa-test (llm responses)", "first stage"),
        ("qa-test, augmented", "curve"),
    ]
    body = tiny.name
    assert result.evaluations[2].rankers == (
        "BM25",
        f"{body} trained on llm",
    )  # its labels were not seen
    trained = [f"{body} trained on 4 human{more}" for more in ("", " and 4 llm")]
    assert result.evaluations[7].rankers == ("BM25", *trained)
    record = json.loads(
        (work / "models" / f"{body}-trained-on-llm-seed-0" / "training.json").read_text()
    )
    assert record["spec"]["sources"] == ["llm"]
    assert result.spec["depth"] == 20
    assert result.spec["training"]["steps"] == 2


def test_its_numbers_are_those_of_the_ranker_it_names_and_candidates_keep_order(
    finished: Finished, folder: Path
) -> None:
    result, work = finished
    human = only_group(load(folder, split="test"))
    trained_ranker = result.rankers[1]
    run = ranker("bm25@20").rank(human)
    run = ranker(
        f"{trained_ranker.ranker[:-1]},device=cpu)"
        if "device" not in trained_ranker.ranker
        else trained_ranker.ranker
    ).rank(human, run)
    values = audit(human, run, "nDCG@10", by=None, resamples=100).values
    assert result.evaluations[0].mean(trained_ranker.name, "nDCG@10").value == pytest.approx(
        values.mean()
    )
    saved_run = Run.load(
        work / "runs" / f"qa-test--{trained_ranker.run.replace(', ', '-').replace(' ', '-')}.trec"
    )
    assert saved_run.frame().equals(run.frame())
    zero_shot = finished[0].evaluations[1]
    assert (zero_shot.queries, zero_shot.documents, zero_shot.depth) == (
        2,
        6,
        3,
    )  # no list is longer
    assert zero_shot.mean("BM25", "RR@10").value == pytest.approx(1 / 3)
    assert zero_shot.mean("BM25", "R@3").value == pytest.approx((1 + 1 / 2) / 2)
    assert zero_shot.mean("BM25", "RR(rel=2)@10").queries == 1


@pytest.mark.long
def test_what_is_there_is_used(
    finished: Finished, folder: Path, tiny: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    result, work = finished
    stamps = {path: path.stat().st_mtime_ns for path in work.glob("models/*/*")}
    monkeypatch.setattr(
        "ranktilt.models.batching.compute_missing", None
    )  # every pair is in the cache
    again = study(folder, tiny, work)
    assert repr(again.evaluations[0]) == repr(result.evaluations[0])  # p of means are NaN
    assert {path: path.stat().st_mtime_ns for path in work.glob("models/*/*")} == stamps
    with pytest.raises(UserError, match="holds a model trained with steps 2, not 3"):
        study(folder, tiny, work, training=replace(FEW.training, steps=3))
    assert tuning_task(str(tiny)) == "retrieval"
    assert tuning_task(str(next((finished[1] / "models").iterdir()))) == "classification"
    write(tmp_path / "config.json", '{"architectures": ["BertModel"]}')
    assert tuning_task(str(tmp_path)) == ""


def test_queries_are_drawn_by_domain_and_nested_and_disjoint_leaves_no_copy(folder: Path) -> None:
    human = only_group(mixed())
    few, more = (draw_queries(human, n, 5) for n in (3, 9))
    assert few.queries_with_judgments.height == 6  # of two domains
    assert set(few.queries_with_judgments["id"]) < set(more.queries_with_judgments["id"])
    assert sum(int(name[1:]) % 2 for name in few.queries_with_judgments["id"]) == 3
    assert few.docs.equals(human.docs)
    assert set(draw_queries(human, 3, 6).queries_with_judgments["id"]) != set(
        few.queries_with_judgments["id"]
    )
    assert draw_queries(human, None, 0) is human
    beyond = human.qrels.head(1).with_columns(doc_id=pl.lit("elsewhere"))
    judged = Collection(human.docs, human.queries, human.qrels.vstack(beyond))
    assert (
        draw_queries(judged, 3, 5).queries_with_judgments.height == 6
    )  # a document that is elsewhere has no domain
    train, test = (load(folder, split=split) for split in ("train", "test"))
    learned, needed = (set(split.qrels["doc_id"]) for split in (train, test))
    assert set(remove_overlap(test, train).ids) == set(test.ids) - learned
    assert set(remove_overlap(train, test).ids) == set(train.ids) - needed
    assert remove_overlap(test, train).qrels.equals(test.qrels)
    assert remove_overlap(test, test).docs.equals(
        test.docs
    )  # what is relevant to queries of both stays in both
    free = [name for name in test.ids if name not in learned | needed][:1]
    new_texts = {
        **dict.fromkeys(free, "one text"),
        min(learned): "one text",
        max(learned): "two",
        min(needed): "two",
    }
    docs = test.docs.with_columns(
        text=pl.col("id").replace_strict(new_texts, default=pl.col("text"))
    )
    same = [Collection(docs, split.queries, split.qrels) for split in (test, train)]
    assert set(remove_overlap(*same).ids) == set(test.ids) - learned - set(
        free
    )  # a copy goes, unless the test needs it


def test_refusals_before_any_training(
    folder: Path, tiny: Path, tmp_path: Path, candidates: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(study_rankers, "train_cross_encoder", None)
    lists, work = str(candidates / "lists.json"), tmp_path / "work"
    run = write(tmp_path / "other.trec", f"q-{WORDS[-1]} Q0 nowhere 1 1.0 x\n")
    refusals: list[tuple[dict[str, Any], str]] = [
        ({"queries": 0}, "training study: expected queries of at least 1, got 0"),
        (
            {"reference": "people"},
            "unknown source 'people' (valid: human, llm); name the source that people wrote: "
            "--reference SOURCE",
        ),
        (
            {"curve": ((("human", 0),),)},
            "the curve: a ranker needs a document to learn from; got none of any source",
        ),
        (
            {"curve": ((("human", 999),),)},
            "asked to learn from 999 relevant documents of source 'human', but there ar",
        ),
        (
            {"curve": ((("human", 1),),) * 2},
            f"training '{tiny.name} trained on 1 human, seed 0' is given twice",
        ),
        (
            {"zero_shot": (ZeroShot(lists),)},
            f"zero-shot collection {lists}: no judgments (qrels); name them: {lists},",
        ),
        ({"zero_shot": (ZeroShot(str(folder)),) * 2}, "collection 'qa' is given twice"),
        (
            {"zero_shot": (ZeroShot(str(folder / "queries.jsonl")),)},
            "expected a collection's folder, or candidates wi",
        ),
        (
            {"zero_shot": (ZeroShot(str(folder), candidates=str(run)),)},
            "1 candidate of 1 not in the collection",
        ),
    ]
    for options, message in refusals:
        with pytest.raises(UserError, match=re.escape(message)):
            study(folder, tiny, work, **options)
    for bodies, message in (
        ([folder], "no model for a cross-encoder: expected a config.json as transformers saves it"),
        ([], "a training study needs an encoder to start from"),
        ([tiny, tiny], f"model {tiny.name!r} is given twice"),
    ):
        with pytest.raises(UserError, match=re.escape(message)):
            training_study(folder, bodies, work)
    assert not work.exists()


def test_sides_that_cannot_be_learned_from_are_refused(tiny: Path, tmp_path: Path) -> None:
    folder = answered_folder(tmp_path / "qa")
    human = [(f"q-{word}", f"{word}-human0", 1) for word in WORDS]
    write(folder / "qrels" / "train.tsv", tsv(human))
    with refused(
        f"{folder}, split train: no document of source 'llm' is judged relevant; there is nothing "
        "to learn"
    ):
        study(folder, tiny, tmp_path / "work")
    rows = [json.loads(line) for line in (folder / "corpus.jsonl").read_text().splitlines()]
    never = tsv(
        [(f"q-{word}", f"{word}-{side}0", 1) for word in WORDS for side in ("human", "llm")]
    )
    write(folder / "qrels" / "train.tsv", never)
    foreign = [
        {**row, "text": "quite other words"} if row["_id"].endswith("llm0") else row for row in rows
    ]
    write(folder / "corpus.jsonl", jsonl(foreign))
    with pytest.raises(
        UserError,
        match="train: no query has relevant documents of source 'llm' and others among BM25's best",
    ):
        study(folder, tiny, tmp_path / "work")
    write(folder / "corpus.jsonl", jsonl(row for row in rows if row["source"] == "human"))
    with pytest.raises(
        UserError,
        match=r"^a training study needs documents of two sides, got only source 'human'; ",
    ):
        study(folder, tiny, tmp_path / "work")
