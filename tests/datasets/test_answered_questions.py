"""Questions with answers of two sides: what is read, what is left out, and what is refused in which words."""

import gzip
from pathlib import Path
from typing import Any

import orjson
import pytest

from ranktilt.datasets.answered_questions import QuestionFields, fold_question, read_answered
from ranktilt.errors import DataError, DataWarning
from tests.refusals import refused


def write(path: Path, *rows: Any) -> Path:
    path.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    return path


def row(question: str = "why?", human: Any = ("because",), llm: Any = ("as it is",), **more: Any) -> dict[str, Any]:
    return {"question": question, "human_answers": human, "chatgpt_answers": llm, **more}


def test_answers_of_both_sides_are_read_and_blank_ones_counted(tmp_path: Path) -> None:
    path = tmp_path / "medicine.jsonl"
    file = write(path, row(human=["because", " "], llm=["", "\n"]), row("how?", llm=" one text "))
    found = read_answered([file])
    first, second = found.questions
    assert (first.human, first.llm) == (("because",), ())
    assert second.llm == ("one text",)
    assert {one.domain for one in found.questions} == {"medicine"}
    assert dict(found.empty_answers) == {"human": 1, "llm": 2}
    assert found.unanswered == 0


def test_names_of_fields_and_domain_are_options(tmp_path: Path) -> None:
    lines = b'{"q": "why?", "people": ["so"], "model": "thus", "of": "law"}\n\n'
    file = tmp_path / "all.jsonl.gz"
    file.write_bytes(gzip.compress(lines))
    fields = QuestionFields(question="q", human="people", llm="model", domain="of")
    (one,) = read_answered([file], fields).questions
    assert (one.text, one.domain, one.human, one.llm) == ("why?", "law", ("so",), ("thus",))


def test_a_question_with_blank_answers_only_is_left_out_in_one_line(tmp_path: Path) -> None:
    file = write(tmp_path / "a.jsonl", row(), row("who?", human=[" "], llm=[]))
    message = f"1 question has no answer with any text in it, and will be left out (first: {file}:2)"
    with pytest.warns(DataWarning) as caught:
        found = read_answered([file])
    assert [str(one.message) for one in caught] == [message]
    assert (len(found.questions), found.unanswered) == (1, 1)


@pytest.mark.parametrize(
    ("lines", "line", "message"),
    [
        (b"[1]\n", 1, "expected one JSON object, got list: '[1]'"),
        (b'{"question": "a", "of": "law\\tmedicine"}\n', 1,
         "expected a name in one line in the field 'of', got 'law\\tmedicine'"),
        (b'{"question": " "}\n', 1, "expected a question in the field 'question', got ' '"),
        (b'{"question": "a", "human_answers": [1]}\n', 1,
         "expected an answer or a list of answers in the field 'human_answers', got [1]"),
        (b'{"question": "a", "human_answers": ["b"]}\n', None,
         "no question has an answer in the field 'chatgpt_answers'; choose another with --llm-answers"),
        (b'{"question": "a", "human_answers": [""], "chatgpt_answers": ["b"]}\n', None,
         "no question has an answer in the field 'human_answers'; choose another with --human-answers"),
    ],
)  # fmt: skip
def test_faults_name_their_line(tmp_path: Path, lines: bytes, line: int | None, message: str) -> None:
    file = tmp_path / "a.jsonl"
    file.write_bytes(lines)
    where = file if line is None else f"{file}:{line}"
    with refused(f"{where}: {message}", DataError):
        read_answered([file], QuestionFields(domain="of" if "'of'" in message else None))
    with refused(f"file {str(file)!r} is given twice"):
        read_answered([file, tmp_path / "." / "a.jsonl"])


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("What is  DNA?", "what is dna ?", True),
        ("\uff37hat is DNA", "what is DNA?!", True),
        ("what is C#", "what is C++", False),
        ("?", "!", False),
    ],
)
def test_folding(one: str, other: str, same: bool) -> None:
    assert (fold_question(one) == fold_question(other)) is same


@pytest.mark.parametrize(
    ("name", "questions", "human", "llm", "without"),
    [("open_qa", 1_187, 1_187, 3_546, 0), ("medicine", 1_248, 1_248, 1_334, 2), ("wiki_csai", 842, 842, 842, 0)],
)
def test_hc3_has_its_counts(shared_data: Path, name: str, questions: int, human: int, llm: int, without: int) -> None:
    found = read_answered([shared_data / "hc3" / f"{name}.jsonl"]).questions
    assert len(found) == questions
    assert sum(len(one.human) for one in found) == human
    assert sum(len(one.llm) for one in found) == llm
    assert sum(not one.llm for one in found) == without
