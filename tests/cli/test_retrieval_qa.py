"""ranktilt data build retrieval-qa: a folder that every verb reads, and one line for what cannot be built."""

from pathlib import Path

import orjson
import pytest

from ranktilt.datasets.load import load
from tests.cli.conftest import Cli, refused


def questions(path: Path, n: int = 40, **more: object) -> Path:
    rows = [
        {
            "question": f"What is known of topic {number}?",
            "human_answers": [f"I read about topic {number} in book {number % 7}."],
            "chatgpt_answers": [f"Topic {number} is a subject.", f"There are {number} facts on topic {number}."],
            **more,
        }
        for number in range(n)
    ]
    path.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    return path


def test_a_folder_is_built_and_every_verb_reads_it(cli: Cli, tmp_path: Path) -> None:
    place = tmp_path / "qa"
    files = [questions(tmp_path / "law.jsonl"), questions(tmp_path / "art.jsonl", 20)]
    code, out, err = cli("data", "build", "retrieval-qa", *files, "-o", place, "--run-depth", 5, "--triples", 3)
    assert code == 0
    assert out == (
        "law          40 questions: train 28, dev 1, test 11\n"
        "art          20 questions: train 14, dev 1, test 5\n"
        "judgments    300: train 210, dev 12, test 78\n"
        "human        60 answers; 0 empty answers left out, 0 questions without any\n"
        "chatgpt      120 answers; 0 empty answers left out, 0 questions without any\n"
        "asked again  20 questions, in the split of the first asking\n"
    )
    assert err.splitlines()[-1] == f"Next: ranktilt audit {place} --by source -r bm25 -m nDCG@10"
    about = orjson.loads((place / "built.json").read_bytes())
    assert set(about["inputs"]) == {"law.jsonl", "art.jsonl"}
    assert about["triples"] == {"negatives": 3, "seed": 0}
    assert (about["shares"], about["fields"]["llm"]) == ([69, 2.5, 28.5], "chatgpt_answers")
    for by in ("source", "domain"):
        shown = cli("audit", place, "--by", by, "-r", "bm25", "-m", "nDCG@10", "--resamples", 100)
        assert shown.code == 0
        assert "Groups are not twins" in shown.out
    assert cli("rank", place, "-r", "bm25@3", "--split", "train", "-o", tmp_path / "r.trec").code == 0
    run = place / "runs" / "bm25_human_test.trec.gz"
    judged = place / "msmarco" / "qrels_human_test.tsv"
    assert cli("audit", place, "--run", run, "--qrels", judged, "--by", "none", "-m", "AP@1000").code == 0


def test_options_say_fields_sizes_and_names(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "all.jsonl"
    rows = [{"q": f"question {n}", "people": f"answer {n}", "bot": f"reply {n}", "of": "ab"[n % 2]} for n in range(20)]
    file.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    place = tmp_path / "qa"
    fields = ["--question", "q", "--human-answers", "people", "--llm-answers", "bot", "--domain", "of"]
    more = ["--shares", "50,10,40", "--human-name", "people", "--llm-name", "gpt-4", "--run-depth", 0]
    done = cli("data", "build", "retrieval-qa", file, "-o", place, *fields, *map(str, more), "--seed", "3")
    assert done.code == 0
    assert done.out.splitlines()[:2] == [
        "a            10 questions: train 5, dev 1, test 4",
        "b            10 questions: train 5, dev 1, test 4",
    ]
    assert load(place).sources == ("people", "gpt-4")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--shares", "x"], "--shares expects three numbers, such as 80,10,10; got 'x'"),
        (["--llm-name", "a/b"], "source 'a/b' cannot be part of a file's name; choose another name"),
    ],
)
def test_what_cannot_be_built_is_one_line_and_no_folder(
    cli: Cli, tmp_path: Path, options: list[str], message: str
) -> None:
    file = questions(tmp_path / "law.jsonl")
    assert refused(cli, "data", "build", "retrieval-qa", file, "-o", tmp_path / "qa", *options) == message
    assert [one.name for one in tmp_path.iterdir()] == ["law.jsonl"]


def test_a_side_without_answers_is_one_line(cli: Cli, tmp_path: Path) -> None:
    file = questions(tmp_path / "law.jsonl", chatgpt_answers=[""])
    said = refused(cli, "data", "build", "retrieval-qa", file, "-o", tmp_path / "qa")
    assert (
        said == f"{file}: no question has an answer in the field 'chatgpt_answers'; --llm-answers names another field"
    )


def test_an_existing_collection_stays(cli: Cli, tmp_path: Path) -> None:
    file, place = questions(tmp_path / "law.jsonl"), tmp_path / "qa"
    assert cli("data", "build", "retrieval-qa", file, "-o", place, "--run-depth", 0).code == 0
    before = {one: one.read_bytes() for one in place.rglob("*") if one.is_file()}
    said = refused(cli, "data", "build", "retrieval-qa", file, "-o", place, "--seed", 1)
    assert said == f"{place}: holds files already; name a new folder"
    assert {one: one.read_bytes() for one in place.rglob("*") if one.is_file()} == before
