"""``data build retrieval-qa``: answers by people and by a language model, as a folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from ranktilt.datasets.builders import FOLDER, BuiltCollection
from ranktilt.errors import UserError
from ranktilt.option import Option
from ranktilt.papers.askari.answered_questions import QuestionFields, read_answered
from ranktilt.papers.askari.retrieval_qa import QARules, RetrievalQA, build_retrieval_qa, summary
from ranktilt.papers.askari.retrieval_qa_files import QAFiles, save_retrieval_qa


@dataclass(frozen=True, kw_only=True)
class BuiltAnswers(BuiltCollection):
    """The collection, with the judgments of every split."""

    answers: RetrievalQA
    wanted: QAFiles

    def save(self, folder: Path) -> None:
        """Write the collection, its splits, runs and triples."""
        save_retrieval_qa(self.answers, folder, self.wanted)


def retrieval_qa(
    files: Annotated[
        list[Path],
        Option("Questions with answers of both sides (.jsonl, .gz), as HC3.", "FILE..."),
    ],
    *,
    question: Annotated[str, Option("Field of the question.", "FIELD", panel="Input")] = "question",
    human_answers: Annotated[
        str, Option("Field of people's answers.", "FIELD", panel="Input")
    ] = "human_answers",
    llm_answers: Annotated[
        str, Option("Field of the language model's answers.", "FIELD", panel="Input")
    ] = "chatgpt_answers",
    domain: Annotated[
        str | None,
        Option("Field of the domain (default: the file's name).", "FIELD", panel="Input"),
    ] = None,
    shares: Annotated[
        str,
        Option(
            "Shares of train, dev and test, in %; the default gives the published sizes.", "X,X,X"
        ),
    ] = "69,2.5,28.5",
    human_name: Annotated[
        str, Option("Name of the source of people's answers.", "SOURCE")
    ] = "human",
    llm_name: Annotated[
        str, Option("Name of the source of the language model's answers.", "SOURCE")
    ] = "chatgpt",
    drop_errors: Annotated[
        bool, Option("Leave out answers that are error messages (the paper keeps them).")
    ] = False,
    seed: Annotated[int, Option("Random seed.", "N", min=0, panel="Statistics")] = 0,
    depth: Annotated[
        int,
        Option(
            "Documents per query in BM25's runs; 0 for no runs.",
            "K",
            flag="--run-depth",
            min=0,
            panel="Output",
        ),
    ] = 1_000,
    triples: Annotated[
        int,
        Option(
            "Save training triples, with N random negatives per relevant answer.",
            "N",
            min=0,
            panel="Output",
        ),
    ] = 0,
) -> BuiltAnswers:
    """Build a collection of answers by people and by a language model: ChatGPT-RetrievalQA, or one like it."""
    try:
        train, dev, test = map(float, shares.split(","))
    except ValueError as error:
        raise UserError(
            f"--shares expects three numbers, such as 80,10,10; got {shares!r}"
        ) from error
    rules = QARules(
        shares=(train, dev, test),
        sources=(human_name, llm_name),
        seed=seed,
        drop_errors=drop_errors,
    )
    fields = QuestionFields(question=question, human=human_answers, llm=llm_answers, domain=domain)
    built = build_retrieval_qa(read_answered(files, fields), rules)
    return BuiltAnswers(
        collection=built.collection,
        answers=built,
        wanted=QAFiles(depth=depth, triples=triples, seed=seed),
        summary=tuple(summary(built)),
        next_command=("audit", FOLDER, "--by", "source", "-r", "bm25", "-m", "nDCG@10"),
    )
