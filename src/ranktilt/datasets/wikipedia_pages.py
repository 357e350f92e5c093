"""Pages as Natural Questions holds them: a title, and a text of words and HTML tags that are tokens of their own."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

_TAG = re.compile(r"</?[A-Za-z][^<>]*>")
_H1 = re.compile(r"<H1>(.*?)</H1>", re.DOTALL)
_CJK = (
    (0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F), (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F),
)  # fmt: skip


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
