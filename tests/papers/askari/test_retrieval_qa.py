"""Questions with answers of two sides: how they are read, and the collection with splits that they
become.
"""

import gzip
import tracemalloc
from collections import Counter
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import orjson
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranktilt import Run
from ranktilt.data.collection import Collection
from ranktilt.data.files import sha256
from ranktilt.data.formats.judgments.qrels import read_qrels
from ranktilt.data.loading.load import load
from ranktilt.data.runs import run as run_module
from ranktilt.errors import DataError, DataWarning, UserError
from ranktilt.papers.askari.answered_questions import (
    AnsweredQuestion,
    AnsweredQuestions,
    QuestionFields,
    fold_question,
    read_answered,
)
from ranktilt.papers.askari.retrieval_qa import (
    SPLITS,
    QARules,
    RetrievalQA,
    assign_splits,
    build_retrieval_qa,
    summary,
)
from ranktilt.papers.askari.retrieval_qa_files import QAFiles, save_retrieval_qa
from ranktilt.papers.askari.triples import triples
from ranktilt.rankers.lexical.bm25 import BM25
from ranktilt.training.training_set import only_sources
from tests.refusals import refused
from tests.toy import collection_of, jsonl, write


def row(
    question: str = "why?", human: Any = ("because",), llm: Any = ("as it is",), **more: Any
) -> dict[str, Any]:
    return {"question": question, "human_answers": human, "chatgpt_answers": llm, **more}


def test_answers_of_both_sides_are_read_fields_are_options_and_questions_folded(
    tmp_path: Path,
) -> None:
    rows = [
        row(human=["because", " "], llm=["", "\n"]),
        row("how?", llm=" one text "),
        row("who?", human=" ", llm=[]),
    ]
    file = write(tmp_path / "medicine.jsonl", jsonl(rows))
    with pytest.warns(DataWarning) as caught:
        read = read_answered([file])
    message = (
        f"1 question has no answer with any text in it, and will be left out (first: {file}:3)"
    )
    assert [str(warning.message) for warning in caught] == [message]
    assert [(q.text, q.domain, q.human, q.llm) for q in read.questions] == [
        ("why?", "medicine", ("because",), ()),
        ("how?", "medicine", ("because",), ("one text",)),
    ]
    assert dict(read.empty_answers) == {"human": 2, "llm": 2}
    assert read.unanswered == 1
    file = write(
        tmp_path / "all.jsonl.gz",
        '{"q": "why?", "people": ["so"], "model": "thus", "of": "law"}\n\n',
    )
    fields = QuestionFields(question="q", human="people", llm="model", domain="of")
    assert read_answered([file], fields).questions == (
        AnsweredQuestion(text="why?", domain="law", human=("so",), llm=("thus",)),
    )
    assert (
        fold_question("What is  DNA?")
        == fold_question("what is dna ?")
        == fold_question("\uff37hat is DNA?!")
    )
    assert fold_question("what is C#") != fold_question("what is C++")
    assert fold_question("?") != fold_question("!")


@pytest.mark.parametrize(
    ("lines", "line", "message"),
    [
        (b"[1]\n", 1, "expected one JSON object, got list: '[1]'"),
        (
            b'{"question": "a", "of": "law\\tmedicine"}\n',
            1,
            "expected a name in one line in the field 'of', got 'law\\tmedicine'",
        ),
        (b'{"question": " "}\n', 1, "expected a question in the field 'question', got ' '"),
        (
            b'{"question": "a", "human_answers": [1]}\n',
            1,
            "expected an answer or a list of answers in the field 'human_answers', got [1]",
        ),
        (
            b'{"question": "a", "human_answers": ["b"]}\n',
            None,
            "no question has an answer in the field 'chatgpt_answers'; choose another with "
            "--llm-answers",
        ),
        (
            b'{"question": "a", "human_answers": [""], "chatgpt_answers": ["b"]}\n',
            None,
            "no question has an answer in the field 'human_answers'; choose another with "
            "--human-answers",
        ),
    ],
)
def test_faults_name_their_line(
    tmp_path: Path, lines: bytes, line: int | None, message: str
) -> None:
    file = write(tmp_path / "a.jsonl", lines)
    where = file if line is None else f"{file}:{line}"
    with refused(f"{where}: {message}", DataError):
        read_answered([file], QuestionFields(domain="of" if "'of'" in message else None))
    with refused(f"file {str(file)!r} is given twice"):
        read_answered([file, tmp_path / "." / "a.jsonl"])


PUBLISHED = {
    "medicine": (862, 31, 355),
    "finance": (2_715, 98, 1_120),
    "reddit_eli5": (11_809, 427, 4_876),
    "open_qa": (820, 29, 338),
    "wiki_csai": (582, 21, 239),
}


def question(text: str, domain: str = "law", llm: int = 1) -> AnsweredQuestion:
    answers = tuple(f"bot answer {n} to {text}" for n in range(llm))
    return AnsweredQuestion(
        text=text, domain=domain, human=(f"people answer 0 to {text}",), llm=answers
    )


def questions(n: int, domain: str = "law", llm: int = 1) -> list[AnsweredQuestion]:
    return [question(f"{domain} question {number}", domain, llm) for number in range(n)]


def build(asked_questions: Sequence[AnsweredQuestion], rules: QARules | None = None) -> RetrievalQA:
    answered = AnsweredQuestions(questions=tuple(asked_questions), files=())
    return build_retrieval_qa(answered, rules)


def splits_of(built: RetrievalQA) -> dict[str, str]:
    return {
        query: split for split, qrels in built.qrels.items() for query in qrels["query_id"].unique()
    }


TEXTS = st.sampled_from(
    ["Why?", "why", " WHY ?", "how?", "How", "who", "who?", "a", "b", "c", "d", "e", "f", "g"]
)


@given(st.lists(st.tuples(TEXTS, st.sampled_from(["law", "art"])), max_size=20), st.integers(0, 3))
@settings(max_examples=100)
def test_no_question_is_on_two_sides_of_the_split(rows: list[tuple[str, str]], seed: int) -> None:
    askings = [
        *(question(text, domain) for text, domain in rows),
        *questions(30),
        *questions(30, "art"),
    ]
    built = build(askings, QARules(seed=seed))
    split = splits_of(built)
    folded = dict(
        zip(built.collection.queries["id"], (asking.key for asking in askings), strict=True)
    )
    assert len(split) == len(askings)
    sides = {(folded[query], name) for query, name in split.items()}
    assert Counter(key for key, _ in sides) == Counter(set(folded.values()))
    documents = [set(qrels["doc_id"]) for qrels in built.qrels.values()]
    assert sum(map(len, documents)) == len(set().union(*documents)) == built.collection.docs.height


def test_domains_get_their_sizes_as_published_and_a_split_depends_on_the_seed_and_no_order() -> (
    None
):
    askings = [
        *questions(40),
        *questions(10),
        *questions(30, "art"),
        question("law question 3.", "art"),
    ]
    built = build(askings, QARules(shares=(60, 16, 24)))
    assert {domain: tuple(n.values()) for domain, n in built.counts["questions"].items()} == {
        "law": (30, 8, 12),
        "art": (20, 4, 7),
    }
    assert built.counts["asked_again"] == 11
    askings, sizes = questions(60), {"law": (40, 5, 15)}
    first = assign_splits(askings, sizes, 0)
    assert assign_splits(askings[::-1], sizes, 0) == first[::-1]
    mixed = assign_splits([*questions(30, "art"), *askings], {**sizes, "art": (20, 5, 5)}, 0)
    assert mixed[30:] == first
    assert assign_splits(askings, sizes, 1) != first
    askings = [
        asking for domain, sizes in PUBLISHED.items() for asking in questions(sum(sizes), domain)
    ]
    counts = build(askings).counts["questions"]
    assert {domain: tuple(sizes.values()) for domain, sizes in counts.items()} == PUBLISHED
    assert [sum(sizes[split] for sizes in counts.values()) for split in SPLITS] == [
        16_788,
        606,
        6_928,
    ]


def test_answers_are_relevant_to_every_asking_of_their_question() -> None:
    built = build([*questions(8), question("Law question 0 ?", llm=3)])
    judged = pl.concat(built.qrels.values())
    mine = {
        query: set(judged.filter(pl.col("query_id") == query)["doc_id"])
        for query in ("0", "8", "1")
    }
    assert mine["0"] == mine["8"] == {"0_0", "0_1", "8_0", "8_1", "8_2", "8_3"}
    assert mine["1"] == {"1_0", "1_1"}
    assert set(judged["grade"]) == {1}
    collection = built.collection
    assert collection.sources == ("human", "chatgpt")
    assert (collection.docs["origin"] == collection.docs["id"]).all()  # answers are no twins
    built = build([*questions(5), question("only people know", llm=0)])
    assert built.counts["no_answer_of"] == {"human": 0, "chatgpt": 1}
    split = splits_of(built)["5"]
    assert "5" in set(built.side("human", split).qrels["query_id"])
    assert "5" not in set(built.side("chatgpt", split).qrels["query_id"])


@pytest.mark.parametrize(
    ("drop", "documents_held", "end"),
    [(False, 13, "judged relevant, as the"), (True, 10, "left out")],
)
def test_error_messages_are_counted_and_left_out_where_asked(
    drop: bool, documents_held: int, end: str
) -> None:
    failed = (
        "!\nnetwork error",
        "!\\nToo many requests",
        "So,\n!\n\nThere was an error generating a response",
    )
    same = [
        AnsweredQuestion(text=f"Q{n}", domain="law", human=("The same.",), llm=())
        for n in range(30)
    ]
    answered = [
        *questions(9),
        *same,
        AnsweredQuestion(
            text="Why!",
            domain="law",
            human=("So!",),
            llm=(*failed, "!important is a rule of CSS"),
        ),
    ]
    built = build(answered, QARules(drop_errors=drop))
    assert (built.counts["error_messages"], built.counts["in_several_splits"]) == (3, 1)
    assert built.counts["documents"] == {"human": 40, "chatgpt": documents_held}
    assert dict(summary(built))["errors"].startswith(f"3 answers are error messages, {end}")
    assert (
        dict(summary(built))["repeated"]
        == "1 text is an answer to questions of more than one split"
    )
    with refused("no answer of chatgpt is left after dropping error messages"):
        only_errors = AnsweredQuestion(text="Why!", domain="law", human=("So!",), llm=failed)
        build([only_errors], QARules(drop_errors=True))


@pytest.mark.parametrize(
    ("rows", "rules", "message"),
    [
        (
            questions(2),
            {},
            "domain 'law' has 2 questions, too few for its split: train, dev and test need one "
            "each",
        ),
        (
            questions(1),
            {"shares": (1, 0, 1)},
            "domain 'law' has 1 question, too few for its split: train and test need one each",
        ),
        (
            [question("why?")] * 4,
            {},
            "domain 'law' is too small for its split: 'why?' is asked 4 times, and no split has "
            "room for all of them",
        ),
        (
            questions(9),
            {"shares": (0, 0, 0)},
            "expected three shares of at least 0, not all of them 0, got 0,0,0",
        ),
        (
            questions(9),
            {"sources": ("a", "a")},
            "the two sides need different names; both are called 'a'",
        ),
        (
            questions(9),
            {"sources": ("a\tb", "c")},
            "source 'a\\tb' cannot be part of a file's name; choose another name",
        ),
    ],
)
def test_refusals(rows: list[AnsweredQuestion], rules: dict[str, Any], message: str) -> None:
    with refused(message):
        build(rows, QARules(**rules))


def test_the_folder_holds_what_others_tools_read(tmp_path: Path) -> None:
    askings = [*questions(20, llm=2), question("tab\there and\r\nlines")]
    built = build(askings)
    folder = save_retrieval_qa(built, tmp_path / "new" / "qa", QAFiles(depth=5, triples=2))
    loaded = load(folder)
    assert loaded == built.collection
    for split, qrels in built.qrels.items():
        assert (
            load(folder, split=split)
            .qrels.sort("query_id", "doc_id")
            .equals(qrels.sort("query_id", "doc_id"))
        )
        queries = (
            (folder / "msmarco" / f"queries_{split}.tsv").read_text(encoding="utf-8").splitlines()
        )
        assert {line.split("\t")[0] for line in queries} == set(qrels["query_id"])
        assert all(line.count("\t") == 1 for line in queries)
        for source in built.sources:
            trec = read_qrels(folder / "msmarco" / f"qrels_{source}_{split}.tsv").drop("line")
            assert trec.sort("query_id", "doc_id").equals(
                built.side(source, split).qrels.sort("query_id", "doc_id")
            )
    texts = {}
    for source in built.sources:
        lines = (
            (folder / "msmarco" / f"collection_{source}.tsv")
            .read_bytes()
            .decode()
            .removesuffix("\n")
            .split("\n")
        )
        texts |= dict(line.split("\t") for line in lines)
    assert set(texts) == set(loaded.ids)
    assert "people answer 0 to tab here and lines" in texts.values()
    about = orjson.loads((folder / "built.json").read_bytes())
    files = {
        file.relative_to(folder).as_posix(): file for file in folder.rglob("*") if file.is_file()
    }
    assert about["files"] == {
        name: sha256(file) for name, file in files.items() if name != "built.json"
    }
    for source in built.sources:
        written = (folder / "triples" / f"{source}_train_ids.tsv").read_bytes()
        assert written.count(b"\n") == 2 * built.side(source, "train").qrels.height
        assert b"".join(triples(only_sources(load(folder, split="train"), [source]), 2)) == written
    assert [file.name for file in folder.parent.iterdir()] == ["qa"]


def test_built_again_it_is_the_same_and_runs_are_of_one_side(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    qa_files = QAFiles(depth=3, triples=4)
    first, second = (
        save_retrieval_qa(build(questions(12)), tmp_path / name, qa_files)
        for name in ("one", "two")
    )
    names = sorted(file.relative_to(first) for file in first.rglob("*"))
    assert names == sorted(file.relative_to(second) for file in second.rglob("*"))
    assert all(
        (first / name).read_bytes() == (second / name).read_bytes()
        for name in names
        if (first / name).is_file()
    )
    packed = (first / "runs" / "bm25_human_test.trec.gz").read_bytes()
    assert packed[3:8] == bytes(5)  # neither a name nor the time, which both builds may share
    built = build(questions(4), QARules(shares=(1, 0, 1)))
    assert built.counts["questions"]["law"] == {"train": 2, "dev": 0, "test": 2}
    folder = save_retrieval_qa(built, tmp_path / "qa", QAFiles(depth=0))
    assert sorted(file.name for file in (folder / "qrels").iterdir()) == ["test.tsv", "train.tsv"]
    assert not (folder / "runs").exists()
    monkeypatch.setattr(run_module, "ENTRIES_AT_ONCE", 50)
    built = build(
        [
            *questions(30, llm=2),
            AnsweredQuestion(text="?!", domain="law", human=("people answer",), llm=("bot reply",)),
        ]
    )
    folder = save_retrieval_qa(built, tmp_path / "runs", QAFiles(depth=7))
    for source in built.sources:
        for split in SPLITS:
            side = built.side(source, split)
            run = Run.load(folder / "runs" / f"bm25_{source}_{split}.trec.gz")
            assert set(side.docs["source"]) == {source}
            assert run == BM25(k1=1.2, b=0.75, k=7).rank(side)
            assert run.queries == BM25(k=7).rank(side).queries
            assert (run.spec["source"], run.spec["split"]) == (source, split)


def test_what_cannot_be_written_leaves_all_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(gzip.GzipFile, "write", full)
    with pytest.raises(
        UserError, match="cannot be written: No space left on device; free some space or choose ano"
    ):
        save_retrieval_qa(build(questions(4)), tmp_path / "new" / "qa", QAFiles(depth=2))
    assert not list((tmp_path / "new").iterdir())
    monkeypatch.undo()
    (tmp_path / "qa").mkdir()
    (tmp_path / "qa" / "mine.txt").write_text("mine")
    with refused(f"{tmp_path / 'qa'}: already holds files; name a new folder"):
        save_retrieval_qa(build(questions(4)), tmp_path / "qa")
    with refused(f"{tmp_path / 'qa' / 'mine.txt'}: expected a folder to write to, got a file"):
        save_retrieval_qa(build(questions(4)), tmp_path / "qa" / "mine.txt")


def test_hc3_is_split_as_published(shared_data: Path) -> None:
    built = build_retrieval_qa(read_answered(sorted((shared_data / "hc3").glob("*.jsonl"))))
    counts = built.counts
    assert {name: tuple(sizes.values()) for name, sizes in counts["questions"].items()} == {
        name: sizes
        for name, sizes in PUBLISHED.items()
        if name in ("medicine", "open_qa", "wiki_csai")
    }
    assert counts["documents"] == {"human": 3_277, "chatgpt": 5_722}
    assert counts["empty_answers"] == {"human": 0, "chatgpt": 18}
    assert counts["no_answer_of"] == {"human": 0, "chatgpt": 2}
    assert (counts["error_messages"], counts["in_several_splits"]) == (41, 39)
    split = splits_of(built)
    texts = dict(built.collection.queries.select("id", "text").iter_rows())
    keys = [
        {question(texts[query]).key for query, split_name in split.items() if split_name == name}
        for name in SPLITS
    ]
    assert len(split) == 3_277
    assert len(set.union(*keys)) == sum(map(len, keys))
    assert set(pl.concat(built.qrels.values())["doc_id"]) == set(built.collection.ids)


def documents(relevant: dict[str, list[int]], count: int = 20) -> Collection:
    """So many documents, called by their numbers, and which are relevant to each query; 7 and 8
    have one text.
    """
    docs = [{"id": str(n), "text": f"text {7 if n == 8 else n}"} for n in range(count)]
    return collection_of(
        docs,
        {name: name for name in relevant},
        {q: {str(n): 1 for n in rows} for q, rows in relevant.items()},
    )


def triple_lines(collection: Collection, negatives: int, seed: int = 0) -> list[tuple[str, ...]]:
    return [
        tuple(line.split("\t"))
        for line in b"".join(triples(collection, negatives, seed=seed)).decode().splitlines()
    ]


@given(
    st.dictionaries(
        st.sampled_from("abcd"), st.lists(st.integers(0, 19), min_size=1, max_size=6, unique=True)
    ),
    st.integers(1, 30),
    st.integers(0, 5),
)
def test_negatives_are_others_and_none_comes_twice(
    relevant: dict[str, list[int]], n: int, seed: int
) -> None:
    rows = triple_lines(documents(relevant), n, seed)
    for query, positives in relevant.items():
        excluded = {str(p) for p in positives} | ({"7", "8"} if {7, 8} & set(positives) else set())
        expected = min(n, 20 - len(excluded))
        mine = [row for row in rows if row[0] == query]
        assert not {negative for _, _, negative in mine} & excluded
        for positive in positives:
            negatives = [
                negative for _, relevant_id, negative in mine if relevant_id == str(positive)
            ]
            assert len(negatives) == len(set(negatives)) == expected


def test_every_other_document_is_as_likely_and_triples_are_held_one_piece_at_a_time() -> None:
    counts = Counter[str]()
    for seed in range(60):
        counts.update(row[2] for row in triple_lines(documents({"a": [3, 11]}), 6, seed))
    assert len(counts) == 18
    assert all(20 < n < 60 for n in counts.values())  # 40 expected, standard deviation 5
    pieces = triples(documents({str(n): [n] for n in range(2_000)}, 2_000), 1_000)
    next(pieces)
    tracemalloc.start()
    size = sum(map(len, islice(pieces, 1_500)))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert size > 15_000_000 > 15 * peak
