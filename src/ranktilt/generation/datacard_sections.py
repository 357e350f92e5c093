"""Sections that the data cards of all generated collections have: model, prompt, and how a table is written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import polars as pl

from ranktilt.errors import join_words
from ranktilt.generation.generated import Generated, SourceSummary

_NONE = "–"


def model_section(generated: Generated) -> str:
    """Tell which model was asked, which answered, and how."""
    spec, answers = generated.spec, generated.answers
    url = spec["llm"].get("base_url")
    lines = [
        ("asked for", f"`{spec['llm'].get('model', '')}`"),
        ("answered", _names(answers["model"])),
        ("revision", _names(answers["revision"])),
        ("where", f"`{spec['llm'].get('llm', '')}`" + (f" at `{url}`" if url else "")),
        ("temperature", join_words([repr(one.temperature) for one in generated.made])),
        ("top_p", f"{spec['top_p']:g}"),
        ("most tokens of an answer", _or_none(spec["max_tokens"], "the server's own limit")),
        ("seed", _or_none(spec["seed"], "none")),
        ("attempts", f"up to {spec['attempts']} until an answer passes the checks"),
        ("first answer", _or_none(answers["time"].min(), _NONE)),
        ("last answer", _or_none(answers["time"].max(), _NONE)),
    ]
    asked, came = spec["llm"].get("model"), set(answers["model"].drop_nulls())
    note = (
        ""
        if came <= {asked}
        else "\n\nAnother name answered than was asked for: the names of both are above."
    )
    return table(["", ""], lines) + note


def prompt_section(generated: Generated, given: str) -> str:
    """Quote the prompt; `given` says what its slots stand for."""
    prompt = generated.spec["prompt"]
    ticks = "".join(c if c == "`" else " " for c in prompt["text"]).split()
    fence = "`" * max(3, 1 + max((len(run) for run in ticks), default=0))
    name = f"the prompt `{prompt['name']}` that comes with ranktilt"
    whose = f"from `{prompt['file']}`" if "file" in prompt else name
    return f"{whose[0].upper()}{whose[1:]}; {given}\n\n{fence}text\n{prompt['text']}\n{fence}"


def counts_section(generated: Generated, written: str, *, cut: bool = False) -> str:
    """Count what came of the documents, those that were written by this word; `cut` where texts may have been cut."""
    made = generated.made
    reasons = sorted({reason for one in made for reason in one.rejected})
    flags = sorted({flag for one in made for flag in one.flags})
    rows: list[tuple[str, Callable[[SourceSummary], int]]] = [
        ("documents", lambda one: one.documents),
        (written, lambda one: one.rewritten),
        *(
            (f"left out: {reason}", lambda one, r=reason: one.rejected.get(r, 0))
            for reason in reasons
        ),
        *([("made of a text that was cut", lambda one: one.cut)] if cut else []),
        ("answers", lambda one: one.answers),
        *((f"answers flagged: {flag}", lambda one, f=flag: one.flags.get(f, 0)) for flag in flags),
        ("tokens read", lambda one: one.prompt_tokens),
        ("tokens written", lambda one: one.completion_tokens),
    ]
    counts = table(
        ["", *(one.source for one in made)],
        [(name, *(f"{of(one):,}" for one in made)) for name, of in rows],
    )
    said = (
        "An answer may have several flags. A flagged answer is asked for again; a document whose every answer was "
        "flagged is left out. `left-out.jsonl` lists each such document with its reason; `answers.jsonl.gz` holds "
        "every answer as it came. Tokens are as the model counts them, of all answers."
    )
    more = " Texts that were cut have the number of words that the model was given in `cut_to`."
    return f"{counts}\n\n{said}{more if any(one.cut for one in made) else ''}"


def files_section(splits: Iterable[str], corpus: str, qrels: str, left_out: str) -> str:
    """List the files of the folder, and what these hold."""
    rows = [
        ("`corpus.jsonl`", corpus),
        ("`queries.jsonl`", "the queries, as they were"),
        *((f"`qrels/{split}.tsv`", qrels) for split in splits),
        ("`left-out.jsonl`", f"documents without {left_out}, each with the reason"),
        ("`answers.jsonl.gz`", "every answer as it came, with its flags and what was removed"),
        ("`manifest.json`", "how it was made, and SHA-256 hashes of what was read and written"),
    ]
    return table(["file", "what it holds"], rows)


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Write a table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(
        "| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines
    )


def _names(series: pl.Series) -> str:
    counts = series.drop_nulls().value_counts(sort=True, name="n")
    names = [
        f"`{name}`" if counts.height == 1 else f"`{name}` ({n:,})" for name, n in counts.iter_rows()
    ]
    return ", ".join(names) or _NONE


def _or_none(value: Any, none: str) -> str:
    return none if value is None else str(value)
