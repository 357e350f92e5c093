"""An audit opened again: from where its files lie now, and only where they are what they were."""

import gzip
import json
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import ranktilt as rt
from ranktilt import Audit, Collection, Run
from ranktilt.errors import UserError
from ranktilt.io.files import sha256, write_files
from ranktilt.reopening import _again, reopen, with_given
from ranktilt.reporting.opened import Opened
from ranktilt.whereabouts import Places
from tests.datasets.hub_cache import cached, cocktail_zip, point_to
from tests.toy import raw_docs, raw_qrels, run_of, toy, tsv, write, write_beir, write_cocktail, write_run

QUICK: dict[str, Any] = {"resamples": 100}
FOUND = {
    "q1": {"d1-human": 3.0, "d1-llm": 2.0},
    "q2": {"d2-llm": 2.0, "d2-human": 1.0},
    "q3": {"d3-human": 2.0, "d3-llm": 1.0},
}
GONE = "The collection could not be opened again: {}."


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The toy as the folder ``toy`` of the working folder."""
    monkeypatch.chdir(tmp_path)
    write_cocktail(tmp_path / "toy")
    return tmp_path


def audited(
    path: str | Path = "toy", rankers: Sequence[str] = ("bm25",), *, load: Any = None, **options: Any
) -> tuple[Audit, Collection, list[Run]]:
    collection = rt.load(path, **(load or {}))
    runs = [rt.ranker(text).rank(collection) for text in rankers]
    return rt.audit(collection, runs, **{**QUICK, **options}), collection, runs


def saved(audit: Audit, path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return audit.save(path)


def same_runs(found: Sequence[Run], expected: Sequence[Run]) -> bool:
    columns = ["query_id", "doc_id"]
    return [run.name for run in found] == [run.name for run in expected] and all(
        one.frame().sort(columns).equals(two.frame().sort(columns)) for one, two in zip(found, expected, strict=True)
    )


def is_whole(opened: Opened, collection: Collection, runs: Sequence[Run]) -> bool:
    return opened.notes == () and opened.collection == collection and same_runs(opened.runs, runs)


@pytest.mark.parametrize(
    ("rankers", "load", "options"),
    [
        (["bm25", "tfidf"], {}, {}),
        (["bm25(text=title,k1=0.9)@2"], {}, {"measures": ["AP"]}),
        (["bm25"], {"split": "dev"}, {}),
        (["bm25"], {"qrels": "none"}, {"card": True}),
        (["bm25"], {"qrels": "other.tsv"}, {}),
        (["bm25"], {"qrels": "strange.tsv", "ignore_unknown": True}, {}),
        (["bm25"], {"docs": "judged", "split": "dev"}, {}),
        (["bm25"], {}, {"by": "length:2"}),
        (["bm25"], {}, {"by": None}),
        (["bm25@1"], {}, {"ties": "trec_eval", "missing": "exclude"}),
    ],
)
def test_a_collection_and_rankers_are_opened_as_they_were(
    here: Path, rankers: list[str], load: dict[str, Any], options: dict[str, Any]
) -> None:
    write(here / "toy" / "qrels" / "dev.tsv", tsv([("q2", "d2", 1)]))
    write(here / "other.tsv", tsv([("q1", "d1", 1), ("q3", "d3", 1)]))
    write(here / "strange.tsv", tsv([("q1", "d1", 1), ("q1", "nowhere", 1)]))
    audit, collection, runs = audited("toy", rankers, load=load, **options)
    opened = reopen(audit)
    assert is_whole(opened, collection, runs)
    assert opened.audit is audit


def test_a_file_s_audit_opens_as_the_audit_itself(here: Path) -> None:
    audit, collection, runs = audited()
    file = saved(audit, here / "audit.json")
    assert is_whole(reopen(Audit.load(file), file), collection, runs)


@pytest.mark.parametrize("folder", ["", "out", "out/of/sight"])
def test_a_project_that_moved_is_found_from_any_folder(
    here: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    audit, collection, runs = audited()
    saved(audit, here / folder / "audit.json")
    moved = tmp_path_factory.mktemp("elsewhere") / "project"
    shutil.move(here, moved)
    monkeypatch.chdir("/")
    file = moved / folder / "audit.json"
    assert is_whole(reopen(Audit.load(file), file), collection, runs)


def test_without_its_file_only_the_working_folder_is_looked_in(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    audit, collection, runs = audited()
    assert is_whole(reopen(audit), collection, runs)
    (here / "other").mkdir()
    monkeypatch.chdir(here / "other")
    assert reopen(audit).notes == (GONE.format("corpus/human.jsonl is not there any more"),)


def test_a_folder_of_that_name_with_other_files_is_passed_over(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    audit, collection, runs = audited()
    file = saved(audit, here / "audit.json")
    other = here / "other"
    write_cocktail(other / "toy", corpora={"human": raw_docs(), "llm": raw_docs()})
    monkeypatch.chdir(other)
    assert is_whole(reopen(audit, file), collection, runs)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda toy: write(toy / "corpus" / "llm.jsonl", "{}\n"), "corpus/llm.jsonl has changed since the audit"),
        (lambda toy: (toy / "queries.jsonl").write_text(""), "queries.jsonl has changed since the audit"),
        (
            lambda toy: write(toy / "qrels" / "test.tsv", tsv(raw_qrels()[:1])),
            "qrels/test.tsv has changed since the audit",
        ),
        (lambda toy: (toy / "corpus" / "human.jsonl").unlink(), "corpus/human.jsonl is not there any more"),
        (lambda toy: shutil.rmtree(toy), "corpus/human.jsonl is not there any more"),
        (
            lambda toy: write_cocktail(toy, corpora={"gpt": raw_docs()}),
            "corpus/gpt.jsonl has been added since the audit",
        ),
    ],
)
def test_what_has_changed_is_named_and_the_collection_left_out(
    here: Path, change: Callable[[Path], object], said: str
) -> None:
    audit, _, _ = audited()
    change(here / "toy")
    opened = reopen(audit, here / "audit.json")
    assert (opened.collection, opened.runs) == (None, ())
    assert opened.notes == (GONE.format(said),)
    assert opened.audit is audit


def test_a_folder_in_place_of_a_file_is_named(here: Path) -> None:
    audit, _, _ = audited()
    (here / "toy" / "queries.jsonl").unlink()
    (here / "toy" / "queries.jsonl").mkdir()
    assert reopen(audit).notes == (GONE.format("queries.jsonl is no file any more"),)


def test_a_collection_made_in_python_is_not_looked_for() -> None:
    collection = toy()
    audit = rt.audit(collection, run_of(collection, FOUND, ranker="mine"), **QUICK)
    said = "the collection was made in Python and lies in no file (ranktilt.report takes it: collection=)"
    assert reopen(audit).notes == (GONE.format(said),)


def test_the_bundled_collection_is_made_again() -> None:
    collection = rt.bundled()
    run = rt.ranker("bm25@20").rank(collection)
    audit = rt.audit(collection, run, ["nDCG@1"], **QUICK)
    assert is_whole(reopen(audit), collection, [run])


def test_a_mix_is_mixed_again_and_its_files_are_checked(here: Path) -> None:
    for source in ("human", "llm"):
        write_cocktail(here / source, corpora={source: raw_docs(source)})
    mixed = rt.mix(rt.load("human"), rt.load("llm"))
    run = rt.ranker("bm25").rank(mixed)
    audit = rt.audit(mixed, run, **QUICK)
    assert len(audit.spec["inputs"]) == 6
    assert is_whole(reopen(audit), mixed, [run])
    (here / "llm" / "queries.jsonl").write_text("")
    assert reopen(audit).notes == (GONE.format("queries.jsonl has changed since the audit"),)


def test_a_data_set_of_the_hub_is_known_by_its_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = tmp_path / "one", tmp_path / "two"
    cached(first, "IR-Cocktail/scifact", cocktail_zip())
    point_to(first, monkeypatch)
    audit, collection, runs = audited("hub:IR-Cocktail/scifact")
    assert is_whole(reopen(audit), collection, runs)
    shutil.rmtree(first)
    cached(second, "IR-Cocktail/scifact", cocktail_zip())
    point_to(second, monkeypatch)
    assert is_whole(reopen(audit), collection, runs)


def test_a_data_set_that_the_hub_s_cache_no_longer_holds_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cached(tmp_path / "hub", "IR-Cocktail/scifact", cocktail_zip())
    point_to(tmp_path / "hub", monkeypatch)
    audit, _, _ = audited("hub:IR-Cocktail/scifact")
    shutil.rmtree(tmp_path / "hub")
    opened = reopen(audit)
    assert opened.collection is None
    assert "hub:IR-Cocktail/scifact" in opened.notes[0]
    assert "nothing is fetched for a report, and it is not in the cache" in opened.notes[0]


def labels(path: Path, *columns: str, **changed: str) -> Path:
    """A label file of the toy's documents: its sources, and sides by bare id."""
    rows = ["\t".join(("doc_id", *columns))]
    for source in ("human", "llm"):
        for n in (1, 2, 3):
            values = {"source": source, "side": "ab"[n % 2], "origin": f"d{n}-human", **changed}
            rows.append("\t".join((f"d{n}-{source}", *(values[c] for c in columns))))
    return write(path, "\n".join(rows) + "\n")


def test_labels_beside_a_collection_are_read_again(here: Path) -> None:
    labels(here / "labels.tsv", "side")
    collection = rt.load("toy")
    from ranktilt.datasets.labels import with_labels

    collection = with_labels(collection, "labels.tsv", by="side")
    run = rt.ranker("bm25").rank(collection)
    audit = rt.audit(collection, run, by="side", **QUICK)
    assert is_whole(reopen(audit), collection, [run])
    labels(here / "labels.tsv", "side", side="b")
    assert reopen(audit).notes == (GONE.format("labels.tsv has changed since the audit"),)


def unlabelled_runs(here: Path, qrels: str | None = "judged.tsv") -> tuple[Audit, Collection, list[Run]]:
    """Two run files, and labels in place of a collection."""
    labels(here / "labels.tsv", "source", "origin")
    write(here / "judged.tsv", tsv([(q, f"{d}-{s}", g) for q, d, g in raw_qrels() for s in ("human", "llm")]))
    write_run(here / "one.trec", {"q3": FOUND["q3"], "q1": FOUND["q1"]})
    write_run(here / "two.trec", FOUND)
    runs = [Run.load("one.trec"), Run.load("two.trec", score_order="rank")]
    collection = rt.labelled("labels.tsv", runs, qrels=qrels)
    return rt.audit(collection, runs, card=qrels is None, **QUICK), collection, runs


@pytest.mark.parametrize("qrels", ["judged.tsv", None])
def test_labels_alone_with_their_runs_are_read_again(here: Path, qrels: str | None) -> None:
    audit, collection, runs = unlabelled_runs(here, qrels)
    opened = reopen(audit)
    assert opened.notes == ()
    assert opened.collection is not None
    assert opened.collection.docs.equals(collection.docs)
    assert opened.collection.judged["id"].to_list() == collection.judged["id"].to_list() == list(audit.queries)
    assert same_runs(opened.runs, runs)
    assert opened.runs[1].scores.tolist() == [-1, -2, -1, -2, -1, -2]


def test_the_order_of_queries_stays_where_the_run_that_gave_it_is_gone(here: Path) -> None:
    audit, _, runs = unlabelled_runs(here)
    (here / "one.trec").unlink()
    opened = reopen(audit)
    assert audit.queries == ("q3", "q1", "q2")
    assert same_runs(opened.runs, runs[1:])
    assert opened.notes == ("The lists of one.trec are left out: one.trec is not there any more.",)


def test_a_run_file_that_changed_is_left_out_alone(here: Path) -> None:
    audit, _, runs = unlabelled_runs(here)
    write_run(here / "two.trec", {"q1": {"d1-llm": 1.0}})
    opened = reopen(audit)
    assert same_runs(opened.runs, runs[:1])
    assert opened.notes == ("The lists of two.trec are left out: two.trec has changed since the audit.",)


def test_a_run_file_beside_a_collection_is_replayed_as_it_was(here: Path) -> None:
    write_run(here / "runs" / "mine.trec", FOUND)
    audit, collection, runs = audited("toy", ["replay:runs/mine.trec(score_order=rank)@1", "bm25"])
    assert is_whole(reopen(audit), collection, runs)


def test_a_replayed_file_is_found_beside_a_moved_audit(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_run(here / "mine.trec", FOUND)
    audit, collection, runs = audited("toy", ["replay:mine.trec"])
    file = saved(audit, here / "audit.json")
    monkeypatch.chdir("/")
    opened = reopen(audit, file)
    assert is_whole(opened, collection, runs)
    assert opened.runs[0].spec == runs[0].spec


def test_a_run_with_a_ranker_of_its_own_is_read_from_its_file(here: Path) -> None:
    collection = rt.load("toy")
    made = run_of(collection, FOUND, ranker="my engine", note="by hand").save("mine.trec")
    run = Run.load(made)
    audit = rt.audit(collection, run, **QUICK)
    opened = reopen(audit)
    assert is_whole(opened, collection, [run])
    assert opened.runs[0].spec["note"] == "by hand"


def keep(audit: Audit, runs: Sequence[Run], folder: Path) -> Path:
    """Write an audit and its runs as ``ranktilt audit --save`` does."""
    for number, run in enumerate(runs, start=1):
        file = folder / "runs" / f"{number}-some.trec.gz"
        file.parent.mkdir(parents=True, exist_ok=True)
        run.save(file)
    return saved(audit, folder / "audit.json")


def engine_run(collection: Collection, name: str = "engine:shop:search", found: Any = None, **spec: Any) -> Run:
    return run_of(collection, found or FOUND, ranker=name, **spec)


def test_saved_runs_are_taken_and_no_engine_is_asked(here: Path) -> None:
    collection = rt.load("toy")
    run = engine_run(collection, found={"q1": FOUND["q1"], "q2": {}}, failed={"q3": "timeout"})
    audit = rt.audit(collection, run, **QUICK)
    file = keep(audit, [run], here / "out")
    opened = reopen(audit, file)
    assert is_whole(opened, collection, [run])
    assert opened.runs[0].spec == run.spec


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("engine:shop:search", "an engine is not asked again; ranktilt audit --save DIR keeps the run itself"),
        ("bm25@5>>engine:shop:search", "an engine is not asked again; ranktilt audit --save DIR keeps the run itself"),
        ("milvus:store.db", "an engine is not asked again; ranktilt audit --save DIR keeps the run itself"),
        (
            "dense:openai:text-embedding-3-small",
            "a server is not asked again; ranktilt audit --save DIR keeps the run itself",
        ),
        (
            "shortest@5",
            "'shortest' is no ranker of RankTilt's own, and is not run again; ranktilt audit --save DIR keeps the run "
            "itself",
        ),
        (
            "my best (so far",
            "it was made in Python, and not by a ranker's text; ranktilt audit --save DIR keeps the run itself",
        ),
    ],
)
def test_what_costs_or_is_of_others_is_not_run_again(here: Path, name: str, said: str) -> None:
    collection = rt.load("toy")
    run = engine_run(collection, name)
    audit = rt.audit(collection, [run, rt.ranker("bm25").rank(collection)], **QUICK)
    opened = reopen(audit)
    assert [one.name for one in opened.runs] == ["bm25"]
    assert opened.notes == (f"The lists of {name} are left out: {said}.",)


def test_saved_runs_of_another_audit_are_not_taken(here: Path) -> None:
    audit, collection, runs = audited("toy", ["bm25", "tfidf"])
    strange = [engine_run(collection, "bm25"), engine_run(collection, "other")]
    file = keep(audit, strange, here)
    assert is_whole(reopen(audit, file), collection, runs)


def test_a_saved_run_that_is_cut_off_is_made_again(here: Path) -> None:
    audit, collection, runs = audited()
    file = keep(audit, runs, here)
    (here / "runs" / "1-some.trec.gz").write_bytes(gzip.compress(b"q1 Q0 d1-human\n"))
    assert is_whole(reopen(audit, file), collection, runs)


def test_a_ranker_that_gives_other_values_now_is_left_out(here: Path) -> None:
    audit, _, _ = audited("toy", ["bm25", "tfidf"])
    values = audit.values.copy()
    values[1, 0, 1, 2] = 0.25
    opened = reopen(replace(audit, values=values))
    assert [run.name for run in opened.runs] == ["bm25"]
    assert opened.notes == (
        "The lists of tfidf are left out: it gives other values than the audit's for 1 of 3 queries.",
    )


def test_rounding_far_below_a_swap_does_not_matter(here: Path) -> None:
    audit, collection, runs = audited()
    assert is_whole(reopen(replace(audit, values=audit.values + 1e-8)), collection, runs)
    assert reopen(replace(audit, values=audit.values + 1e-4)).runs == ()


def test_without_judgments_twins_are_counted_again(here: Path) -> None:
    audit, collection, runs = audited(load={"qrels": "none"}, card=True)
    assert is_whole(reopen(audit), collection, runs)
    first = pl.int_range(pl.len()) == 1
    counts = audit.pair_counts.filter(~pl.col("relevant"))
    counts = pl.concat(
        [audit.pair_counts.filter("relevant"), counts.with_columns(wins=pl.col("wins") + first.cast(pl.Int64))]
    )
    assert reopen(replace(audit, pair_counts=counts)).notes == (
        "The lists of bm25 are left out: it gives other values than the audit's for 1 of 3 queries.",
    )


def test_without_judgments_and_twins_a_saved_run_must_fill_the_page_as_it_did(here: Path) -> None:
    # Sides: b holds d1 and d3, a holds d2. At rank 1 the audit saw b, a, b; the other run shows a, a, b.
    labels(here / "labels.tsv", "side")
    write_run(here / "one.trec", FOUND)
    write_run(here / "other.trec", {**FOUND, "q1": {"d2-human": 3.0, "d1-llm": 2.0}})
    run, other = Run.load("one.trec"), Run.load("other.trec")
    collection = rt.labelled("labels.tsv", [run], by="side")
    audit = rt.audit(collection, run, card=True, page=1, by="side", **QUICK)
    assert audit.pair_counts.height == 0
    file = saved(audit, here / "out" / "audit.json")
    kept = file.parent / "runs" / "1-one.trec.gz"
    write_files(run.contents(kept))
    (here / "one.trec").unlink()
    assert is_whole(reopen(audit, file), collection, [run])
    for depth in ("0", "x", "9" * 30):
        odd = replace(audit, estimates=tuple(replace(e, name=f"ΔNDSR@{depth}") for e in audit.estimates))
        assert reopen(odd, file).runs == ()
    write_files(replace(other, spec=run.spec).contents(kept))
    assert reopen(audit, file).runs == ()
    with pytest.raises(UserError, match="its first ranks hold other groups than the audit says"):
        with_given(audit, None, collection=collection, runs=[replace(other, spec=run.spec)])


def test_the_device_of_the_audit_need_not_be_there(here: Path) -> None:
    audit, _, _ = audited()
    made = _again("bm25@50>>dense:minilm(device=cuda:3,precision=float32)", {}, Places(audit, None))
    assert repr(made) == "bm25@50>>dense:minilm(precision=float32)"


def test_a_model_s_folder_is_found_beside_a_moved_audit(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "models" / "mine").mkdir(parents=True)
    audit, _, _ = audited()
    monkeypatch.chdir("/")
    made = _again("dense:models/mine", {}, Places(audit, here / "out" / "audit.json"))
    assert repr(made) == f"dense:{here / 'models' / 'mine'}"


def test_an_audit_that_says_little_is_opened_by_its_values(here: Path) -> None:
    audit, collection, runs = audited()
    spec = {name: value for name, value in audit.spec.items() if name != "runs"}
    assert is_whole(reopen(replace(audit, spec=spec)), collection, [replace(runs[0], spec={"ranker": "bm25"})])
    assert reopen(replace(audit, spec={})).notes[0].startswith("The collection could not be opened again: ")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"groups": ("all", "human", "gpt")}, "the collection has other groups than the audit (human, llm)"),
        ({"queries": ("q1", "q2", "q4")}, "the collection has other queries than the audit"),
    ],
)
def test_a_collection_that_does_not_fit_is_left_out(here: Path, changed: dict[str, Any], said: str) -> None:
    audit, _, _ = audited()
    assert reopen(replace(audit, **changed)).notes == (GONE.format(said),)


def test_runs_need_not_be_opened(here: Path) -> None:
    audit, collection, _ = audited()
    assert is_whole(reopen(audit, runs=False), collection, [])


def test_given_parts_are_used_as_they_are() -> None:
    collection = toy()
    runs = [run_of(collection, FOUND, ranker=name) for name in ("mine", "yours")]
    audit = rt.audit(collection, runs, **QUICK)
    opened = with_given(audit, None, collection=collection, runs=reversed(runs))
    assert opened.collection is collection
    assert [run is mine for run, mine in zip(opened.runs, runs, strict=True)] == [True, True]
    assert opened.notes == ()


def test_a_run_that_is_not_given_is_said_to_be_missing() -> None:
    collection = toy()
    runs = [run_of(collection, FOUND, ranker=name) for name in ("mine", "yours")]
    audit = rt.audit(collection, runs, **QUICK)
    assert with_given(audit, None, collection=collection, runs=runs[:1]).notes == (
        "The lists of yours are left out: its run was not given.",
    )


def test_given_runs_must_be_the_audited_ones() -> None:
    collection = toy()
    audit = rt.audit(collection, run_of(collection, FOUND, ranker="mine"), **QUICK)
    with pytest.raises(UserError, match="unknown run of the audit 'other'"):
        with_given(audit, None, collection=collection, runs=[run_of(collection, FOUND, ranker="other")])
    other = run_of(collection, {**FOUND, "q2": {"d2-human": 1.0}}, ranker="mine")
    with pytest.raises(UserError) as error:
        with_given(audit, None, collection=collection, runs=[other])
    expected = "run 'mine' is not the one that was audited: it gives other values than the audit's for 1 of 3 queries"
    assert str(error.value) == expected


def test_a_given_collection_must_be_the_audited_one(here: Path) -> None:
    audit, collection, runs = audited()
    assert is_whole(with_given(audit, None, collection=collection), collection, runs)
    with pytest.raises(UserError, match="the collection has other groups than the audit"):
        with_given(
            audit,
            None,
            collection=rt.load(
                write_beir(
                    here / "one",
                    docs=[
                        {**row, "source": s, "_id": f"{row['_id']}-{s}"} for row in raw_docs() for s in ("human", "gpt")
                    ],
                    qrels=[("q1", "d1-gpt", 1)],
                )
            ),
        )


def test_given_runs_without_a_collection_open_it_or_say_so(here: Path) -> None:
    audit, collection, runs = audited()
    assert is_whole(with_given(audit, None, runs=runs), collection, runs)
    shutil.rmtree(here / "toy")
    with pytest.raises(UserError) as error:
        with_given(audit, None, runs=runs)
    assert str(error.value) == (
        "the runs need the audit's collection, and corpus/human.jsonl is not there any more; give it too"
    )


def test_notes_name_no_folder_of_this_machine(here: Path) -> None:
    audit, _, _ = audited(here / "toy")
    (here / "toy" / "queries.jsonl").unlink()
    assert str(here) not in " ".join(reopen(audit, here / "audit.json").notes)


@pytest.mark.data
def test_nfcorpus_is_opened_again_from_a_file(shared_data: Path, tmp_path: Path) -> None:
    audit, collection, runs = audited(shared_data / "cocktail-nfcorpus", ["bm25(text=text)@100", "tfidf@50"])
    file = saved(audit, tmp_path / "audit.json")
    assert is_whole(reopen(Audit.load(file), file), collection, runs)


@pytest.mark.data
def test_runs_of_trec_dl_are_read_again_with_labels(shared_data: Path, tmp_path: Path) -> None:
    folder = shared_data / "dl19"
    runs = [Run.load(folder / "runs" / f"{name}.trec") for name in ("bm25", "bm25-gpt35-repeat1")]
    ids = sorted(set().union(*(run.ids.to_list() for run in runs)))
    table = "".join(f"{name}\t{'odd' if int(name) % 2 else 'even'}\n" for name in ids)
    file = write(tmp_path / "parity.tsv", f"doc_id\tparity\n{table}")
    collection = rt.labelled(file, runs, by="parity", qrels=folder / "qrels.dl19-passage.txt")
    audit = rt.audit(collection, runs, ["nDCG@10"], by="parity", **QUICK)
    opened = reopen(audit)
    assert opened.notes == ()
    assert same_runs(opened.runs, runs)
    assert np.array_equal(opened.collection.qrels if opened.collection else [], collection.qrels)
    assert json.loads(audit.to_json())["spec"]["collection"]["by"] == "parity"
    assert os.fspath(file) in [one["path"] for one in audit.spec["inputs"]]


SECRET = "PASSWORD=hunter2 and more\n"


@pytest.fixture
def secret(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file that has nothing to do with any audit."""
    return write(tmp_path_factory.mktemp("private") / "notes.env", SECRET)


def renamed(audit: Audit, name: str, **told: Any) -> Audit:
    """The audit as if another ranker had made its first run."""
    spec = {**audit.spec, "runs": [{**audit.spec["runs"][0], **told}, *audit.spec["runs"][1:]]}
    counts = audit.pair_counts.with_columns(pl.col("run").replace(audit.runs[0], name))
    return replace(audit, runs=(name, *audit.runs[1:]), spec=spec, pair_counts=counts)


@pytest.mark.parametrize("how", ["file", "replay", "made_by", "pipeline"])
def test_a_file_that_the_audit_has_no_hash_of_is_not_read(here: Path, secret: Path, how: str) -> None:
    audit, collection, _ = audited()
    named = {"file": "bm25", "pipeline": f"replay:{secret}>>bm25"}.get(how, f"replay:{secret}")
    told = {"file": {"file": str(secret)}, "made_by": {"file": "x", "made_by": "y"}}.get(how, {})
    opened = reopen(renamed(audit, named, **told))
    assert opened.collection == collection
    assert opened.runs == ()
    file = "x" if how == "made_by" else "notes.env"
    said = f"the audit does not say what was in {file} (it has no hash of it)"
    assert opened.notes == (f"The lists of {named} are left out: {said}.",)


def test_a_link_among_saved_runs_is_not_followed(here: Path, secret: Path) -> None:
    audit, _, _ = audited()
    file = saved(renamed(audit, "mine (so far"), here / "audit.json")
    (here / "runs").mkdir()
    (here / "runs" / "1-mine.trec.gz").symlink_to(secret)
    assert reopen(Audit.load(saved(audit, file)), file).notes == ()
    (note,) = reopen(renamed(audit, "mine (so far"), file).notes
    assert "hunter2" not in note
    assert "it was made in Python" in note


def test_a_note_shows_no_line_of_a_file(here: Path) -> None:
    audit, _, _ = audited()
    file = saved(audit, here / "audit.json")
    write(here / "runs" / "1-mine.trec.gz", SECRET)
    (note,) = reopen(renamed(audit, "mine", file="x"), file).notes
    assert "hunter2" not in note
    inputs = [*audit.spec["inputs"], {"path": "x", "sha256": sha256(write(here / "x", SECRET))}]
    told = renamed(audit, "mine", file="x")
    (note,) = reopen(replace(told, spec={**told.spec, "inputs": inputs}), here / "other" / "audit.json").notes
    assert note == "The lists of mine are left out: line 1 of x is not what was expected."


@pytest.mark.parametrize("key", ["labels", "qrels"])
def test_labels_that_the_audit_has_no_hash_of_are_not_read(here: Path, secret: Path, key: str) -> None:
    audit, _, _ = audited()
    named = {"labels": {"path": "toy", "labels": str(secret)}, "qrels": {"labels": "x", "qrels": str(secret)}}[key]
    opened = reopen(replace(audit, spec={**audit.spec, "collection": named}))
    said = "the audit does not say what was in notes.env (it has no hash of it)"
    assert opened.notes == (GONE.format(said),)


@pytest.mark.parametrize("told", [{}, {"layout": "irds"}, {"revision": "main"}])
def test_a_folder_that_the_audit_has_no_hash_of_is_not_read(here: Path, told: dict[str, str]) -> None:
    audit, _, _ = audited()
    spec = {**audit.spec, "inputs": [], "collection": {**audit.spec["collection"], **told}}
    said = "the audit does not say what was in its files (it has no hashes of them)"
    assert reopen(replace(audit, spec=spec)).notes == (GONE.format(said),)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("/dev/zero", "zero is no file any more"),
        ("a\0b", "a\0b is not there any more"),
        ("a" * 5000, f"{'a' * 119}… is not there any more"),
    ],
)
def test_names_that_are_no_file_s_are_said(here: Path, name: str, said: str) -> None:
    audit, _, _ = audited()
    inputs = [*audit.spec["inputs"], {"path": name, "sha256": "0" * 64}]
    assert reopen(replace(audit, spec={**audit.spec, "inputs": inputs})).notes == (GONE.format(said),)


@pytest.mark.parametrize("name", ["dense:nobody/nothing", "monot5:nobody/nothing", "bm25@5>>cross-encoder:no/thing"])
def test_no_model_is_fetched(here: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def connect(*parts: Any) -> None:
        raise AssertionError("the network was asked for")

    monkeypatch.setattr("socket.socket.connect", connect)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    audit, _, _ = audited()
    model = name.rpartition(":")[2]
    (note,) = reopen(renamed(audit, name)).notes
    said = f"model {model!r} is not on this machine, and nothing is fetched for it"
    assert note == f"The lists of {name} are left out: {said}."


def test_a_short_name_is_no_folder_beside_the_audit(here: Path) -> None:
    audit, _, _ = audited()
    (here / "minilm").mkdir()
    made = _again("dense:minilm", {}, Places(audit, here / "out" / "audit.json"))
    assert repr(made) == "dense:minilm"


def test_a_re_ranked_file_is_found_by_its_hash(here: Path) -> None:
    write_run(here / "mine.trec", FOUND)
    collection = rt.load("toy")
    first = rt.ranker("replay:mine.trec").rank(collection)
    run = run_of(collection, FOUND, ranker="replay:mine.trec>>engine:shop:search", candidates=dict(first.spec))
    audit = rt.audit(collection, run, **QUICK)
    assert [Path(one["path"]).name for one in audit.spec["inputs"]][-1] == "mine.trec"
    (here / "mine.trec").unlink()
    assert reopen(audit).collection == collection
