"""The folder that a rewriting leaves: its files, its manifest and data card, and what may not be
replaced.
"""

import gzip
import hashlib
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ranktilt.cli.main import main
from ranktilt.data.collection import Collection
from ranktilt.data.loading.load import load, splits
from ranktilt.errors import UserError
from ranktilt.generation.manifest import require_ours
from ranktilt.generation.output_folder import one_writer
from ranktilt.generation.pooling import pool
from ranktilt.generation.rewrite.rewrite import Rewritten, rewrite
from ranktilt.generation.rewrite.save import datacard, save_rewritten
from ranktilt.generation.settings import Rewriting
from ranktilt.llm.base import Failure
from ranktilt.llm.journal import Journal
from ranktilt.rankers.lexical.bm25 import BM25
from tests.generation.scripted import GOOD, TEXTS, Scripted, answer, good, humans, texts_of
from tests.toy import no_permission, tsv, write, write_beir

SOURCE = "tiny-tmp0.2"
NAMES = [
    "README.md",
    "answers.jsonl.gz",
    "corpus.jsonl",
    "left-out.jsonl",
    "manifest.json",
    "qrels/test.tsv",
    "queries.jsonl",
]
RewriteHumans = Callable[..., Rewritten]


@pytest.fixture
def rewrite_humans(tmp_path: Path) -> RewriteHumans:
    """Rewrite with a journal of this test."""

    def run(
        collection: Collection | None = None,
        llm: Scripted | None = None,
        only: Any = None,
        **options: Any,
    ) -> Rewritten:
        journal = Journal(tmp_path / "journal")
        return rewrite(
            collection or humans(),
            llm or Scripted(),
            Rewriting(**options),
            only=only,
            journal=journal,
        )

    return run


def files(folder: Path) -> dict[str, bytes]:
    return {
        p.relative_to(folder).as_posix(): p.read_bytes()
        for p in sorted(folder.rglob("*"))
        if p.is_file()
    }


def rows(path: Path) -> list[dict[str, Any]]:
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return [json.loads(line) for line in data.splitlines()]


def test_the_folder_is_read_back_equal_with_all_splits_and_a_manifest_of_hashes(
    rewrite_humans: RewriteHumans, tmp_path: Path
) -> None:
    source_folder = write_beir(
        tmp_path / "in", docs=[{"_id": d, "text": t} for d, t in TEXTS.items()]
    )
    rewritten = rewrite_humans(load(source_folder))
    saved = save_rewritten(rewritten, tmp_path / "out")
    assert (saved.folder, saved.splits) == (tmp_path / "out", ("test",))
    assert load(tmp_path / "out") == rewritten.collection
    written = files(tmp_path / "out")
    assert list(written) == NAMES
    content = json.loads(written.pop("manifest.json"))
    assert content["files"] == {
        name: hashlib.sha256(data).hexdigest() for name, data in written.items()
    }
    read = {
        str(path): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in source_folder.rglob("*")
        if path.is_file()
    }
    assert content["inputs"] == read
    assert content["what"] == "ranktilt generate rewrite"
    assert content["spec"]["llm"] == {"llm": "scripted lab/tiny", "model": "lab/tiny"}
    assert set(content["packages"]) >= {"openai", "polars"}
    write(source_folder / "qrels" / "train.tsv", tsv([("q1", "d3", 3), ("q2", "gone", 1)]))
    write(source_folder / "qrels" / "dev.tsv.gz", tsv([("q3", "d1", 1)]))
    saved = save_rewritten(rewrite_humans(load(source_folder)), tmp_path / "out")
    assert saved.splits == ("dev", "test", "train")
    train = load(tmp_path / "out", split="train", ignore_unknown=True).qrels
    assert sorted(train.rows()) == [
        ("q1", "d3-human", 3),
        ("q1", f"d3-{SOURCE}", 3),
        ("q2", "gone", 1),
    ]
    dev = load(tmp_path / "out", split="dev").qrels
    assert sorted(dev.rows()) == [("q3", "d1-human", 1), ("q3", f"d1-{SOURCE}", 1)]
    assert set(splits(tmp_path / "out")) == {"dev", "test", "train"}


def test_every_answer_is_kept_as_it_came(rewrite_humans: RewriteHumans, tmp_path: Path) -> None:
    def says(prompt: str, times: int) -> str:
        return (
            TEXTS["d2"]
            if "river" in prompt
            else f"Sure, here is the rewritten text:\n\n{good(prompt, times)}"
        )

    save_rewritten(rewrite_humans(llm=Scripted(says), attempts=2), tmp_path / "out")
    answers = rows(tmp_path / "out" / "answers.jsonl.gz")
    assert [(row["_id"], row["attempt"], row["used"], row["flags"]) for row in answers] == [
        ("d1-human", 1, True, []),
        ("d2-human", 1, False, ["copied"]),
        ("d3-human", 1, True, []),
        ("d2-human", 2, False, ["copied"]),
    ]
    first = answers[0]
    assert first["answer"] == f"Sure, here is the rewritten text:\n\n{GOOD['d1']}"
    assert first["opening"].startswith("Sure")
    assert (first["model"], first["revision"], first["finish"]) == ("tiny-v1", "fp_1", "stop")
    assert (len(first["prompt"]), first["time"][-1]) == (64, "Z")
    assert texts_of(load(tmp_path / "out"), SOURCE)[f"d1-{SOURCE}"] == GOOD["d1"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "audit.json",
            "{}",
            "{out}/audit.json: is not part of rewrites and would be lost; move it, or",
        ),
        (
            "manifest.json",
            "{}",
            "{out}/README.md: is not part of rewrites and would be lost; move it, or",
        ),
        ("manifest.json", "{", "{out}/manifest.json: expected a manifest as JSON: "),
        (
            "manifest.json",
            '{"what": "ranktilt generate rewrite", "files": 3}',
            "{out}/manifest.json: expected a manif",
        ),
    ],
)
def test_what_would_be_lost_is_refused(
    rewrite_humans: RewriteHumans, tmp_path: Path, name: str, content: str, message: str
) -> None:
    out = tmp_path / "out"
    rewritten = rewrite_humans()
    save_rewritten(rewritten, out)
    (out / name).write_text(content)
    before = files(out)
    with pytest.raises(UserError) as caught:
        save_rewritten(rewritten, out)
    assert str(caught.value).startswith(message.format(out=out))
    assert files(out) == before


def test_the_rewrites_of_another_collection_are_not_replaced(
    rewrite_humans: RewriteHumans, tmp_path: Path
) -> None:
    for name in ("d1", "d2"):
        docs = [{"_id": name, "text": TEXTS[name], "metadata": {"u": name}}]
        write_beir(tmp_path / name, docs=docs, qrels=[("q1", name, 1)])
    first = rewrite_humans(load(tmp_path / "d1"))
    assert first.collection.docs["metadata"].null_count() == 1  # the rewrite has none
    save_rewritten(first, tmp_path / "out")
    before = files(tmp_path / "out")
    with pytest.raises(
        UserError,
        match=r"out: holds rewrites of another collection, .*/d1; choose another folder or",
    ):
        save_rewritten(rewrite_humans(load(tmp_path / "d2")), tmp_path / "out")
    assert files(tmp_path / "out") == before
    with (
        no_permission(tmp_path),
        pytest.raises(UserError, match="cannot be written: Permission denied"),
    ):
        require_ours(tmp_path / "new")


@pytest.fixture
def card(rewrite_humans: RewriteHumans) -> Any:
    return lambda *arguments, **options: datacard(
        rewrite_humans(*arguments, **options), ("dev", "test")
    )


def cells(card: str, name: str) -> list[str]:
    row = next(line for line in card.splitlines() if line.startswith(f"| {name} |"))
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", row)[2:-1]]


def test_the_card_says_model_sampling_dates_titles_pool_licence_files_and_splits(card: Any) -> None:
    text = card(
        llm=Scripted(lambda p, n: answer(good(p, n), model="other" if "river" in p else "tiny-v1"))
    )
    assert cells(text, "asked for") == ["`lab/tiny`"]
    assert cells(text, "answered") == ["`tiny-v1` (2), `other` (1)"]
    assert cells(text, "revision") == ["`fp_1`"]
    assert "The model that answered has another name" in text
    text = card(temperatures=(0.2, 1.0), max_tokens=400, seed=7, top_p=0.9)
    expected = {
        "temperature": "0.2 and 1.0",
        "top_p": "0.9",
        "maximum tokens per answer": "400",
        "seed": "7",
    }
    assert {name: cells(text, name) for name in expected} == {
        name: [value] for name, value in expected.items()
    }
    for name in ("first answer", "last answer"):
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", cells(text, name)[0])
    assert "This is a trial: only the first 2 were requested." in card(first=2)
    assert "This is a trial: only the first one was requested." in card(first=1)
    llm = Scripted(lambda prompt, times: "A title" if "title" in prompt else good(prompt, times))
    for titles, sentence in {
        "keep": "Both twins carry the title of the original.",
        "rewrite": "Titles were rewritten too, each with its own request",
        "drop": "Rewrites have no title, but originals keep theirs",
    }.items():
        assert f"## Titles\n\n{sentence}" in card(llm=llm, titles=titles)
    pooled, chosen = card(only=pool(humans(), [BM25()], depth=1)), card(only=["d1"])
    assert "Queries chose the documents" in pooled
    assert "- pool: 2 of 3 documents chosen by 2 queries" in pooled
    assert "- top 1 of bm25" in pooled
    assert "- only named documents were rewritten" in chosen
    assert "Queries chose" not in chosen
    assert "## Pool" not in card()
    text = card()
    assert "The source texts keep their licence" in text
    assert "The terms of the model" in text
    assert [name for name in (*NAMES[1:], "qrels/dev.tsv") if f"| `{name}` |" not in text] == []
    assert "Judgments (dev, test) hold for a document and its rewrites alike." in text


def test_card_of_a_collection_without_sources_says_who_named_the_side(card: Any) -> None:
    text = card(humans(source=[None] * 3), of="people")
    assert "Documents of source `people`" in text
    assert (
        "The collection names no source: 3 documents are called `people` because the person who "
        "had them rewritten said so."
    ) in text
    assert "human" not in text
    assert "names no source" not in card()


def test_the_card_counts_by_source_and_gives_the_prompt_in_full(card: Any, tmp_path: Path) -> None:
    def says(prompt: str, times: int) -> str:
        return TEXTS["d2"] if "river" in prompt else good(prompt, times)

    text = card(humans({**TEXTS, "d4": ""}), Scripted(says), attempts=2, temperatures=(0.2, 1.0))
    expected = {
        "documents": 4,
        "rewritten": 2,
        "left out: empty": 1,
        "left out: flagged": 1,
        "answers": 4,
        "answers flagged: copied": 2,
        "tokens read": 80,
        "tokens written": 40,
    }
    assert {name: cells(text, name) for name in expected} == {
        name: [str(n)] * 2 for name, n in expected.items()
    }
    long = "abcd " * 100 + "end."

    def says(prompt: str, times: int) -> Any:
        return (
            Failure(kind="too long", message="full")
            if len(prompt.split()) > 60
            else "dcba " * 30 + "end."
        )

    text = card(humans({"d1": long}), Scripted(says), truncate=True, attempts=1)
    assert cells(text, "made from a text that was cut") == ["1"]
    assert "`cut_to`" in text
    file = tmp_path / "mine.txt"
    file.write_text("```\nAnew: {title}\n{text}\n```\nOnly the text.\n", encoding="utf-8")
    text = card(prompt=file)
    assert "````text\n```\nAnew: {title}\n{text}\n```\nOnly the text.\n````" in text
    assert (
        f"From `{file}`; `{{text}}` stands for the document. The model gets the document's text "
        "and title,"
    ) in text
    assert "nothing from the queries or judgments" in text
    assert "```text\nPlease rewrite the following text: {text}\n```" in card()


def test_a_folder_that_another_command_writes_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    source_folder, out = write_beir(tmp_path / "in"), tmp_path / "out"
    options = ["--llm", "openai:tiny(base_url=http://127.0.0.1:9/v1)", "-o", str(out)]
    monkeypatch.setattr(
        sys, "argv", ["ranktilt", "generate", "rewrite", str(source_folder), *options]
    )
    with one_writer(out), pytest.raises(SystemExit, match="2"):
        main()
    end = f"{out}: another command is writing it; wait for it, or name another folder\n"
    assert capfd.readouterr().err.endswith(end)
