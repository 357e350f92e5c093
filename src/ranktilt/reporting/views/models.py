"""The models that RankTilt knows by short name, and one model in full."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ranktilt.errors import counted
from ranktilt.models.catalogue import Model
from ranktilt.reporting.document import Block, Cell, Column, Document, Lines, Pairs, Row, Sentence, Table, printed
from ranktilt.reporting.numbers import DASH

_LEGEND = (
    'Re-rankers stand behind a first stage: -r "bm25@100>>monot5:base". Any other model: a folder, or its name on '
    "the hub, in the place of the short name: -r dense:FOLDER.",
    "tuned: body was never trained to rank and must be trained first. here: wheel, installed with pip; cache, "
    "fetched before; –, fetched when first used. ranktilt models NAME shows one in full, with its name on the hub.",
)


@dataclass(frozen=True)
class ModelList:
    """Models, kind after kind, and what is known of this machine."""

    models: Sequence[Model]
    here: Mapping[str, str]
    """Where a model lies on this machine by its spec; a model that is not there is left out."""
    others: Sequence[tuple[str, str]] = ()
    """Name and package of each ranker that an installed package brings."""
    full: bool = False
    """Whether each is shown in full."""

    @property
    def records(self) -> list[dict[str, Any]]:
        return [{"spec": one.spec, **asdict(one), "here": self.here.get(one.spec)} for one in self.models]

    def to_json(self) -> bytes:
        rankers = [{"name": name, "package": package} for name, package in self.others]
        content = {"models": self.records, "rankers": rankers}
        return f"{json.dumps(content, indent=1, ensure_ascii=False)}\n".encode()


def view(listed: ModelList) -> Document:
    """Return what is said of the models."""
    names = ", ".join(f"{name} ({package})" for name, package in listed.others) or "none installed"
    return Document(
        title="Models",
        kind="Models by short name",
        headline=counted(len(listed.models), "model", "models"),
        sections=printed(_cards(listed) if listed.full else [_table(listed)]),
        legend=() if listed.full else (*_LEGEND, f"Rankers of other packages: {names}."),
    )


def _table(listed: ModelList) -> Table:
    columns = (
        Column("typed", number=False, header=True),
        Column("what it is", number=False),
        *(Column(title, number=False) for title in ("tuned", "here", "pooling", "similarity")),
        Column("tokens"),
        *(Column(title, number=False) for title in ("licence", "name on the hub")),
    )
    rows = []
    kind = ""
    for one in listed.models:
        limit = DASH if one.limit is None else str(one.limit)
        texts = (
            one.about, "yes" if one.tuned else "body", listed.here.get(one.spec, DASH), one.pooling or DASH,
            one.similarity or DASH, limit, one.licence, one.hub or DASH,
        )  # fmt: skip
        name = Cell(one.spec, emphasis="strong" if one.tuned else "quiet")
        cells = tuple(Cell(text, emphasis="" if one.tuned else "quiet") for text in texts)
        rows.append(Row((name, *cells), rule=bool(kind) and one.kind != kind))
        kind = one.kind
    return Table("Models", columns, tuple(rows))


def _cards(listed: ModelList) -> list[Block]:
    blocks: list[Block] = []
    for one in listed.models:
        blocks.append(Lines((*[Sentence("")] * bool(blocks), Sentence(one.spec))))
        blocks.append(Pairs(tuple(_entries(one, listed.here.get(one.spec)).items()), only=""))
    return blocks


def _entries(one: Model, here: str | None) -> dict[str, str]:
    prefixes = {"query": one.query_prefix, "document": one.document_prefix}
    also = f" (also {', '.join(one.also)})" if one.also else ""
    return {
        "what it is": one.about,
        "from": f"{one.hub}{also}" if one.hub else "no published checkpoint",
        "source": one.source,
        "licence": one.licence,
        "reads": _reads(one),
        "pooling": one.pooling or DASH,
        "similarity": one.similarity or DASH,
        "prefixes": " and ".join(f"{noun} {text!r}" for noun, text in prefixes.items() if text) or "none",
        "tuned": "yes, it ranks as it is" if one.tuned else "no, a body: train it before it ranks",
        "here": here or ("no, fetched from the hub when first used" if one.hub else "no"),
        "typed": _typed(one),
    }


def _reads(one: Model) -> str:
    if one.limit is None:
        return "as many tokens as its files say"
    of = "of a text" if one.kind == "dense" else "of query and document together"
    return f"{counted(one.limit, 'token', 'tokens')} {of}"


def _typed(one: Model) -> str:
    if not one.hub:
        return f"-r {one.kind}:FOLDER, with your checkpoint in FOLDER"
    if not one.tuned:
        return f'ranktilt train {one.kind} DIR --base-model {one.hub} -o FOLDER, then -r "bm25@100>>{one.kind}:FOLDER"'
    return f'-r "{one.line}"' if ">>" in one.line else f"-r {one.line}"
