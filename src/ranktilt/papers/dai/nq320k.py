"""NQ320K from the files of Natural Questions: each Wikipedia page once, cut short, and the questions asked of it."""

from __future__ import annotations

import re
import unicodedata
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import polars as pl

from ranktilt._version import __version__
from ranktilt.data.builders import FOLDER, BuiltCollection
from ranktilt.data.collection import Collection
from ranktilt.data.formats.jsonl import json_objects
from ranktilt.data.notes.base import Remark
from ranktilt.data.text.quality import words as count_words
from ranktilt.data.trimmed_texts import PAGE_TITLE
from ranktilt.errors import DataError, DataWarning, UserError
from ranktilt.progress import report

WORDS = 200
"""Our reading: Dai et al. print a mean length of 199.79, and no cut."""
PUBLISHED: Mapping[str, float] = {"documents": 109_739, "test queries": 7_830, "mean words": 199.79}
"""What Dai et al. (KDD 2024) count in NQ320K."""
TRAINING = 307_373
"""Lines of the simplified training set."""
_REPORTED = 500
_TAG = re.compile(r"</?[A-Za-z][^<>]*>")
_H1 = re.compile(r"<H1>(.*?)</H1>", re.DOTALL)
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


@dataclass(frozen=True, kw_only=True)
class NQ320K(BuiltCollection):
    """The collection, with its counts by the names of `PUBLISHED`, and the training questions read."""

    counts: Mapping[str, float]
    train_lines: int

    @property
    def as_published(self) -> bool:
        """Whether documents and test queries are as many as published."""
        return all(self.counts[name] == PUBLISHED[name] for name in ("documents", "test queries"))


def nq320k(files: list[Path], *, words: int = WORDS) -> NQ320K:
    """Build NQ320K from Natural Questions: each page once, cut short, with the development set's questions.

    Parameters
    ----------
    files : list of Path
        Natural Questions: its train and dev files (.jsonl, .gz).
    words : int
        Cut texts to so many words.
    """
    built = build_nq320k(files, words=words)
    truncated = "Texts begin with their title and are truncated; rewrites may not be: `ranktilt check` tells."
    notes = [Remark(text=truncated)]
    if not built.as_published:
        seen = f"{built.train_lines:,} training and {built.counts['test queries']:,} development questions were read"
        published = f"{TRAINING:,} and {PUBLISHED['test queries']:,} there are"
        notes.insert(0, Remark(text=f"Not as published: {seen}, {published}."))
    return replace(
        built,
        summary=tuple(_summary(built.counts)),
        notes=tuple(notes),
        next_command=("generate", "rewrite", FOLDER, "--llm", "openai:MODEL", "--dry-run"),
    )


def _summary(counts: Mapping[str, float]) -> Iterator[tuple[str, str]]:
    """Yield each count beside the published one."""
    for name, published in PUBLISHED.items():
        digits = ",.2f" if name == "mean words" else ","
        count, expected = f"{counts[name]:{digits}}", f"{published:{digits}}"
        differs = "" if count == expected else "   differs"
        yield name, f"{count:>8}   {expected} published{differs}"


class _Pages:
    """The pages met so far: the first one of each folded title."""

    def __init__(self, words: int) -> None:
        self.words = words
        self.ids = dict[str, str]()
        self.rows = list[tuple[str, str, str, str | None]]()

    def add(self, row: Mapping[str, Any]) -> str:
        """The id of a line's page, which is taken up if its title is new; `ValueError` where it holds none."""
        page = read_page(row)
        key = fold_title(page.title)
        if key not in self.ids:
            title = " ".join(page.title.split())
            whole = " ".join(f"{title} {page.text(self.words)}".split()[: self.words])
            self.ids[key] = str(len(self.rows))
            self.rows.append((self.ids[key], whole, title, page.url or None))
        return self.ids[key]


def build_nq320k(files: Sequence[str | Path], *, words: int = WORDS) -> NQ320K:
    """Build NQ320K from files of Natural Questions; ``train`` or ``dev`` in a file's name tells which it is.

    One document a page, in order of appearance, cut after so many `words`, and one query a
    development question with its page as the only relevant document. A text begins with its title,
    which ``page_title`` keeps (Wang et al., NeurIPS 2022; Dai et al., KDD 2024, sec. 2.2.1);
    docs/audit/collections.md says which rules are our reading.
    """
    if words < 1:
        raise UserError(f"expected at least 1 word a text, got {words}")
    train, dev = _parts([Path(file) for file in files])
    pages = _Pages(words)
    read = sum(1 for _ in _lines(train, pages, "reading training questions", TRAINING))
    queries, qrels = dict[str, str](), list[tuple[str, str, int]]()
    for row, page, fault in _lines(
        dev, pages, "reading development questions", int(PUBLISHED["test queries"])
    ):
        id, text = row.get("example_id"), row.get("question_text")
        if not isinstance(id, str | int) or id == "" or not isinstance(text, str):
            raise fault("expected the fields example_id and question_text")
        if str(id) in queries:
            raise fault(f"example_id {id} came before; is a file named twice?")
        queries[str(id)] = text
        qrels.append((str(id), page, 1))
    names = dict.fromkeys(("id", "text", PAGE_TITLE, "url"), pl.String)
    docs = pl.DataFrame(pages.rows, schema=names, orient="row").with_columns(source=pl.lit("human"))
    judged = pl.DataFrame(
        qrels, schema={"query_id": pl.String, "doc_id": pl.String, "grade": pl.Int32}, orient="row"
    )
    asked = pl.DataFrame({"id": list(queries), "text": list(queries.values())})
    spec = {
        "built": "nq320k",
        "words": words,
        "split": "test",
        "ranktilt": __version__,
        "files": [str(file) for file in (*train, *dev)],
    }
    mean = float(count_words(docs["text"]).to_numpy().mean())
    counts = {"documents": docs.height, "test queries": asked.height, "mean words": mean}
    collection = Collection(docs, asked, judged, spec)
    return NQ320K(collection=collection, counts=counts, train_lines=read)


def _parts(files: list[Path]) -> tuple[list[Path], list[Path]]:
    """Training files and development files, told by their names."""
    parts = dict[str, list[Path]](train=[], dev=[])
    for file in files:
        kinds = [kind for kind in parts if kind in file.name.lower()]
        if len(kinds) != 1:
            raise UserError(
                f"{file}: expected train or dev in the file's name, which says what it holds; rename it"
            )
        parts[kinds[0]].append(file)
    if not parts["dev"]:
        raise UserError(
            "expected the development set too (v1.0-simplified_nq-dev-all.jsonl.gz), of the test queries"
        )
    if not parts["train"]:
        message = "no training file: only the pages of the development set are there, far fewer than published"
        warnings.warn(message, DataWarning, stacklevel=3)
    return parts["train"], parts["dev"]


def _lines(
    files: Iterable[Path], pages: _Pages, label: str, expected: int
) -> Iterator[tuple[Mapping[str, Any], str, Callable[[str], DataError]]]:
    """Each line of files with its page's id, and what makes an error of it; one line is held at a time."""
    done = 0
    for file in files:
        for number, row in json_objects(file):
            done += 1
            if done % _REPORTED == 0:
                report(label, min(done, expected - 1), expected)
            fault = partial(DataError, file, line=number)
            try:
                yield row, pages.add(row), fault
            except ValueError as error:
                raise fault(str(error)) from error
    report(label, expected, expected)


@dataclass(frozen=True)
class WikipediaPage:
    """A question's page, taken apart only when its text is wanted; `content` is a text or a list of tokens."""

    title: str
    content: str | list[Any]
    url: str

    def text(self, words: int) -> str:
        """Return the first words, no tags, from the first paragraph up to the last list but one (then references)."""
        whole = self.content
        try:  # as the simplified form is made: a tag's blanks become underscores, so that it is one token
            whole = (
                whole
                if isinstance(whole, str)
                else " ".join(one["token"].replace(" ", "_") for one in whole)
            )
        except (TypeError, KeyError, AttributeError) as error:
            raise ValueError(
                "expected document_tokens to be objects with the string token"
            ) from error
        tokens = whole.split()
        start = tokens.index("<P>") if "<P>" in tokens else 0
        paragraph = tokens.index("</P>") if "</P>" in tokens else 0
        ends = [i for i, token in enumerate(tokens) if token == "</Ul>"]
        end = max(ends[-2:][0], paragraph) if ends else len(tokens)
        return " ".join(islice(_words(tokens[start:end]), words))


def _words(tokens: Iterable[str]) -> Iterator[str]:
    return (token for token in tokens if not _TAG.fullmatch(token))


def read_page(row: Mapping[str, Any]) -> WikipediaPage:
    """Read the page of a line, simplified or full, with its title: a field, the first ``<H1>``, or the address."""
    text, listed = row.get("document_text"), row.get("document_tokens")
    content = text if isinstance(text, str) else listed
    if not isinstance(content, str | list):
        came = ", ".join(sorted(row)) or "none"
        raise ValueError(
            f"expected document_text (simplified) or document_tokens (full); its fields are: {came}"
        )
    given, url = row.get("document_title"), row.get("document_url")
    address = url if isinstance(url, str) else ""
    title = (given if isinstance(given, str) else "") or _heading(content) or _named(address)
    if not title.strip():
        raise ValueError("expected a title in document_title, <H1> or document_url, found none")
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
    """Fold a title as BERT's uncased tokenizer does: ``"Beyoncé (singer)"`` and ``"Beyonce ( Singer )"`` are one."""
    kept = "".join(" " if c in "\t\n\r" else c for c in title if c in "\t\n\r" or not _control(c))
    lower = "".join(
        map(str.lower, kept)
    )  # one by one: a sigma that ends a word is lowered as any other
    plain = "".join(
        c for c in unicodedata.normalize("NFD", lower) if unicodedata.category(c) != "Mn"
    )
    return " ".join("".join(f" {c} " if _alone(c) else c for c in plain).split())


def _control(char: str) -> bool:
    return char in "\0\ufffd" or unicodedata.category(char) in ("Cc", "Cf", "Co", "Cn")


def _alone(char: str) -> bool:
    code = ord(char)
    if code < 128:
        return not (char.isalnum() or char.isspace())
    return unicodedata.category(char).startswith("P") or any(
        low <= code <= high for low, high in _CJK
    )
