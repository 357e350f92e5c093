"""ranktilt data: collections loaded, mixed, described and built from files by the very names that
they have.
"""

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import polars as pl
import pytest

import ranktilt as rt
from ranktilt import Audit, PairwiseAudit, Run
from ranktilt.data.files import sha256
from ranktilt.data.formats.tables.parquet import read_judgments
from ranktilt.data.labels.label_table import read_labels
from ranktilt.data.loading.assemble import read_rows
from ranktilt.data.loading.load import load
from ranktilt.papers.dai import nq320k
from ranktilt.papers.dai.nq320k import build_nq320k
from tests.cli.conftest import Cli, refused
from tests.data.hub_cache import COMMIT, cached, cocktail_zip, mteb, point_to
from tests.papers.dai.test_nq320k import files as nq_files
from tests.toy import no_permission, raw_docs, toy, write, write_beir, write_cocktail, write_paper

QUICK = ("--set", "statistics.resamples=100")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    pytest.importorskip("huggingface_hub")
    point_to(tmp_path / "hub", monkeypatch)
    monkeypatch.setenv("RANKTILT_CACHE", str(tmp_path / "ours"))
    return tmp_path / "hub"


def test_hub_collection_becomes_a_folder_and_says_of_what(
    cli: Cli, cache: Path, tmp_path: Path
) -> None:
    cached(cache, "IR-Cocktail/scifact", cocktail_zip())
    code, out, err = cli("data", "load", "hub:IR-Cocktail/scifact", "-o", tmp_path / "scifact")
    assert (code, out) == (0, "")
    assert err.splitlines() == [
        f"{tmp_path / 'scifact'}: Collection(3 human, 3 llm; 3 queries, 10 judgments), from "
        "hub:IR-Cocktail/scifact "
        f"at {COMMIT[:12]}",
        f"Next: ranktilt check {tmp_path / 'scifact'}",
    ]
    assert load(tmp_path / "scifact") == toy()
    cached(cache, "mteb/scifact", mteb())
    cli("data", "load", f"hub:mteb/scifact@{COMMIT}", "-o", tmp_path / "x", "--split", "train")
    about = json.loads((tmp_path / "x" / "loaded.json").read_text())
    expected = {"path": "hub:mteb/scifact", "revision": COMMIT, "split": "train", "layout": "beir"}
    assert {name: about[name] for name in expected} == expected
    snapshot = cache / "datasets--mteb--scifact" / "snapshots" / COMMIT
    names = ("corpus.jsonl", "queries.jsonl", "qrels/train.jsonl")
    assert about["files"] == {name: sha256(snapshot / name) for name in names}
    assert (tmp_path / "x" / "qrels" / "train.tsv").is_file()


def test_folder_has_beir_layout_and_hashes_of_files(cli: Cli, tmp_path: Path) -> None:
    corpora = {
        "corpus-human": raw_docs("human"),
        "0.2/corpus-llm": raw_docs("llm"),
        "1.0/corpus-llm": raw_docs("llm"),
    }
    folder = write_paper(tmp_path / "paper", corpora=corpora)
    assert cli("data", "load", folder, "-o", tmp_path / "new", "--quiet") == (0, "", "")
    assert load(tmp_path / "new") == load(folder)
    assert (tmp_path / "new" / "corpus.jsonl").exists()
    about = json.loads((tmp_path / "new" / "loaded.json").read_text())
    names = [path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()]
    assert about["files"] == {name: sha256(folder / name) for name in names}
    assert len(names) == 5


@pytest.mark.parametrize("name", ["own.qrels", "own.tsv", "own.tsv.gz"])
def test_judgments_of_ones_own_are_saved_under_their_name(
    cli: Cli, tmp_path: Path, name: str
) -> None:
    qrels_path, folder = write(tmp_path / name, "q3 0 d1 1\n"), write_beir(tmp_path / "a")
    _, _, err = cli(
        "data", "load", folder, "-o", tmp_path / "b", "--qrels", qrels_path, "--docs", "judged"
    )
    assert sorted(p.name for p in (tmp_path / "b" / "qrels").iterdir()) == ["own.tsv"]
    assert load(tmp_path / "b").qrels.rows() == [("q3", "d1", 1)]
    assert load(tmp_path / "b").ids.to_list() == ["d1"]
    assert err.splitlines()[-1].startswith(
        "warning: kept 1 of 3 documents. Unjudged ones do not compete"
    )


@pytest.mark.parametrize(
    "verb", [("load", "hub:nobody/nothing"), ("build", "nq320k", "no-dev.jsonl")]
)
def test_unwritable_output_is_refused_before_reading(
    cli: Cli, tmp_path: Path, verb: tuple[str, ...]
) -> None:
    (closed := tmp_path / "closed").mkdir()
    with no_permission(closed):
        assert "cannot be written" in refused(cli, "data", *verb, "-o", closed / "x")


def test_without_judgments_no_check_is_advised(cli: Cli, tmp_path: Path) -> None:
    folder = write_cocktail(tmp_path / "in")
    code, _, err = cli("data", "load", folder, "--qrels", "none", "-o", tmp_path / "out")
    assert code == 0
    assert err == (
        f"{tmp_path / 'out'}: Collection(3 human, 3 llm; 3 queries, 0 judgments), from {folder}\n"
    )
    assert not (tmp_path / "out" / "qrels").exists()


def test_mix_unites_folders_and_reads_and_writes_parts(cli: Cli, tmp_path: Path) -> None:
    folders = [
        write_cocktail(tmp_path / side, corpora={side: raw_docs(side)}) for side in ("human", "llm")
    ]
    joint, first, second = (tmp_path / name for name in ("whole", "one", "two"))
    assert cli("data", "mix", *folders, "-o", joint) == (0, "", f"{joint}: {toy()!r}\n")
    assert cli("data", "load", joint, "-o", first, "--rows-per-file", 4, "--quiet") == (0, "", "")
    assert cli("data", "mix", first, first, "-o", second, "--rows-per-file", 3).code == 0
    assert [rt.load(folder) for folder in (joint, first, second)] == [toy()] * 3
    assert (joint / "corpus.jsonl").is_file()
    for folder in (first, second):
        assert len(list((folder / "corpus").iterdir())) == 2
        assert not (folder / "corpus.jsonl").exists()


@pytest.mark.long
def test_a_collection_is_built_and_its_texts_are_cut(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = nq_files(tmp_path)
    code, out, err = cli("data", "build", "nq320k", *paths, "-o", tmp_path / "nq")
    assert code == 0
    assert out.splitlines() == [
        "documents            3   109,739 published   differs",
        "test queries         4   7,830 published   differs",
        "mean words        7.67   199.79 published   differs",
    ]
    assert err.splitlines() == [
        f"{tmp_path / 'nq'}: Collection(3 human; 4 queries, 4 judgments)",
        (
            "Not as published: 3 training and 4 development questions were read, but there are "
            "307,373 and 7,830."
        ),
        (
            "Texts begin with their title and are truncated; rewrites may not be: `ranktilt "
            "check` shows it."
        ),
        f"Next: ranktilt generate rewrite {tmp_path / 'nq'} --llm openai:MODEL --dry-run",
    ]
    assert load(tmp_path / "nq") == build_nq320k(paths).collection
    monkeypatch.setattr(nq320k, "PUBLISHED", {"documents": 3, "test queries": 4, "mean words": 2.0})
    code, out, err = cli(
        "data", "build", "nq320k", *paths, "-o", tmp_path / "cut", "--words", "2", "--quiet"
    )
    assert (code, err, out.splitlines()[0]) == (0, "", "documents            3   3 published"), (
        "as published"
    )
    assert load(tmp_path / "cut").docs["text"][0] == "Red Apple"


def questions(path: Path, n: int = 40) -> Path:
    rows = [
        {
            "question": f"What is known of topic {number}?",
            "human_answers": [f"I read about topic {number} in book {number % 7}."],
            "chatgpt_answers": [
                f"Topic {number} is a subject.",
                f"There are {number} facts on topic {number}.",
            ],
        }
        for number in range(n)
    ]
    path.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    return path


def test_a_folder_is_built_and_every_verb_reads_it(cli: Cli, tmp_path: Path) -> None:
    destination = tmp_path / "qa"
    files = [questions(tmp_path / "law.jsonl"), questions(tmp_path / "art.jsonl", 20)]
    code, out, err = cli(
        "data", "build", "retrieval-qa", *files, "-o", destination, "--run-depth", 5, "--triples", 3
    )
    assert code == 0
    assert out == (
        "law          40 questions: train 28, dev 1, test 11\n"
        "art          20 questions: train 14, dev 1, test 5\n"
        "judgments    300: train 210, dev 12, test 78\n"
        "human        60 answers; 0 empty answers left out, 0 questions without an answer\n"
        "chatgpt      120 answers; 0 empty answers left out, 0 questions without an answer\n"
        "asked again  20 questions, in the split where they are asked first\n"
    )
    assert (
        err.splitlines()[-1] == f"Next: ranktilt audit {destination} --by source -r bm25 -m nDCG@10"
    )
    about = orjson.loads((destination / "built.json").read_bytes())
    assert set(about["inputs"]) == {"law.jsonl", "art.jsonl"}
    assert about["triples"] == {"negatives": 3, "seed": 0}
    assert (about["shares"], about["fields"]["llm"]) == ([69, 2.5, 28.5], "chatgpt_answers")
    for by in ("source", "domain"):
        printed = cli("audit", destination, "--by", by, "-r", "bm25", "-m", "nDCG@10", *QUICK)
        assert printed.code == 0
        assert "Groups are not twins" in printed.out
    assert (
        cli("rank", destination, "-r", "bm25@3", "--split", "train", "-o", tmp_path / "r.trec").code
        == 0
    )
    run = destination / "runs" / "bm25_human_test.trec.gz"
    judged = destination / "msmarco" / "qrels_human_test.tsv"
    assert (
        cli(
            "audit", destination, "--run", run, "--qrels", judged, "--by", "none", "-m", "AP@1000"
        ).code
        == 0
    )


def test_options_say_fields_sizes_and_names(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "all.jsonl"
    rows = [
        {"q": f"question {n}", "people": f"answer {n}", "bot": f"reply {n}", "of": "ab"[n % 2]}
        for n in range(20)
    ]
    file.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    destination = tmp_path / "qa"
    fields = [
        "--question",
        "q",
        "--human-answers",
        "people",
        "--llm-answers",
        "bot",
        "--domain",
        "of",
    ]
    more = [
        "--shares",
        "50,10,40",
        "--llm-name",
        "gpt-4",
        "--run-depth",
        0,
    ]
    done = cli(
        "data",
        "build",
        "retrieval-qa",
        file,
        "-o",
        destination,
        *fields,
        *map(str, more),
        "--seed",
        "3",
    )
    assert done.code == 0
    assert done.out.splitlines()[:2] == [
        "a            10 questions: train 5, dev 1, test 4",
        "b            10 questions: train 5, dev 1, test 4",
    ]
    assert load(destination).sources == ("human", "gpt-4")


HEAD = "q_id,q_text,doc_id,gender,doc_title,first sentence\n"
TOPICS = {"q1": "cold water", "q2": "old clocks", "q3": "red apples"}


def people(tmp_path: Path, *, unlabelled: int = 0) -> Path:
    """Eight men and four women for each query, whose texts name what the query asks for."""
    lines = []
    for query, text in TOPICS.items():
        for n in range(12):
            gender = "female" if n % 3 == 0 else "male"
            if n < unlabelled:
                gender = ""
            lines.append(
                f"{query},{text},{query}-{n},{gender},Person {n},Known for {text} and {n} books.\n"
            )
    return write(tmp_path / "people.csv", HEAD + "".join(lines))


@pytest.mark.long
def test_a_folder_is_built_and_told_of(cli: Cli, tmp_path: Path) -> None:
    destination, build = (
        tmp_path / "people",
        ("data", "build", "fair-ranking", people(tmp_path), "--protected", "female"),
    )
    code, out, err = cli(*build, "--items", 12, "-o", destination)
    assert code == 0
    lines = dict(line.split("  ", 1) for line in out.splitlines())
    assert lines["queries"].strip() == "3 of 3"
    assert lines["no label"].strip() == "0 documents, left out"
    assert lines["P@20 by chance"].strip() == "0.300"  # a list of 12 fills 12 of 20 ranks
    candidates = f"replay:{destination}/candidates.trec"
    assert err.splitlines()[-1] == (
        f"Next: ranktilt audit {destination} --by gender --protected female -m P@20 -m "
        "ExposureRatio@12 "
        f"-r {candidates} -r '{candidates}>>bm25'"
    )
    collection = load(destination)
    assert set(collection.docs["gender"]) == {"female", "male"}
    assert collection.queries.rows() == list(TOPICS.items())
    about = orjson.loads((destination / "built.json").read_bytes())
    assert about["files"] == {"people.csv": sha256(tmp_path / "people.csv")}
    assert (about["seed"], about["blocks"], about["min_judged"]) == (0, "natural", 12)
    runs = [Run.load(destination / name) for name in ("candidates.trec", "initial.trec")]
    assert [run.spec["ranker"] for run in runs] == ["shuffled items", "initial ranking"]
    assert all(set(np.diff(run.offsets)) == {12} for run in runs)
    printed = cli(
        "audit",
        destination,
        "--by",
        "gender",
        "--protected",
        "female",
        "-m",
        "P@20",
        "-r",
        f"{candidates}>>bm25",
    )
    assert printed.code == 0
    err = cli(*build, "--items", 6, "--blocks", "3,0,2,1", "-o", tmp_path / "one").err
    assert (
        "warning: 3 lists have fewer than 2 items of a group; their exposure ratio says little, "
        "or "
        "nothing\n"
    ) in err


REGIONS = ("Europe", "Asia", "Northern America", "Europe|Asia", "Africa", "Côte d'Ivoire")


@pytest.mark.long
def test_every_verb_reads_a_union_of_groups(cli: Cli, tmp_path: Path) -> None:
    """build, audit, rank and pairwise mean the same documents, and the next command can be
    pasted.
    """
    protected, side, members = "non-Europe|Asia", "non-Asia|Europe", {2, 4, 5}
    rows = [
        f"{query},{text},{query}-{n},{REGIONS[n % 6]},Person {n},Known for {text} and {n} books.\n"
        for query, text in TOPICS.items()
        for n in range(12)
    ]
    file = write(tmp_path / "regions.csv", HEAD.replace("gender", "region") + "".join(rows))
    destination, audited, chosen = (
        tmp_path / "lists",
        tmp_path / "audit.json",
        tmp_path / "pairs.json",
    )
    code, _, err = cli(
        "data",
        "build",
        "fair-ranking",
        file,
        "--protected",
        protected,
        "--items",
        12,
        "-o",
        destination,
    )
    assert code == 0
    pasted = shlex.split(err.splitlines()[-1].removeprefix("Next: ranktilt "))
    assert cli(*pasted, *QUICK, "--json", audited).code == 0
    assert Audit.load(audited).pairs[0][0] == side
    gated = cli(
        "gate",
        audited,
        "--pair",
        f"{protected},{Audit.load(audited).pairs[0][1]}",
        "--max-tilt",
        199,
    )
    assert gated.code != 2, gated.err
    fair = (
        f"replay:{destination}/candidates.trec>>fair-rerank(by=region,group={protected},target=100)"
    )
    assert cli("rank", destination, "-r", fair, "-o", tmp_path / "fair.trec").code == 0
    collection, run = load(destination), Run.load(tmp_path / "fair.trec").frame()
    inside = {doc for doc in collection.ids if int(doc.partition("-")[2]) % 6 in members}
    for query in TOPICS:  # as many as a list has, before all others
        docs = run.filter(query_id=query).sort("rank")["doc_id"].to_list()
        assert [doc in inside for doc in docs] == sorted(
            (doc in inside for doc in docs), reverse=True
        )
    choices = [
        {
            "query": query,
            "first": first,
            "second": second,
            "choice": first if first in inside else second,
        }
        for query in TOPICS
        for chosen_doc, rejected_doc in zip(
            sorted(inside), sorted({*collection.ids} - inside), strict=False
        )
        for first, second in ((chosen_doc, rejected_doc), (rejected_doc, chosen_doc))
    ]
    stored = write(
        tmp_path / "choices.jsonl", "".join(f"{json.dumps(choice)}\n" for choice in choices)
    )
    by = ("--by", "region", "--protected", protected, *QUICK, "--json", chosen)
    assert cli("pairwise", destination, "--decisions", stored, *by).code == 0
    result = PairwiseAudit.load(chosen)
    assert result.protected == side
    assert {outcome.protected.value for outcome in result.outcomes} == {1.0}


NAMES = ["a[1]", "{a,a1}", "a b@2,(c)"]
DECOYS = ["a1", "a", "aa"]
"""What the names would match as patterns; each lies beside, with other content."""
READERS: dict[str, Callable[[Path], Any]] = {
    "docs.parquet": lambda path: read_rows(path)["id"].item(),
    "labels.csv": lambda path: read_labels(path)["doc_id"].item(),
    "labels.parquet": lambda path: read_labels(path)["doc_id"].item(),
    "qrels.parquet": lambda path: read_judgments(path)["query_id"].item(),
}
"""Of the files that a library of tables reads, which takes patterns."""


def one_row_table(path: Path, kind: str, name: str) -> Path:
    """Write a table of one row, whose id is `name`."""
    columns: dict[str, dict[str, Any]] = {
        "docs": {"_id": name, "text": ""},
        "labels": {"doc_id": name, "source": "human"},
        "qrels": {"query-id": name, "corpus-id": "d", "score": 1},
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pl.DataFrame([columns[kind]])
    (table.write_parquet if path.suffix == ".parquet" else table.write_csv)(path)
    return path


@pytest.mark.parametrize("file", READERS)
@pytest.mark.parametrize("where", ["file", "folder"])
def test_the_named_file_is_read(tmp_path: Path, file: str, where: str) -> None:
    kind, _, end = file.partition(".")
    for name in NAMES:
        path = tmp_path / (f"{name}.{end}" if where == "file" else f"{name}/f.{end}")
        for decoy in DECOYS:
            one_row_table(Path(str(path).replace(name, decoy)), kind, "decoy")
        assert READERS[file](one_row_table(path, kind, "wanted")) == "wanted"
