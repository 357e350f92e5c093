"""``ranktilt data build``: published collections from their original files."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ranktilt.cli import options
from ranktilt.cli.notes import note
from ranktilt.cli.output import check_paths, print_lines, print_result
from ranktilt.errors import UserError
from ranktilt.option import Option

if TYPE_CHECKING:
    from ranktilt.datasets.natural_questions import Built
    from ranktilt.generation.fair_ranking import FairRanking


@options.verb(
    "data build retrieval-qa finance.jsonl medicine.jsonl -o DIR",
    "data build retrieval-qa all.jsonl --triples 4 -o DIR",
)
def retrieval_qa(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...", help="Questions with answers of both sides (.jsonl, .gz), as HC3."
        ),
    ],
    output: options.Destination,
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
    seed: options.Seed = 0,
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
) -> None:
    """Build a collection of answers by people and by a language model: ChatGPT-RetrievalQA, or one like it."""
    from ranktilt.datasets.answered_questions import QuestionFields, read_answered
    from ranktilt.generation.retrieval_qa import QARules, build_retrieval_qa, summary
    from ranktilt.generation.retrieval_qa_files import QAFiles, require_new, save_retrieval_qa

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
    require_new(output)
    fields = QuestionFields(question=question, human=human_answers, llm=llm_answers, domain=domain)
    built = build_retrieval_qa(read_answered(files, fields), rules)
    save_retrieval_qa(built, output, QAFiles(depth=depth, triples=triples, seed=seed))
    print_lines(summary(built))
    note(f"{output}: {built.collection!r}")
    note(
        f"Next: {shlex.join(['ranktilt', 'audit', str(output), '--by', 'source', '-r', 'bm25', '-m', 'nDCG@10'])}"
    )


CANDIDATES, INITIAL, ABOUT = "candidates.trec", "initial.trec", "built.json"
_NATURAL = "natural"


@options.verb(
    "data build fair-ranking irds:trec-fair/2022/train --protected female --by gender -o DIR",
    'data build fair-ranking labelled.csv --protected "Europe|Asia" --items 100 -o DIR',
)
def fair_ranking(
    source: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="A CSV of TREC Fair, or irds:ID, such as irds:trec-fair/2022/train.",
        ),
    ],
    output: options.Destination,
    *,
    protected: Annotated[
        str, Option("Protected group: female, Europe|Asia, or non-Europe.", "GROUP")
    ],
    by: Annotated[
        str | None, Option("Column that groups documents (default: the only one left).", "COLUMN")
    ] = None,
    items: Annotated[int, Option("Items per query.", "N", min=2)] = 200,
    blocks: Annotated[
        str,
        Option(
            "Items that are relevant (unprotected, protected) and irrelevant (the same); or natural shares.",
            "N,N,N,N",
        ),
    ] = _NATURAL,
    min_judged: Annotated[
        int | None, Option("Minimum relevant documents per query (default: --items).", "N", min=1)
    ] = None,
    seed: options.Seed = 0,
) -> None:
    """Build lists of relevant and irrelevant items of two groups, for every ranker to order."""
    from ranktilt.datasets.save import save
    from ranktilt.datasets.trec_fair import read_labelled
    from ranktilt.generation.fair_ranking import ListRules, build_fair_ranking, summary

    check_paths({"--output": output / CANDIDATES})
    rules = ListRules(items=items, blocks=_read_blocks(blocks), min_judged=min_judged, seed=seed)
    built = build_fair_ranking(read_labelled(source, by), protected.strip(), rules)
    save(built.collection, output, beside=_beside(built))
    print_lines(summary(built, protected.strip()))
    note(f"{output}: {built.collection!r}")
    note(
        f"{CANDIDATES}: shuffled, for rankers to order; {INITIAL}: unprotected ones first, the paper's initial ranking"
    )
    lone = built.counts["queries_with_a_group_below_2"]
    if lone:
        note(
            f"warning: {lone} lists have fewer than 2 items of a group; their exposure ratio says little, or nothing"
        )
    candidates = f"replay:{output / CANDIDATES}"
    groups = ["--by", str(built.collection.spec["by"]), "--protected", protected.strip()]
    measures = ["-m", "P@20", "-m", f"ExposureRatio@{built.counts['items']}"]
    rankers = ["-r", candidates, "-r", f"{candidates}>>bm25"]
    note(f"Next: {shlex.join(['ranktilt', 'audit', str(output), *groups, *measures, *rankers])}")


def _read_blocks(text: str) -> tuple[int, int, int, int] | None:
    if text.strip() == _NATURAL:
        return None
    parts = [part.strip() for part in text.split(",")]
    if len(parts) != 4 or not all(
        part.isascii() and part.isdigit() and len(part) < 10 for part in parts
    ):
        raise UserError(
            f"--blocks expects four numbers, such as 50,50,50,50, or {_NATURAL}; got {text!r}"
        )
    a, b, c, d = map(int, parts)
    return a, b, c, d


def _beside(built: FairRanking) -> dict[str, bytes]:
    """The candidates in both orders, and what the folder was made from."""
    import orjson

    from ranktilt.io.files import sha256

    made = {**built.candidates.contents(Path(CANDIDATES)), **built.initial.contents(Path(INITIAL))}
    spec = built.collection.spec
    about = {
        **spec,
        "files": {Path(file).name: sha256(Path(file)) for file in spec.get("files", ())},
    }
    written = orjson.dumps(
        about, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE, default=str
    )
    return {**{str(path): data for path, data in made.items()}, ABOUT: written}


build = typer.Typer(
    help="Make a published collection from its original files.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@build.command("nq320k", cls=options.Verb)
@options.verb(
    "data build nq320k train.jsonl.gz dev.jsonl.gz -o DIR",
    "data build nq320k train.jsonl dev.jsonl -o DIR --words 100",
)
def nq320k(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...", help="Natural Questions: its train and dev files (.jsonl, .gz)."
        ),
    ],
    output: options.Destination,
    *,
    words: Annotated[int, Option("Cut texts to so many words.", "N", min=1)] = 200,
) -> None:
    """Build NQ320K from Natural Questions: each page once, cut short, with the development set's questions."""
    from ranktilt.datasets.natural_questions import build_nq320k
    from ranktilt.datasets.save import save

    check_paths({"--output": output / "corpus.jsonl"})
    built = build_nq320k(files, words=words)
    save(built.collection, output)
    print_result(_counts(built))
    _note_next_steps(built, output)


build.command("fair-ranking", cls=options.Verb)(fair_ranking)
build.command("retrieval-qa", cls=options.Verb)(retrieval_qa)


def _counts(built: Built) -> str:
    """What was counted beside what is published, a line each."""
    from ranktilt.datasets.natural_questions import PUBLISHED

    lines = []
    for name, expected in PUBLISHED.items():
        count, published = (
            f"{n:,.2f}" if name == "mean words" else f"{n:,}"
            for n in (built.counts[name], expected)
        )
        lines.append(
            f"{name:<12} {count:>8}   {published} expected"
            + ("" if count == published else "   differs")
        )
    return "\n".join([*lines, ""])


def _note_next_steps(built: Built, output: Path) -> None:
    from ranktilt.datasets.natural_questions import PUBLISHED, TRAINING

    note(f"{output}: {built.collection!r}")
    if not built.as_published:
        seen = f"{built.train_lines:,} training and {built.counts['test queries']:,} development questions were read"
        note(f"Not as published: {seen}, {TRAINING:,} and {PUBLISHED['test queries']:,} there are.")
    note(
        "Texts begin with their title and are truncated; rewrites may not be: `ranktilt check` tells."
    )
    note(
        f"Next: {shlex.join(['ranktilt', 'generate', 'rewrite', str(output), '--llm', 'openai:MODEL', '--dry-run'])}"
    )
