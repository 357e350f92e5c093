"""Lines of Natural Questions in its two forms, made from a title and paragraphs."""

from collections.abc import Sequence
from typing import Any


def tokens(title: str, *paragraphs: str, lists: Sequence[str] = ()) -> list[str]:
    """A page as Natural Questions tokenizes it: heading, a table, paragraphs, and lists of links at its end."""
    page = ["<H1>", *title.split(), "</H1>", "<Table>", "<Tr>", "<Td>", "Infobox", "</Td>", "</Tr>", "</Table>"]
    for text in paragraphs:
        page += ["<P>", *text.split(), "</P>"]
    for text in lists:
        page += ["<Ul>", "<Li>", *text.split(), "</Li>", "</Ul>"]
    return page


def simplified(id: int, question: str, title: str, *paragraphs: str, **more: Any) -> dict[str, Any]:
    """A line of the simplified training set."""
    return {
        "document_text": " ".join(tokens(title, *paragraphs, **more)),
        "question_text": question,
        "annotations": [{"yes_no_answer": "NONE", "long_answer": {"start_token": -1, "end_token": -1}}],
        "document_url": f"https://en.wikipedia.org//w/index.php?title={title.replace(' ', '_')}&amp;oldid={id}",
        "example_id": id,
    }


def full(id: int, question: str, title: str, *paragraphs: str, **more: Any) -> dict[str, Any]:
    """A line of the development set: HTML, and tokens that say whether they are a tag."""
    page = tokens(title, *paragraphs, **more)
    return {
        "document_html": f"<!DOCTYPE html>\n<html>{' '.join(page)}</html>",
        "document_title": title,
        "document_tokens": [{"start_byte": 0, "html_token": text.startswith("<"), "token": text} for text in page],
        "document_url": f"https://en.wikipedia.org//w/index.php?title={title.replace(' ', '_')}&amp;oldid={id}",
        "example_id": id,
        "question_text": question,
    }
