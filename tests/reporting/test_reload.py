"""An audit opened again: from where its files lie now, and only where they are what they were."""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import ranktilt as rt
from ranktilt import Audit, Collection, Run
from ranktilt.data.labels.labels import with_labels
from ranktilt.errors import UserError
from ranktilt.reporting.reload import NO_LISTS, LoadedAudit, reload
from tests.data.hub_cache import cached, cocktail_zip, point_to
from tests.refusals import refused
from tests.reporting.openings import TOY_RUN, audited
from tests.toy import raw_docs, raw_qrels, run_of, toy, tsv, write, write_cocktail, write_run

QUICK: dict[str, Any] = {"resamples": 100}
GONE = "The collection could not be opened again: {}."


def saved(audit: Audit, path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return audit.save(path)


def same_runs(runs: Sequence[Run], expected: Sequence[Run]) -> bool:
    columns = ["query_id", "doc_id"]
    return [run.name for run in runs] == [run.name for run in expected] and all(
        first.frame().sort(columns).equals(second.frame().sort(columns))
        for first, second in zip(runs, expected, strict=True)
    )


def is_whole(opened: LoadedAudit, collection: Collection, runs: Sequence[Run]) -> bool:
    return opened.notes == () and opened.collection == collection and same_runs(opened.runs, runs)


@pytest.mark.parametrize(
    ("rankers", "load", "options"),
    [
        (["bm25", "tfidf"], {}, {}),
        (["bm25"], {"split": "dev"}, {}),
        (["bm25"], {"qrels": "none"}, {"card": True}),
        (["bm25"], {"qrels": "other.tsv"}, {}),
        (["bm25"], {"qrels": "strange.tsv", "ignore_unknown": True}, {}),
        (["bm25"], {"docs": "judged", "split": "dev"}, {}),
        (["bm25@1"], {}, {"ties": "trec_eval", "missing": "exclude"}),
    ],
)
def test_all_is_opened_again(
    here: Path, rankers: list[str], load: dict[str, Any], options: dict[str, Any]
) -> None:
    write(here / "toy" / "qrels" / "dev.tsv", tsv([("q2", "d2", 1)]))
    write(here / "other.tsv", tsv([("q1", "d1", 1), ("q3", "d3", 1)]))
    write(here / "strange.tsv", tsv([("q1", "d1", 1), ("q1", "nowhere", 1)]))
    audit, collection, runs = audited("toy", rankers, load=load, **options)
    opened = reload(audit)
    assert is_whole(opened, collection, runs)
    assert opened.audit is audit


@pytest.mark.parametrize("folder", ["", "out/of/sight"])
def test_a_project_that_moved_is_found_from_any_folder(
    here: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    folder: str,
) -> None:
    audit, collection, runs = audited()
    saved(audit, here / folder / "audit.json")
    moved = tmp_path_factory.mktemp("elsewhere") / "project"
    shutil.move(here, moved)
    monkeypatch.chdir("/")
    file = moved / folder / "audit.json"
    assert is_whole(reload(Audit.load(file), file), collection, runs)


def test_without_its_file_only_the_working_folder_is_looked_in(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    audit, collection, runs = audited()
    assert is_whole(reload(audit), collection, runs)
    (here / "other").mkdir()
    monkeypatch.chdir(here / "other")
    assert reload(audit).notes == (GONE.format("corpus/human.jsonl is not there any more"),)
    # A folder of that name with other files is passed over.
    write_cocktail(here / "other" / "toy", corpora={"human": raw_docs(), "llm": raw_docs()})
    assert is_whole(reload(audit, saved(audit, here / "audit.json")), collection, runs)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (
            lambda toy: write(toy / "corpus" / "llm.jsonl", "{}\n"),
            "corpus/llm.jsonl has changed since the audit",
        ),
        (lambda toy: shutil.rmtree(toy), "corpus/human.jsonl is not there any more"),
        (
            lambda toy: write_cocktail(toy, corpora={"x": raw_docs()}),
            "corpus/x.jsonl has been added since the audit",
        ),
    ],
)
def test_what_has_changed_is_named_and_left_out(
    here: Path, change: Callable[[Path], object], reason: str
) -> None:
    audit, _, _ = audited()
    change(here / "toy")
    opened = reload(audit, here / "audit.json")
    assert (opened.collection, opened.runs) == (None, ())
    assert opened.notes == (GONE.format(reason),)
    assert opened.audit is audit


def test_bundled_collection_is_made_again_and_python_one_not_sought() -> None:
    collection = toy()
    audit = rt.audit(collection, run_of(collection, TOY_RUN, ranker="mine"), **QUICK)
    reason = (
        "the collection was made in Python and is in no file (pass it: ranktilt.report(…, "
        "collection=…))"
    )
    assert reload(audit).notes == (GONE.format(reason),)
    collection = rt.bundled()
    run = rt.ranker("bm25@20").rank(collection)
    audit = rt.audit(collection, run, ["nDCG@1"], **QUICK)
    assert is_whole(reload(audit), collection, [run])


def test_a_mix_is_mixed_again_and_its_files_are_checked(here: Path) -> None:
    for source in ("human", "llm"):
        write_cocktail(here / source, corpora={source: raw_docs(source)})
    mixed = rt.mix(rt.load("human"), rt.load("llm"))
    run = rt.ranker("bm25").rank(mixed)
    audit = rt.audit(mixed, run, **QUICK)
    assert len(audit.spec["inputs"]) == 6
    assert is_whole(reload(audit), mixed, [run])
    (here / "llm" / "queries.jsonl").write_text("")
    assert reload(audit).notes == (GONE.format("queries.jsonl has changed since the audit"),)


def test_a_data_set_of_the_hub_is_known_by_its_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("one", "two"):
        cached(tmp_path / name, "IR-Cocktail/scifact", cocktail_zip())
    point_to(tmp_path / "one", monkeypatch)
    audit, collection, runs = audited("hub:IR-Cocktail/scifact")
    point_to(tmp_path / "two", monkeypatch)
    assert is_whole(reload(audit), collection, runs)
    shutil.rmtree(tmp_path / "two")
    opened = reload(audit)
    assert opened.collection is None
    assert "hub:IR-Cocktail/scifact" in opened.notes[0]
    assert "a report downloads nothing, and the cache" in opened.notes[0]


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
    collection = with_labels(collection, "labels.tsv", by="side")
    run = rt.ranker("bm25").rank(collection)
    audit = rt.audit(collection, run, by="side", **QUICK)
    assert is_whole(reload(audit), collection, [run])
    labels(here / "labels.tsv", "side", side="b")
    assert reload(audit).notes == (GONE.format("labels.tsv has changed since the audit"),)


def unlabelled_runs(
    here: Path, qrels: str | None = "judged.tsv"
) -> tuple[Audit, Collection, list[Run]]:
    """Two run files, and labels in place of a collection."""
    labels(here / "labels.tsv", "source", "origin")
    write(
        here / "judged.tsv",
        tsv([(q, f"{d}-{s}", g) for q, d, g in raw_qrels() for s in ("human", "llm")]),
    )
    write_run(here / "one.trec", {"q3": TOY_RUN["q3"], "q1": TOY_RUN["q1"]})
    write_run(here / "two.trec", TOY_RUN)
    runs = [Run.load("one.trec"), Run.load("two.trec", score_order="rank")]
    collection = rt.labelled("labels.tsv", runs, qrels=qrels)
    return rt.audit(collection, runs, card=qrels is None, **QUICK), collection, runs


@pytest.mark.parametrize("qrels", ["judged.tsv", None])
def test_labels_alone_with_their_runs_are_read_again(here: Path, qrels: str | None) -> None:
    audit, collection, runs = unlabelled_runs(here, qrels)
    opened = reload(audit)
    assert opened.notes == ()
    assert opened.collection is not None
    assert opened.collection.docs.equals(collection.docs)
    assert (
        opened.collection.queries_with_judgments["id"].to_list()
        == collection.queries_with_judgments["id"].to_list()
        == list(audit.queries)
    )
    assert same_runs(opened.runs, runs)
    assert opened.runs[1].scores.tolist() == [-1, -2, -1, -2, -1, -2]


def test_terse_audit_opens_by_values_and_collection_must_fit(
    here: Path,
) -> None:
    audit, collection, runs = audited()
    spec = {name: value for name, value in audit.spec.items() if name != "runs"}
    assert is_whole(
        reload(replace(audit, spec=spec)), collection, [replace(runs[0], spec={"ranker": "bm25"})]
    )
    assert (
        reload(replace(audit, spec={}))
        .notes[0]
        .startswith("The collection could not be opened again: ")
    )
    for changed, reason in (
        (
            {"groups": ("all", "human", "gpt")},
            "the collection has other groups than the audit (human, llm)",
        ),
        ({"queries": ("q1", "q2", "q4")}, "the collection has other queries than the audit"),
    ):
        reloaded = reload(replace(audit, **changed))  # type: ignore[arg-type]
        assert reloaded.notes == (GONE.format(reason),)


def test_given_parts_are_used_where_they_are_what_was_audited() -> None:
    collection = toy()
    runs = [run_of(collection, TOY_RUN, ranker=name) for name in ("mine", "yours")]
    audit = rt.audit(collection, runs, **QUICK)
    opened = reload(audit, None, collection=collection, runs=reversed(runs))
    assert (opened.collection is collection, opened.notes) == (True, ())
    assert [run is mine for run, mine in zip(opened.runs, runs, strict=True)] == [True, True]
    missing = "The lists of yours are left out: its run was not given."
    assert reload(audit, None, collection=collection, runs=runs[:1]).notes == (missing,)
    with pytest.raises(UserError, match="unknown run of the audit 'other'"):
        reload(
            audit, None, collection=collection, runs=[run_of(collection, TOY_RUN, ranker="other")]
        )
    altered = run_of(collection, {**TOY_RUN, "q2": {"d2-human": 1.0}}, ranker="mine")
    reason = "it gives other values than the audit's for 1 of 3 queries"
    with refused(f"run 'mine' is not the one that was audited: {reason}"):
        reload(audit, None, collection=collection, runs=[altered])
    with pytest.raises(UserError, match="the collection has other groups than the audit"):
        reload(replace(audit, groups=("all", "human", "gpt")), None, collection=collection)


def test_given_runs_without_a_collection_open_it_or_say_so(here: Path) -> None:
    audit, collection, runs = audited(here / "toy")
    assert is_whole(reload(audit, None, runs=runs), collection, runs)
    shutil.rmtree(here / "toy")
    with refused(
        "runs need the audit's collection, and corpus/human.jsonl is not there any more; pass it "
        "too"
    ):
        reload(audit, None, runs=runs)


def test_named_file_without_hash_is_never_read(here: Path) -> None:
    secret = write(here.parent / "private" / "notes.env", "PASSWORD=hunter2 and more\n")
    audit, _, runs = audited()
    spec = {**audit.spec, "runs": [{**audit.spec["runs"][0], "file": str(secret)}]}
    described = replace(audit, spec=spec)
    assert same_runs(reload(described).runs, runs)
    without = reload(replace(described, top_results=None))
    assert (without.runs, without.notes) == ((), (NO_LISTS,))
    audit, _, _ = audited()
    for source in ({"path": "toy", "labels": str(secret)}, {"labels": "x", "qrels": str(secret)}):
        reason = "the audit does not say what was in notes.env (it has no hash of it)"
        assert reload(replace(audit, spec={**audit.spec, "collection": source})).notes == (
            GONE.format(reason),
        )
    for described in ({}, {"layout": "irds"}, {"revision": "main"}):
        spec = {**audit.spec, "inputs": [], "collection": {**audit.spec["collection"], **described}}
        reason = "the audit does not say what was in its files (it has no hashes of them)"
        assert reload(replace(audit, spec=spec)).notes == (GONE.format(reason),)
    for name, reason in (("/dev/zero", "zero"), ("a\0b", "a\0b"), ("a" * 5000, f"{'a' * 119}…")):
        inputs = [*audit.spec["inputs"], {"path": name, "sha256": "0" * 64}]
        notes = reload(replace(audit, spec={**audit.spec, "inputs": inputs})).notes
        assert notes == (GONE.format(f"{reason} is not there any more"),)


def test_lists_cut_for_their_size_are_said_to_be(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ranktilt.auditing.storage.top_results.MOST_RESULTS", 3)
    monkeypatch.setattr("ranktilt.auditing.storage.top_results._FEWEST_RANKS", 1)
    audit, _, runs = audited()
    opened = reload(audit)
    assert opened.notes == ("The audit keeps its lists down to rank 1.",)
    assert [
        len(run.docs) < len(full_run.docs) for run, full_run in zip(opened.runs, runs, strict=True)
    ] == [True]
