"""Sections that the data cards of all generated collections have: model, prompt, and how a table is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from ranktilt.errors import join_words
from ranktilt.generation.generated import Generated

_NONE = "–"


def model_section(generated: Generated) -> str:
    """Tell which model was asked, which answered, and how."""
    spec, answers = generated.spec, generated.answers
    lines = [
        ("asked for", f"`{spec['llm'].get('model', '')}`"),
        ("answered", _names(answers["model"])),
        ("revision", _names(answers["revision"])),
        ("where", served_by(spec["llm"])),
        ("temperature", join_words([repr(one.temperature) for one in generated.made])),
        ("top_p", f"{spec['top_p']:g}"),
        ("most tokens of an answer", _or_none(spec["max_tokens"], "the server's own limit")),
        ("seed", _or_none(spec["seed"], "none")),
        ("attempts", f"up to {spec['attempts']} until an answer passes the checks"),
        ("first answer", _or_none(answers["time"].min(), _NONE)),
        ("last answer", _or_none(answers["time"].max(), _NONE)),
    ]
    asked, came = spec["llm"].get("model"), set(answers["model"].drop_nulls())
    note = "" if came <= {asked} else "\n\nAnother name answered than was asked for: the names of both are above."
    return table(["", ""], lines) + note


def served_by(llm: Mapping[str, Any]) -> str:
    """Say what a model is and where it is served."""
    url = llm.get("base_url")
    return f"`{llm.get('llm', '')}`" + (f" at `{url}`" if url else "")


def prompt_section(generated: Generated, given: str) -> str:
    """Quote the prompt; `given` says what its slots stand for."""
    prompt = generated.spec["prompt"]
    ticks = "".join(c if c == "`" else " " for c in prompt["text"]).split()
    fence = "`" * max(3, 1 + max((len(run) for run in ticks), default=0))
    name = f"the prompt `{prompt['name']}` that comes with ranktilt"
    whose = f"from `{prompt['file']}`" if "file" in prompt else name
    return f"{whose[0].upper()}{whose[1:]}; {given}\n\n{fence}text\n{prompt['text']}\n{fence}"


def table(header: Sequence[str], rows: Sequence[Sequence[str]], *, numbers: bool = False) -> str:
    """Write a table in Markdown; all columns but the first to the right where they are numbers."""
    lines = [header, ["---", *["---:" if numbers else "---"] * (len(header) - 1)], *rows]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines)


def _names(series: pl.Series) -> str:
    counts = series.drop_nulls().value_counts(sort=True, name="n")
    names = [f"`{name}`" if counts.height == 1 else f"`{name}` ({n:,})" for name, n in counts.iter_rows()]
    return ", ".join(names) or _NONE


def _or_none(value: Any, none: str) -> str:
    return none if value is None else str(value)
