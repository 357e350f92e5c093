"""``data build retrieval-qa``: answers by people and by a language model, as a folder.

A *split* is a part of the questions (train, dev or test) with its judgments.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ranktilt.data.builders import FOLDER, BuiltCollection
from ranktilt.errors import UserError
from ranktilt.field_checks import require_seed
from ranktilt.papers.askari.answered_questions import QuestionFields, read_answered
from ranktilt.papers.askari.retrieval_qa import QARules, RetrievalQA, build_retrieval_qa, summary
from ranktilt.papers.askari.retrieval_qa_files import QAFiles, save_retrieval_qa

HUMAN = "human"
"""Name of the source of people's answers."""


@dataclass(frozen=True, kw_only=True)
class BuiltAnswers(BuiltCollection):
    """The collection, with the judgments of every split."""

    answers: RetrievalQA
    """The collection with its splits."""
    qa_files: QAFiles
    """Further files that are saved with it."""

    def save(self, folder: Path) -> None:
        """Write the collection, its splits, runs and triples."""
        save_retrieval_qa(self.answers, folder, self.qa_files)


def retrieval_qa(
    files: list[Path],
    *,
    question: str = "question",
    human_answers: str = "human_answers",
    llm_answers: str = "chatgpt_answers",
    llm_name: str = "chatgpt",
    domain: str | None = None,
    shares: str = "69,2.5,28.5",
    drop_errors: bool = False,
    run_depth: int = 1_000,
    triples: int = 0,
    seed: int = 0,
) -> BuiltAnswers:
    """Build ChatGPT-RetrievalQA, or a collection like it: answers by people and a language model.

    Parameters
    ----------
    files : list of Path
        Questions with answers from both sides (.jsonl, .gz), such as HC3.
    question : str
        Field of the question.
    human_answers : str
        Field of people's answers.
    llm_answers : str
        Field of the language model's answers.
    llm_name : str
        Source name for the language model's answers.
    domain : str, optional
        Field of the domain (default: the file's name).
    shares : str
        Shares of train, dev and test, in %; the default gives the published sizes.
    drop_errors : bool
        Leave out answers that are error messages (the paper keeps them).
    run_depth : int
        Documents per query in BM25's runs; 0 for no runs.
    triples : int
        Save training triples, with N random negatives per relevant answer.
    seed : int
        Random seed for the splits and the negatives.
    """
    require_seed(seed)
    try:
        train, dev, test = map(float, shares.split(","))
    except ValueError as error:
        raise UserError(
            f"--shares expects three numbers, such as 80,10,10; got {shares!r}"
        ) from error
    rules = QARules(
        shares=(train, dev, test),
        sources=(HUMAN, llm_name),
        seed=seed,
        drop_errors=drop_errors,
    )
    fields = QuestionFields(question=question, human=human_answers, llm=llm_answers, domain=domain)
    answers = build_retrieval_qa(read_answered(files, fields), rules)
    return BuiltAnswers(
        collection=answers.collection,
        answers=answers,
        qa_files=QAFiles(depth=run_depth, triples=triples, seed=seed),
        summary=tuple(summary(answers)),
        next_command=("audit", FOLDER, "--by", "source", "-r", "bm25", "-m", "nDCG@10"),
    )
