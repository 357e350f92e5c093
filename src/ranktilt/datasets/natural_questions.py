"""NQ320K from the files of Natural Questions: each Wikipedia page once, cut short, and the questions asked of it."""

from __future__ import annotations

import re
import unicodedata
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import orjson
import polars as pl

from ranktilt._version import __version__
from ranktilt.collection import Collection
from ranktilt.datasets.check import PAGE_TITLE
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
_TAG = re.compile(r"</?[A-Za-z][^<>]*>")
_H1 = re.compile(r"<H1>(.*?)</H1>", re.DOTALL)
_CJK = (
    (0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F), (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F),
)  # fmt: skip


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
    """Build NQ320K from files of Natural Questions; ``train`` or ``dev`` in a file's name tells which it is.

    One document a page, in order of appearance, cut after so many `words`, and one query a development question with
    its page as the only relevant document. With the titles ``"text"`` a text begins with its title, as published, and
    ``page_title`` keeps it; with ``"field"`` it is in ``title`` only. Wang et al., NeurIPS 2022; Dai et al., KDD 2024,
    sec. 2.2.1; docs/collections.md says which rules are theirs and which are our reading.
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


class NotAPage(ValueError):
    """A line that holds no question with its page; the message says what is missing."""


@dataclass(frozen=True)
class WikipediaPage:
    """A question's page, taken apart only when its text is wanted; `content` is a text or a list of tokens."""

    title: str
    content: str | list[Any]
    url: str

    def text(self, words: int) -> str:
        """Return the first so many words of the page, between single spaces, without tags.

        From the first paragraph on (all of the page where it has none) up to the end of the last list but one: behind
        it are the page's references and links. `NotAPage` if a token is no object with a text.
        """
        tokens = self._tokens()
        start = tokens.index("<P>") if "<P>" in tokens else 0
        paragraph = tokens.index("</P>") if "</P>" in tokens else 0
        ends = [i for i, token in enumerate(tokens) if token == "</Ul>"]
        end = max(ends[-2:][0], paragraph) if ends else len(tokens)
        return " ".join(islice(_words(tokens[start:end]), words))

    def _tokens(self) -> list[str]:
        if isinstance(self.content, str):
            return self.content.split()
        try:
            # As the simplified form is made: a tag's blanks become underscores, so that it is one token.
            return " ".join(token["token"].replace(" ", "_") for token in self.content).split()
        except (TypeError, KeyError, AttributeError) as error:
            raise NotAPage("expected document_tokens to be objects with the string token") from error


def _words(tokens: Iterable[str]) -> Iterator[str]:
    return (token for token in tokens if not _TAG.fullmatch(token))


def read_page(row: Mapping[str, Any]) -> WikipediaPage:
    """Read the page of one line, simplified (``document_text``) or full (``document_title``, ``document_tokens``).

    Its title is ``document_title`` where the line has it; else what stands between the first ``<H1>`` and ``</H1>``;
    else the one in ``document_url``. `NotAPage` if neither form is there, or a page has no title at all.
    """
    text, listed = row.get("document_text"), row.get("document_tokens")
    content = text if isinstance(text, str) else listed
    if not isinstance(content, str | list):
        came = ", ".join(sorted(row)) or "none"
        raise NotAPage(f"expected document_text (simplified) or document_tokens (full); its fields are: {came}")
    given, url = row.get("document_title"), row.get("document_url")
    address = url if isinstance(url, str) else ""
    title = (given if isinstance(given, str) else "") or _heading(content) or _named(address)
    if not title.strip():
        raise NotAPage("expected a title in document_title, <H1> or document_url, found none")
    return WikipediaPage(title, content, address)


def _heading(content: str | list[Any]) -> str:
    found = _H1.search(content) if isinstance(content, str) else None
    return " ".join(_words(found[1].split())) if found else ""


def _named(url: str) -> str:
    """The title that an address holds: ``…/index.php?title=Red_apple&oldid=1``."""
    parts = urlsplit(url)
    title = parse_qs(parts.query).get("title", [parts.path.partition("/wiki/")[2]])[0]
    return unquote(title).replace("_", " ")


def fold_title(title: str) -> str:
    """Fold a title as BERT's uncased tokenizer does, so that equal pages meet.

    Lower case, without accents and control characters; punctuation marks and Chinese characters stand alone: ``"Beyoncé
    (singer)"`` and ``"Beyonce ( Singer )"`` are one.
    """
    kept = "".join(" " if c in "\t\n\r" else c for c in title if c in "\t\n\r" or not _control(c))
    lower = "".join(map(str.lower, kept))  # one by one: a sigma that ends a word is lowered as any other
    plain = "".join(c for c in unicodedata.normalize("NFD", lower) if unicodedata.category(c) != "Mn")
    return " ".join("".join(f" {c} " if _alone(c) else c for c in plain).split())


def _control(char: str) -> bool:
    return char in "\0\ufffd" or unicodedata.category(char) in ("Cc", "Cf", "Co", "Cn")


def _alone(char: str) -> bool:
    code = ord(char)
    if code < 128:
        return not (char.isalnum() or char.isspace())
    return unicodedata.category(char).startswith("P") or any(low <= code <= high for low, high in _CJK)
