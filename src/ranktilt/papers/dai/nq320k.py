"""NQ320K from the files of Natural Questions: each Wikipedia page once, and its questions.

Each line of a file has a question and its page. The pages of all questions are the documents, and
the questions of the development set are the queries of the test.
"""

from __future__ import annotations

import re
import unicodedata
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

import polars as pl

from ranktilt._version import __version__
from ranktilt.data.builders import FOLDER, BuiltCollection
from ranktilt.data.collection import Collection
from ranktilt.data.faults.trimmed_texts import PAGE_TITLE
from ranktilt.data.formats.jsonl import json_objects
from ranktilt.data.notes.base import Remark
from ranktilt.data.text.quality import words as count_words
from ranktilt.errors import DataError, DataWarning, UserError
from ranktilt.progress import report

WORDS = 200
"""Number of words that a text is cut to.

This is our reading: Dai et al. print a mean length of 199.79 words, and no cut.
"""
PUBLISHED: Mapping[str, float] = {"documents": 109_739, "test queries": 7_830, "mean words": 199.79}
"""Numbers of NQ320K in Dai et al. (KDD 2024)."""
TRAINING = 307_373
"""Number of questions in the training set of Natural Questions."""
_REPORT_EVERY = 500
"""Number of lines after which progress is reported."""
_TAG = re.compile(r"</?[A-Za-z][^<>]*>")
"""A tag of HTML."""
_BLANKS = str.maketrans("\t\n\r", "   ")
"""Replaces tabs and line breaks by blanks."""
_H1 = re.compile(r"<H1>(.*?)</H1>", re.DOTALL)
"""Text of the main heading."""
_CJK = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)
"""Ranges of the code points of Chinese, Japanese and Korean characters."""


@dataclass(frozen=True, kw_only=True)
class NQ320K(BuiltCollection):
    """The collection with its numbers."""

    counts: Mapping[str, float]
    """Numbers of the collection, by the names of `PUBLISHED`."""
    train_lines: int
    """Number of training questions in the files."""

    @property
    def as_published(self) -> bool:
        """Whether documents and test queries are as many as published."""
        return all(self.counts[name] == PUBLISHED[name] for name in ("documents", "test queries"))


def nq320k(files: list[Path], *, words: int = WORDS) -> NQ320K:
    """Build NQ320K from Natural Questions: each page once, with the development set's questions.

    Parameters
    ----------
    files : list of Path
        Train and dev files of Natural Questions (.jsonl, .gz).
    words : int
        Cut texts to N words.
    """
    built = build_nq320k(files, words=words)
    truncated = (
        "Texts begin with their title and are truncated; rewrites may not be: `ranktilt check` "
        "shows it."
    )
    notes = [Remark(text=truncated)]
    if not built.as_published:
        seen = (
            f"{built.train_lines:,} training and {built.counts['test queries']:,} development "
            "questions were read"
        )
        published = f"but there are {TRAINING:,} and {PUBLISHED['test queries']:,}"
        notes.insert(0, Remark(text=f"Not as published: {seen}, {published}."))
    return replace(
        built,
        summary=tuple(_summary(built.counts)),
        notes=tuple(notes),
        next_command=("generate", "rewrite", FOLDER, "--llm", "openai:MODEL", "--dry-run"),
    )


def _summary(counts: Mapping[str, float]) -> Iterator[tuple[str, str]]:
    """Yield each number of the collection by its name, with the published number."""
    for name, published in PUBLISHED.items():
        digits = ",.2f" if name == "mean words" else ","
        count, expected = f"{counts[name]:{digits}}", f"{published:{digits}}"
        differs = "" if count == expected else "   differs"
        yield name, f"{count:>8}   {expected} published{differs}"


class _Document(NamedTuple):
    """A row of documents, in the order of the columns."""

    id: str
    """Number of the page, in order of appearance."""
    text: str
    """First words of the page, from its title on."""
    title: str
    """Title of the page."""
    url: str | None
    """Address of the page; None where the file names none."""


class _Pages:
    """The pages of the lines so far; of several pages with the same title, the first.

    `words` is the number of words that a text is cut to. Titles are the same if `fold_title`
    returns the same form of them.
    """

    def __init__(self, words: int) -> None:
        self.words = words
        # Id of each page by the form of its title.
        self.ids = dict[str, str]()
        self.documents = list[_Document]()

    def add(self, row: Mapping[str, Any]) -> str:
        """Return the id of a line's page, and add the page if its title is new.

        Raises
        ------
        ValueError
            If the line has no page.
        """
        page = read_page(row)
        key = fold_title(page.title)
        if key not in self.ids:
            id = str(len(self.documents))
            title = " ".join(page.title.split())
            text = " ".join(f"{title} {page.text(self.words)}".split()[: self.words])
            self.documents.append(_Document(id=id, text=text, title=title, url=page.url or None))
            self.ids[key] = id
        return self.ids[key]


def build_nq320k(files: Sequence[str | Path], *, words: int = WORDS) -> NQ320K:
    """Build NQ320K from files of Natural Questions, with ``train`` or ``dev`` in their names.

    Each page is a document, in order of appearance, cut after `words` words. Each development
    question is a query, with its page as the only relevant document. A text begins with its title,
    which is also in the column ``page_title`` (Wang et al., NeurIPS 2022; Dai et al., KDD 2024,
    sec. 2.2.1). docs/audit/collections.md says which rules the papers do not state.
    """
    if words < 1:
        raise UserError(f"expected at least 1 word per text, got {words}")
    question_files = _question_files([Path(file) for file in files])
    train, dev = question_files["train"], question_files["dev"]
    pages = _Pages(words)
    train_lines = sum(1 for _ in _lines(train, pages, "reading training questions", TRAINING))
    queries, qrels = dict[str, str](), list[tuple[str, str, int]]()
    query_count = int(PUBLISHED["test queries"])
    for line in _lines(dev, pages, "reading development questions", query_count):
        id, text = line.row.get("example_id"), line.row.get("question_text")
        if not isinstance(id, str | int) or id == "" or not isinstance(text, str):
            raise line.fault("expected the fields example_id and question_text")
        if str(id) in queries:
            raise line.fault(f"example_id {id} is repeated; is a file named twice?")
        queries[str(id)] = text
        qrels.append((str(id), line.page, 1))
    columns = dict.fromkeys(("id", "text", PAGE_TITLE, "url"), pl.String)
    docs = pl.DataFrame(pages.documents, schema=columns, orient="row")
    docs = docs.with_columns(source=pl.lit("human"))
    qrels_columns = {"query_id": pl.String, "doc_id": pl.String, "grade": pl.Int32}
    spec = {
        "built": "nq320k",
        "words": words,
        "split": "test",
        "ranktilt": __version__,
        "files": [str(file) for file in (*train, *dev)],
    }
    counts = {
        "documents": docs.height,
        "test queries": len(queries),
        "mean words": float(count_words(docs["text"]).to_numpy().mean()),
    }
    collection = Collection(
        docs,
        pl.DataFrame({"id": list(queries), "text": list(queries.values())}),
        pl.DataFrame(qrels, schema=qrels_columns, orient="row"),
        spec,
    )
    return NQ320K(collection=collection, counts=counts, train_lines=train_lines)


def _question_files(files: list[Path]) -> dict[str, list[Path]]:
    """Return the training and the development files, by ``train`` and ``dev``."""
    question_files: dict[str, list[Path]] = {"train": [], "dev": []}
    for file in files:
        kinds = [kind for kind in question_files if kind in file.name.lower()]
        if len(kinds) != 1:
            raise UserError(
                f"{file}: expected train or dev in the file's name, which says what it holds; "
                "rename it"
            )
        question_files[kinds[0]].append(file)
    if not question_files["dev"]:
        raise UserError(
            "expected the development set too (v1.0-simplified_nq-dev-all.jsonl.gz), with the "
            "test queries"
        )
    if not question_files["train"]:
        message = (
            "no training file: only the pages of the development set are there, far fewer than "
            "published"
        )
        warnings.warn(message, DataWarning, stacklevel=3)
    return question_files


@dataclass(frozen=True, kw_only=True)
class _PageLine:
    """A line of a file, and the id of its page."""

    file: Path
    """File of the line."""
    number: int
    """Number of the line, from 1."""
    row: Mapping[str, Any]
    """Fields of the line by name."""
    page: str
    """Id of the page."""

    def fault(self, message: str) -> DataError:
        """Return an error that names the line."""
        return DataError(self.file, message, line=self.number)


def _lines(files: Iterable[Path], pages: _Pages, label: str, expected: int) -> Iterator[_PageLine]:
    """Yield each line of files, and add its page to `pages`; one line is in memory at a time.

    `label` and `expected`, the number of lines, are for the progress.
    """
    line_count = 0
    for file in files:
        for number, row in json_objects(file):
            line_count += 1
            if line_count % _REPORT_EVERY == 0:
                report(label, min(line_count, expected - 1), expected)
            try:
                page = pages.add(row)
            except ValueError as error:
                raise DataError(file, str(error), line=number) from error
            yield _PageLine(file=file, number=number, row=row, page=page)
    report(label, expected, expected)


@dataclass(frozen=True, kw_only=True)
class WikipediaPage:
    """A question's page, whose content is parsed only when its text is read."""

    title: str
    """Title of the page."""
    content: str | list[Any]
    """A text, or a list of tokens."""
    url: str
    """Address of the page; empty where there is none."""

    def text(self, words: int) -> str:
        """Return the first words without tags.

        The text begins with the first paragraph. It ends with the last list but one, because the
        last two lists of a page are its references and links. It never ends before the end of the
        first paragraph. A page without lists is read to its end.
        """
        tokens = self._tokens()
        start = tokens.index("<P>") if "<P>" in tokens else 0
        first_paragraph = tokens.index("</P>") if "</P>" in tokens else 0
        list_ends = [index for index, token in enumerate(tokens) if token == "</Ul>"]
        # The last list but one, or the only one.
        end = max(list_ends[-2:][0], first_paragraph) if list_ends else len(tokens)
        return " ".join(islice(_words(tokens[start:end]), words))

    def _tokens(self) -> list[str]:
        """Return the words and tags of the content."""
        if isinstance(self.content, str):
            return self.content.split()
        try:
            # Natural Questions makes its simplified form in the same way. A tag with attributes
            # has blanks; with underscores in their place it stays one token.
            tokens = [token["token"].replace(" ", "_") for token in self.content]
            return " ".join(tokens).split()
        except (TypeError, KeyError, AttributeError) as error:
            raise ValueError(
                "expected document_tokens to be objects with the string token"
            ) from error


def _words(tokens: Iterable[str]) -> Iterator[str]:
    """Yield the tokens that are no tags."""
    return (token for token in tokens if not _TAG.fullmatch(token))


def read_page(row: Mapping[str, Any]) -> WikipediaPage:
    """Read the page of a line, from the simplified or the full form of the files.

    Its title is a field, or else the text of the first ``<H1>``, or else a part of the address.
    """
    simplified = row.get("document_text")
    content = simplified if isinstance(simplified, str) else row.get("document_tokens")
    if not isinstance(content, str | list):
        fields = ", ".join(sorted(row)) or "none"
        raise ValueError(
            "expected document_text (simplified) or document_tokens (full); "
            f"its fields are: {fields}"
        )
    url = _text_field(row, "document_url")
    title = _text_field(row, "document_title") or _heading(content) or _title_of_url(url)
    if not title.strip():
        raise ValueError("expected a title in document_title, <H1> or document_url, found none")
    return WikipediaPage(title=title, content=content, url=url)


def _text_field(row: Mapping[str, Any], name: str) -> str:
    """Return a field that is a text; an empty text for anything else."""
    value = row.get(name)
    return value if isinstance(value, str) else ""


def _heading(content: str | list[Any]) -> str:
    """Return the text of the first main heading; an empty text where there is none."""
    heading = _H1.search(content) if isinstance(content, str) else None
    return " ".join(_words(heading[1].split())) if heading else ""


def _title_of_url(url: str) -> str:
    """Return the title in an address, such as ``…/index.php?title=Red_apple&oldid=1``."""
    parts = urlsplit(url)
    _, _, title_in_path = parts.path.partition("/wiki/")
    titles = parse_qs(parts.query).get("title", [title_in_path])
    return unquote(titles[0]).replace("_", " ")


def fold_title(title: str) -> str:
    """Return a form of a title that is the same for slightly different spellings.

    It is the text as BERT's uncased tokenizer normalizes it: without case, accents and control
    characters, and with a blank on both sides of each punctuation mark. ``"Beyoncé (singer)"`` and
    ``"Beyonce ( Singer )"`` become one.
    """
    blanks = title.translate(_BLANKS)
    visible = "".join(char for char in blanks if not _is_control(char))
    # Character by character: Python lowers a sigma at the end of a word in another way.
    lower = "".join(map(str.lower, visible))
    decomposed = unicodedata.normalize("NFD", lower)
    plain = "".join(char for char in decomposed if unicodedata.category(char) != "Mn")
    return " ".join("".join(f" {char} " if _is_word(char) else char for char in plain).split())


def _is_control(char: str) -> bool:
    """Tell whether a character is removed: one that controls, formats, or is not assigned."""
    return char in "\0\ufffd" or unicodedata.category(char) in ("Cc", "Cf", "Co", "Cn")


def _is_word(char: str) -> bool:
    """Whether a character is a word by itself: punctuation, and Chinese, Japanese and Korean."""
    code = ord(char)
    if code < 128:
        return not (char.isalnum() or char.isspace())
    is_cjk = any(low <= code <= high for low, high in _CJK)
    return is_cjk or unicodedata.category(char).startswith("P")
