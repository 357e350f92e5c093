"""NQ320K from the files of Natural Questions: each Wikipedia page once, cut short, and the questions asked of it."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
import polars as pl

from ranktilt._version import __version__
from ranktilt.collection import Collection
from ranktilt.datasets.check import PAGE_TITLE
from ranktilt.datasets.wikipedia_pages import NotAPage, WikipediaPage, fold_title, read_page
from ranktilt.errors import DataError, DataWarning, UserError, shorten, unknown
from ranktilt.io.files import line_chunks
from ranktilt.io.jsonl import parse_line
from ranktilt.progress import report
from ranktilt.text.quality import words as count_words

TITLES = ("text", "field")
WORDS = 200
"""Our reading: Dai et al. print a mean length of 199.79, and no cut."""
PUBLISHED: Mapping[str, float] = {"documents": 109_739, "test queries": 7_830, "mean words": 199.79}
"""What Dai et al. (KDD 2024) count in NQ320K."""
TRAINING = 307_373
"""Lines of the simplified training set."""


@dataclass(frozen=True)
class Built:
    """A collection that was built, its counts by the names of `PUBLISHED`, and the training questions read."""

    collection: Collection
    counts: Mapping[str, float]
    train_lines: int

    @property
    def as_published(self) -> bool:
        """Whether documents and test queries are as many as published."""
        return all(self.counts[name] == PUBLISHED[name] for name in ("documents", "test queries"))


@dataclass(frozen=True)
class _Question:
    """A question, and the line it stands in."""

    file: Path
    line: int
    id: str
    text: str
    row: Mapping[str, Any]

    def fault(self, message: str) -> DataError:
        return DataError(self.file, message, line=self.line)


@dataclass
class _Pages:
    """The pages met so far: the first one of each folded title."""

    words: int
    titles: str
    number: dict[str, int] = field(default_factory=dict)
    rows: list[tuple[str, str, str, str | None, str | None]] = field(default_factory=list)

    def add(self, asked: _Question) -> str:
        """The id of a question's page, which is taken up if its title is new."""
        try:
            page = read_page(asked.row)
            key = fold_title(page.title)
            if key not in self.number:
                self.rows.append(self._row(str(len(self.rows)), page))
                self.number[key] = len(self.rows) - 1
        except NotAPage as error:
            raise asked.fault(str(error)) from error
        return str(self.number[key])

    def _row(self, id: str, page: WikipediaPage) -> tuple[str, str, str, str | None, str | None]:
        title, text = " ".join(page.title.split()), page.text(self.words)
        if self.titles == "field":
            return id, title, text, None, page.url or None
        return id, "", " ".join(f"{title} {text}".split()[: self.words]), title, page.url or None


def build_nq320k(files: Sequence[str | Path], *, words: int = WORDS, titles: str = "text") -> Built:
    """Build NQ320K from the files of Natural Questions, JSON lines, plain or gzip.

    They are the simplified training set (``v1.0-simplified_simplified-nq-train.jsonl.gz``) and the development set
    (``v1.0-simplified_nq-dev-all.jsonl.gz``); ``train`` or ``dev`` in a file's name says which it is. Training files
    are read first, in any order given. Texts are cut after so many `words`, counted between blanks. With the titles
    ``"text"`` a text begins with its title, as published, and the field ``title`` stays empty, so that the title is not
    ranked twice (the column ``page_title`` keeps it); with ``"field"`` the title is in ``title`` only.

    One document a page, in order of appearance, and one query a development question with its page as the only relevant
    document. A page is known again by its folded title; its first appearance gives the text. `UserError` if there is no
    development file, a file's name does not say which it is, or an option is unknown; `DataError` names file and line.

    Wang et al., A Neural Corpus Indexer, NeurIPS 2022, whose published notebook counts 109,739 pages; Dai et al.,
    KDD 2024, sec. 2.2.1. docs/collections.md says which rules are theirs and which are our reading.
    """
    if titles not in TITLES:
        raise unknown("place of titles", titles, TITLES)
    if words < 1:
        raise UserError(f"expected at least 1 word a text, got {words}")
    train, dev = _parts([Path(file) for file in files])
    pages, read = _Pages(words, titles), 0
    for asked in _questions(train, "reading training questions", TRAINING):
        pages.add(asked)
        read += 1
    queries, qrels, seen = list[tuple[str, str]](), list[tuple[str, str, int]](), set[str]()
    for asked in _questions(dev, "reading development questions", int(PUBLISHED["test queries"])):
        if asked.id in seen:
            raise asked.fault(f"example_id {asked.id} came before; is a file named twice?")
        seen.add(asked.id)
        queries.append((asked.id, asked.text))
        qrels.append((asked.id, pages.add(asked), 1))
    if not queries:
        raise UserError(f"{dev[0]}: expected questions, got none")
    spec = {
        "built": "nq320k", "words": words, "titles": titles, "split": "test", "ranktilt": __version__,
        "files": [str(file) for file in (*train, *dev)],
    }  # fmt: skip
    return _built(pages, queries, qrels, spec, read)


def _built(
    pages: _Pages, queries: list[tuple[str, str]], qrels: list[tuple[str, str, int]], spec: Mapping[str, Any],
    train_lines: int,
) -> Built:  # fmt: skip
    text = dict.fromkeys(("id", "title", "text", PAGE_TITLE, "url"), pl.String)
    docs = pl.DataFrame(pages.rows, schema=text, orient="row")
    judged = pl.DataFrame(qrels, schema={"query_id": pl.String, "doc_id": pl.String, "grade": pl.Int32}, orient="row")
    asked = pl.DataFrame(queries, schema={"id": pl.String, "text": pl.String}, orient="row")
    collection = Collection(docs, asked, judged, spec)
    mean = float(count_words(docs["text"]).to_numpy().mean())
    counts = {"documents": docs.height, "test queries": asked.height, "mean words": mean}
    return Built(collection, counts, train_lines)


def _parts(files: list[Path]) -> tuple[list[Path], list[Path]]:
    """Training files and development files, told by their names."""
    train, dev = list[Path](), list[Path]()
    for file in files:
        kinds = [kind for kind in ("train", "dev") if kind in file.name.lower()]
        if len(kinds) != 1:
            raise UserError(f"{file}: expected train or dev in the file's name, which says what it holds; rename it")
        (train if kinds == ["train"] else dev).append(file)
    if not dev:
        raise UserError(
            "expected the development set too (v1.0-simplified_nq-dev-all.jsonl.gz): it has the test queries"
        )
    if not train:
        warnings.warn(
            "no training file: only the pages of the development set are there, far fewer than published",
            DataWarning,
            stacklevel=3,
        )
    return train, dev


def _questions(files: Iterable[Path], label: str, expected: int) -> Iterator[_Question]:
    """The questions of files; no more than a few megabytes and one line are held."""
    done = 0
    for file in files:
        for first, lines in line_chunks(file):
            report(label, min(done, expected - 1), expected)
            for number, line in enumerate(lines, start=first):
                if line and not line.isspace():
                    done += 1
                    yield _question(file, number, line)
    report(label, expected, expected)


def _question(file: Path, number: int, line: bytes) -> _Question:
    shown = shorten(line[:200].decode(errors="replace"))
    try:
        row = parse_line(line)
    except orjson.JSONDecodeError as error:
        message = f"expected one JSON object, got broken JSON ({error}): {shown}"
        raise DataError(file, message, line=number) from error
    if not isinstance(row, dict):
        raise DataError(file, f"expected one JSON object, got {type(row).__name__}: {shown}", line=number)
    id, text = row.get("example_id"), row.get("question_text")
    if not isinstance(id, str | int) or id == "" or not isinstance(text, str):
        raise DataError(file, f"expected the fields example_id and question_text: {shown}", line=number)
    return _Question(file, number, str(id), text, row)
