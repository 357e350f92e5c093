"""The folder that a rewriting leaves: its files, its manifest, and how an earlier version is replaced."""

import gzip
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ranktilt as rt
from ranktilt.collection import Collection
from ranktilt.datasets.load import load, splits
from ranktilt.errors import UserError
from ranktilt.generation.manifest import require_ours
from ranktilt.generation.rewrite.rewrite import Rewritten, rewrite
from ranktilt.generation.rewrite.save import save_rewritten
from ranktilt.generation.settings import Rewriting
from ranktilt.llm.journal import Journal
from tests.generation.scripted import GOOD, TEXTS, Scripted, good, humans
from tests.toy import no_permission, no_room, tsv, write, write_beir

SOURCE = "tiny-tmp0.2"
NAMES = [
    "README.md", "answers.jsonl.gz", "corpus.jsonl", "left-out.jsonl", "manifest.json", "qrels/test.tsv",
    "queries.jsonl",
]  # fmt: skip
Made = Callable[..., Rewritten]


@pytest.fixture
def made(tmp_path: Path) -> Made:
    """Rewrite with a journal of this test."""

    def run(collection: Collection | None = None, llm: Scripted | None = None, **how: Any) -> Rewritten:
        journal = Journal(tmp_path / "journal")
        return rewrite(collection or humans(), llm or Scripted(), Rewriting(**how), journal=journal)

    return run


def files(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def rows(path: Path) -> list[dict[str, Any]]:
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return [json.loads(line) for line in data.splitlines()]


def test_the_folder_is_read_back_equal(made: Made, tmp_path: Path) -> None:
    rewritten = made()
    saved = save_rewritten(rewritten, tmp_path / "out")
    assert rt.load(tmp_path / "out") == rewritten.collection
    assert list(files(tmp_path / "out")) == NAMES
    assert saved == (tmp_path / "out", ("test",))


def test_the_manifest_holds_hashes_of_what_was_read_and_written(made: Made, tmp_path: Path) -> None:
    given = write_beir(tmp_path / "in", docs=[{"_id": d, "text": t} for d, t in TEXTS.items()])
    save_rewritten(made(load(given)), tmp_path / "out")
    content = json.loads((tmp_path / "out" / "manifest.json").read_text())
    there = {name: data for name, data in files(tmp_path / "out").items() if name != "manifest.json"}
    assert content["files"] == {name: hashlib.sha256(data).hexdigest() for name, data in there.items()}
    read = {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in given.rglob("*") if path.is_file()}
    assert content["inputs"] == read
    assert content["what"] == "ranktilt generate rewrite"
    assert content["spec"]["llm"] == {"llm": "scripted lab/tiny", "model": "lab/tiny"}
    assert set(content["packages"]) >= {"openai", "polars"}


def test_all_splits_are_carried_over(made: Made, tmp_path: Path) -> None:
    given = write_beir(tmp_path / "in", docs=[{"_id": d, "text": t} for d, t in TEXTS.items()])
    write(given / "qrels" / "train.tsv", tsv([("q1", "d3", 3), ("q2", "gone", 1)]))
    write(given / "qrels" / "dev.tsv.gz", tsv([("q3", "d1", 1)]))
    saved = save_rewritten(made(load(given)), tmp_path / "out")
    assert saved.splits == ("dev", "test", "train")
    train = load(tmp_path / "out", split="train", ignore_unknown=True).qrels
    assert sorted(train.rows()) == [("q1", "d3-human", 3), ("q1", f"d3-{SOURCE}", 3), ("q2", "gone", 1)]
    dev = load(tmp_path / "out", split="dev").qrels
    assert sorted(dev.rows()) == [("q3", "d1-human", 1), ("q3", f"d1-{SOURCE}", 1)]
    assert set(splits(tmp_path / "out")) == {"dev", "test", "train"}


def test_every_answer_is_kept_as_it_came(made: Made, tmp_path: Path) -> None:
    def says(prompt: str, times: int) -> str:
        return TEXTS["d2"] if "river" in prompt else f"Sure, here is the rewritten text:\n\n{good(prompt, times)}"

    save_rewritten(made(llm=Scripted(says), attempts=2), tmp_path / "out")
    answers = rows(tmp_path / "out" / "answers.jsonl.gz")
    assert [(row["_id"], row["attempt"], row["used"], row["flags"]) for row in answers] == [
        ("d1-human", 1, True, []),
        ("d2-human", 1, False, ["copied"]),
        ("d3-human", 1, True, []),
        ("d2-human", 2, False, ["copied"]),
    ]
    assert answers[0]["answer"] == f"Sure, here is the rewritten text:\n\n{GOOD['d1']}"
    assert answers[0]["opening"].startswith("Sure")
    assert (answers[0]["model"], answers[0]["revision"], answers[0]["finish"]) == ("tiny-v1", "fp_1", "stop")
    assert len(answers[0]["prompt"]) == 64
    assert answers[0]["time"].endswith("Z")


def test_the_same_answers_make_the_same_bytes(made: Made, tmp_path: Path) -> None:
    for name in ("one", "two"):
        save_rewritten(made(), tmp_path / name)
    assert files(tmp_path / "one") == files(tmp_path / "two")
    save_rewritten(made(first=1), tmp_path / "three")
    save_rewritten(made(), tmp_path / "three")  # a rerun replaces its own folder
    assert files(tmp_path / "one") == files(tmp_path / "three")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("audit.json", "{}", "{out}/audit.json: is no part of rewrites and would be lost; move it, or"),
        ("manifest.json", "{}", "{out}/README.md: is no part of rewrites and would be lost; move it, or"),
        ("manifest.json", "{", "{out}/manifest.json: expected a manifest as JSON: "),
        ("manifest.json", '{"what": "ranktilt generate rewrite", "files": 3}', "{out}/manifest.json: expected a manif"),
    ],
)  # fmt: skip
def test_what_would_be_lost_is_refused(made: Made, tmp_path: Path, name: str, content: str, message: str) -> None:
    out = tmp_path / "out"
    rewritten = made()
    save_rewritten(rewritten, out)
    (out / name).write_text(content)
    before = files(out)
    with pytest.raises(UserError) as caught:
        save_rewritten(rewritten, out)
    assert str(caught.value).startswith(message.format(out=out))
    assert files(out) == before


def test_the_rewrites_of_another_collection_are_not_replaced(made: Made, tmp_path: Path) -> None:
    for name in ("d1", "d2"):
        docs = [{"_id": name, "text": TEXTS[name], "metadata": {"u": name}}]
        write_beir(tmp_path / name, docs=docs, qrels=[("q1", name, 1)])
    first = made(load(tmp_path / "d1"))
    assert first.collection.docs["metadata"].null_count() == 1  # the rewrite has none
    save_rewritten(first, tmp_path / "out")
    before = files(tmp_path / "out")
    with pytest.raises(UserError, match=r"out: holds rewrites of another collection, .*/d1; choose another folder or"):
        save_rewritten(made(load(tmp_path / "d2")), tmp_path / "out")
    assert files(tmp_path / "out") == before
    with no_permission(tmp_path), pytest.raises(UserError, match="cannot be written: Permission denied"):
        require_ours(tmp_path / "new")


def test_a_full_disk_leaves_the_earlier_version(made: Made, tmp_path: Path) -> None:
    save_rewritten(made(first=1), tmp_path / "out")
    before = files(tmp_path / "out")
    rewritten = made()
    with no_room(1_000), pytest.raises(UserError, match=r"cannot be written: File too large"):
        save_rewritten(rewritten, tmp_path / "out")
    assert files(tmp_path / "out") == before
    assert [p.name for p in tmp_path.iterdir() if p.name != "journal"] == ["out"]
