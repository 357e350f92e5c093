"""``ranktilt data build retrieval-qa``: a collection of answers by people and by a language model."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ranktilt.cli import options
from ranktilt.cli.notes import note
from ranktilt.cli.output import print_lines
from ranktilt.errors import UserError
from ranktilt.option import Option

if TYPE_CHECKING:
    from ranktilt.datasets.answered_questions import QuestionFields
    from ranktilt.generation.retrieval_qa import QARules
    from ranktilt.generation.retrieval_qa_files import QAFiles


@dataclass(frozen=True)
class FieldOptions(options.OptionGroup):
    """What a line's fields are called."""

    panel = "Input"

    question: Annotated[str, Option("Field of the question.", "FIELD")] = "question"
    human_answers: Annotated[str, Option("Field of people's answers.", "FIELD")] = "human_answers"
    llm_answers: Annotated[str, Option("Field of the language model's answers.", "FIELD")] = "chatgpt_answers"
    domain: Annotated[str | None, Option("Field of the domain (default: the file's name).", "FIELD")] = None

    def read(self) -> QuestionFields:
        from ranktilt.datasets.answered_questions import QuestionFields

        return QuestionFields(
            question=self.question, human=self.human_answers, llm=self.llm_answers, domain=self.domain
        )


@dataclass(frozen=True)
class SplitOptions(options.OptionGroup):
    """How questions are split, and what the sides are called."""

    panel = "Question"

    shares: Annotated[
        str, Option("Shares of train, dev and test, in %; the default gives the published sizes.", "X,X,X")
    ] = "69,2.5,28.5"
    human_name: Annotated[str, Option("Name of the source of people's answers.", "SOURCE")] = "human"
    llm_name: Annotated[str, Option("Name of the source of the language model's answers.", "SOURCE")] = "chatgpt"
    drop_errors: Annotated[bool, Option("Leave out answers that are error messages (the paper keeps them).")] = False
    seed: options.Seed = 0

    def read(self) -> QARules:
        from ranktilt.generation.retrieval_qa import QARules

        try:
            train, dev, test = map(float, self.shares.split(","))
        except ValueError as error:
            raise UserError(f"--shares expects three numbers, such as 80,10,10; got {self.shares!r}") from error
        sources = (self.human_name, self.llm_name)
        return QARules(shares=(train, dev, test), sources=sources, seed=self.seed, drop_errors=self.drop_errors)


@dataclass(frozen=True)
class FilesOptions(options.OptionGroup):
    """What is written beside the collection."""

    panel = "Output"

    depth: Annotated[
        int, Option("Documents per query in BM25's runs; 0 for no runs.", "K", flag="--run-depth", min=0)
    ] = 1_000
    triples: Annotated[
        int, Option("Save training triples, with N random negatives per relevant answer.", "N", min=0)
    ] = 0

    def read(self, seed: int) -> QAFiles:
        from ranktilt.generation.retrieval_qa_files import QAFiles

        return QAFiles(depth=self.depth, triples=self.triples, seed=seed)


@options.verb(
    "data build retrieval-qa finance.jsonl medicine.jsonl -o DIR",
    "data build retrieval-qa all.jsonl --triples 4 -o DIR",
)
def retrieval_qa(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", help="Questions with answers of both sides (.jsonl, .gz), as HC3."),
    ],
    output: options.Destination,
    *,
    fields: FieldOptions,
    split: SplitOptions,
    beside: FilesOptions,
) -> None:
    """Build a collection of answers by people and by a language model: ChatGPT-RetrievalQA, or one like it."""
    from ranktilt.datasets.answered_questions import read_answered
    from ranktilt.generation.retrieval_qa import build_retrieval_qa, summary
    from ranktilt.generation.retrieval_qa_files import require_new, save_retrieval_qa

    rules, wanted = split.read(), beside.read(split.seed)
    require_new(output)
    built = build_retrieval_qa(read_answered(files, fields.read()), rules)
    save_retrieval_qa(built, output, wanted)
    print_lines(summary(built))
    note(f"{output}: {built.collection!r}")
    note(f"Next: {shlex.join(['ranktilt', 'audit', str(output), '--by', 'source', '-r', 'bm25', '-m', 'nDCG@10'])}")
