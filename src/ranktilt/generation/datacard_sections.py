"""Sections that the data cards of all generated collections share, as Markdown.

A *data card* is the README of a generated collection. It counts documents and answers by *source*,
the model that wrote them. An answer with a fault has a *flag*, the name of the fault. The *spec* of
a collection is how it was made, as data.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import polars as pl

from ranktilt.errors import join_words
from ranktilt.generation.generated import Generated

_NONE = "–"
"""Stands for a number that is not known."""
_COUNTS_NOTE = (
    "An answer may have several flags. A flagged answer is requested again; if all answers for a "
    "document were flagged, it is left out. `left-out.jsonl` lists these documents with reasons; "
    "`answers.jsonl.gz` holds every answer as it came. Tokens are counted by the model, over all "
    "answers."
)
"""Note below the counts of answers."""


def model_section(generated: Generated) -> str:
    """Return a table of the model, its settings, and the time of its answers."""
    spec, answers = generated.spec, generated.answers
    llm = spec["llm"]
    server = f" at `{llm['base_url']}`" if llm.get("base_url") else ""
    temperatures = [repr(summary.temperature) for summary in generated.summaries]
    rows = {
        "asked for": f"`{llm.get('model', '')}`",
        "answered": _names(answers["model"]),
        "revision": _names(answers["revision"]),
        "where": f"`{llm.get('llm', '')}`{server}",
        "temperature": join_words(temperatures),
        "top_p": f"{spec['top_p']:g}",
    }
    rows["maximum tokens per answer"] = _or_none(spec["max_tokens"], "the server's own limit")
    rows["seed"] = _or_none(spec["seed"], "none")
    rows["attempts"] = f"up to {spec['attempts']} until an answer passes the checks"
    rows["first answer"] = _or_none(answers["time"].min(), _NONE)
    rows["last answer"] = _or_none(answers["time"].max(), _NONE)
    section = table(["", ""], list(rows.items()))
    answered = set(answers["model"].drop_nulls())
    if answered <= {llm.get("model")}:  # the requested model, or none
        return section
    note = "The model that answered has another name than the one requested; both are above."
    return f"{section}\n\n{note}"


def prompt_section(generated: Generated, slots: str) -> str:
    """Quote the prompt; `slots` is a sentence about its slots, such as ``{text}``."""
    prompt = generated.spec["prompt"]
    # The code fence must be longer than any run of backticks in the prompt.
    longest = max(map(len, re.findall("`+", prompt["text"])), default=0)
    fence = "`" * max(3, 1 + longest)
    opening = f"The prompt `{prompt['name']}` that comes with ranktilt"
    if "file" in prompt:
        opening = f"From `{prompt['file']}`"
    return f"{opening}; {slots}\n\n{fence}text\n{prompt['text']}\n{fence}"


def counts_section(generated: Generated, verb: str, *, cut: bool = False) -> str:
    """Count the documents of each source, and the answers behind them.

    `verb` says what happened to the documents, such as ``written``; `cut` is set if texts may have
    been cut.
    """
    summaries = generated.summaries
    rows: list[tuple[str, list[int]]] = [
        ("documents", [summary.documents for summary in summaries]),
        (verb, [summary.rewritten for summary in summaries]),
        *_rows_by_name("left out", [summary.rejected for summary in summaries]),
    ]
    if cut:
        rows.append(("made from a text that was cut", [summary.cut for summary in summaries]))
    rows += [
        ("answers", [summary.answers for summary in summaries]),
        *_rows_by_name("answers flagged", [summary.flags for summary in summaries]),
        ("tokens read", [summary.prompt_tokens for summary in summaries]),
        ("tokens written", [summary.completion_tokens for summary in summaries]),
    ]
    lines = [[name, *map("{:,}".format, numbers)] for name, numbers in rows]
    counts = table(["", *(summary.source for summary in summaries)], lines)
    note = _COUNTS_NOTE
    if any(summary.cut for summary in summaries):
        note += " For texts that were cut, `cut_to` holds the number of words that the model got."
    return f"{counts}\n\n{note}"


def _rows_by_name(
    prefix: str, counts_by_source: Sequence[Mapping[str, int]]
) -> list[tuple[str, list[int]]]:
    """Make a row for each name that has a count in any source: its label, and a count per source.

    Labels begin with `prefix`.
    """
    names = sorted(set().union(*counts_by_source))
    rows = []
    for name in names:
        rows.append((f"{prefix}: {name}", [counts.get(name, 0) for counts in counts_by_source]))
    return rows


def files_section(splits: Iterable[str], *, corpus: str, qrels: str, left_out: str) -> str:
    """List the files of the folder with their contents.

    Parameters
    ----------
    splits : iterable of str
        Names of the files of judgments.
    corpus, qrels : str
        What the file of documents and those of judgments hold, as a phrase.
    left_out : str
        What documents that were left out lack, as a noun with its article.
    """
    rows = [
        ("`corpus.jsonl`", corpus),
        ("`queries.jsonl`", "the queries, unchanged"),
        *((f"`qrels/{split}.tsv`", qrels) for split in splits),
        ("`left-out.jsonl`", f"documents without {left_out}, each with the reason"),
        ("`answers.jsonl.gz`", "every answer as it came, with its flags and what was removed"),
        ("`manifest.json`", "how it was made, and SHA-256 hashes of the files read and written"),
    ]
    return table(["file", "what it holds"], rows)


def trial_note(spec: Mapping[str, Any]) -> str:
    """Return a sentence with a blank before it if only the first texts were requested.

    Otherwise the note is empty.
    """
    if not spec["first"]:
        return ""
    first = "one was" if spec["first"] == 1 else f"{spec['first']:,} were"
    return f" This is a trial: only the first {first} requested."


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Write a table in Markdown."""
    return "\n".join(map(_table_line, [header, ["---"] * len(header), *rows]))


def _table_line(cells: Sequence[str]) -> str:
    """Return a line of a Markdown table."""
    return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"


def _names(series: pl.Series) -> str:
    """List the values of a column, with their counts if there are several."""
    counts = series.drop_nulls().value_counts(sort=True, name="n")
    if counts.height == 1:
        return f"`{counts[0, 0]}`"
    return ", ".join(f"`{name}` ({n:,})" for name, n in counts.iter_rows()) or _NONE


def _or_none(value: Any, none: str) -> str:
    """Write a value, or a word where there is none."""
    return none if value is None else str(value)
