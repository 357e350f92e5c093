"""The model table as text: for the terminal, Markdown, CSV or JSON."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import IO, Any

import polars as pl
from rich import box
from rich.table import Table
from rich.text import Text

from ranktilt.errors import counted, unknown
from ranktilt.models.catalogue import Model
from ranktilt.reporting.console import fits, printing
from ranktilt.reporting.markdown import markdown, markdown_line

FORMATS = ("table", "markdown", "csv", "json")
_TITLES = ("what it is", "tuned", "here", "pooling", "similarity", "tokens", "licence", "name on the hub")
_NARROW = (slice(0, 3), slice(3, 7))
Here = Mapping[str, str]
"""Where a model lies on this machine by its spec; a model that is not there is left out."""
Others = Sequence[tuple[str, str]]
"""Name and package of each ranker that an installed package brings."""


def models_table(models: Sequence[Model], here: Here, others: Others, *, format: str = "table") -> str:
    """Print the model table.

    Parameters
    ----------
    models : sequence of Model
        What to print, kind after kind.
    here : mapping of str to str
        Where a model lies, by its spec: ``{"dense:minilm": "wheel"}``.
    others : sequence of (str, str)
        Rankers of other packages: name and package.
    format : {"table", "markdown", "csv", "json"}, optional
        ``table`` and ``markdown`` leave out what `model_text` shows; ``csv`` and ``json`` hold every field.

    Returns
    -------
    str
        Ends with a line end.

    Raises
    ------
    UserError
        If the format is unknown.
    """
    if format not in FORMATS:
        raise unknown("format", format, FORMATS)
    if format == "csv":
        return pl.DataFrame([_flat(row) for row in _records(models, here)], infer_schema_length=None).write_csv()
    if format == "json":
        content = {
            "models": _records(models, here),
            "rankers": [{"name": name, "package": package} for name, package in others],
        }
        return json.dumps(content, indent=1, ensure_ascii=False) + "\n"
    if format == "markdown":
        return _markdown(models, here, others)
    stream = io.StringIO()
    show_models(models, here, others, stream)
    return stream.getvalue()


def show_models(
    models: Sequence[Model], here: Here, others: Others, stream: IO[str],
    *, notes: bool = True, terminal: IO[str] | None = None,
) -> None:  # fmt: skip
    """Print the table and, below it, how a model is named.

    Parameters
    ----------
    models, here, others
        See `models_table`.
    stream : file
        Where to.
    notes : bool, optional
        Whether to print what stands below the table.
    terminal : file, optional
        The terminal whose width and colours count, by default the stream itself. Without one the text is plain and
        as wide as it needs to be.
    """
    with printing(stream, terminal) as (console, plain):
        whole = _table(models, here, slice(None))
        for part in [whole] if fits(console, whole) else [_table(models, here, part) for part in _NARROW]:
            console.print(part)
        for line in closing(others) if notes else ():
            console.print(Text(line, style="dim"), soft_wrap=plain)


def closing(others: Others) -> list[str]:
    """Say how a model is named, and which rankers other packages bring."""
    lines = [
        'Re-rankers stand behind a first stage: -r "bm25@100>>monot5:base". Any other model: a folder, or its name on '
        "the hub, in the place of the short name: -r dense:FOLDER.",
        "tuned: body was never trained to rank and must be trained first. here: wheel, installed with pip; cache, "
        "fetched before; –, fetched when first used. ranktilt models NAME shows one in full, with its name on the hub.",
    ]
    if not others:
        return [*lines, "Rankers of other packages: none installed."]
    names = ", ".join(f"{name} ({package})" for name, package in others)
    return [*lines, f"Rankers of other packages: {names}."]


def model_text(one: Model, here: str | None) -> str:
    """Show one model in full.

    Parameters
    ----------
    one : Model
        What to show.
    here : str or None
        Where it lies on this machine; None where it does not.

    Returns
    -------
    str
        A line an entry, the spec first, ending with a line end.
    """
    prefixes = [f"{noun} {text!r}" for noun, text in (("query", one.query_prefix), ("document", one.document_prefix))]
    given = [text for text, prefix in zip(prefixes, (one.query_prefix, one.document_prefix), strict=True) if prefix]
    also = f" (also {', '.join(one.also)})" if one.also else ""
    entries = {
        "what it is": one.about,
        "from": f"{one.hub}{also}" if one.hub else "no published checkpoint",
        "source": one.source,
        "licence": one.licence,
        "reads": _reads(one),
        "pooling": one.pooling or "–",
        "similarity": one.similarity or "–",
        "prefixes": " and ".join(given) or "none",
        "tuned": "yes, it ranks as it is" if one.tuned else "no, a body: train it before it ranks",
        "here": here or ("no, fetched from the hub when first used" if one.hub else "no"),
        "typed": _typed(one),
    }
    wide = max(map(len, entries))
    return "".join([f"{one.spec}\n", *(f"  {name:<{wide}}  {text}\n" for name, text in entries.items())])


def _reads(one: Model) -> str:
    if one.limit is None:
        return "as many tokens as its files say"
    of = "of a text" if one.kind == "dense" else "of query and document together"
    return f"{counted(one.limit, 'token', 'tokens')} {of}"


def _typed(one: Model) -> str:
    if not one.hub:
        return f"-r {one.kind}:FOLDER, with your checkpoint in FOLDER"
    if not one.tuned:
        return f'ranktilt train {one.kind} DIR --from {one.hub} -o FOLDER, then -r "bm25@100>>{one.kind}:FOLDER"'
    return f'-r "{one.line}"' if ">>" in one.line else f"-r {one.line}"


def _records(models: Sequence[Model], here: Here) -> list[dict[str, Any]]:
    return [{"spec": one.spec, **asdict(one), "here": here.get(one.spec)} for one in models]


def _flat(record: Mapping[str, Any]) -> dict[str, Any]:
    return {key: " ".join(value) if isinstance(value, tuple) else value for key, value in record.items()}


def _cells(one: Model, here: Here) -> tuple[str, ...]:
    limit = "–" if one.limit is None else str(one.limit)
    return (
        one.about, "yes" if one.tuned else "body", here.get(one.spec, "–"), one.pooling or "–", one.similarity or "–",
        limit, one.licence, one.hub or "–",
    )  # fmt: skip


def _table(models: Sequence[Model], here: Here, chosen: slice) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("typed", no_wrap=True)
    for title in _TITLES[chosen]:
        if title == "tokens":
            table.add_column(title, no_wrap=True, justify="right")
        else:
            table.add_column(title, no_wrap=title != "what it is")
    kind = None
    for one in models:
        if one.kind != kind:
            table.add_section()
            kind = one.kind
        style = "" if one.tuned else "dim"
        cells = [Text(cell, style=style) for cell in _cells(one, here)[chosen]]
        table.add_row(Text(one.spec, style=style or "bold"), *cells)
    return table


def _markdown(models: Sequence[Model], here: Here, others: Others) -> str:
    titles = ("typed", *_TITLES)
    lines = [markdown_line(titles), markdown_line(["---:" if t == "tokens" else "---" for t in titles])]
    lines += [markdown_line((one.spec, *_cells(one, here))) for one in models]
    return "\n".join([*lines, "", *(f"- {markdown(line)}" for line in closing(others))]) + "\n"
