"""What a chat model says around a rewrite is taken off: openings, remarks at the end, fences and quotation marks."""

from __future__ import annotations

import re
from collections.abc import Callable

import polars as pl

from ranktilt.errors import UserError
from ranktilt.text import quality

_PASSES = 4
_LAST = 600
_NOTE_ROOM, _MOST_REMARKS = 2_000, 30
"""How far back a note may begin, and how many remarks there may be: a model in a loop writes megabytes of them."""

# Remarks about the rewriting, each a whole line or paragraph. They name what was done, and to what.
_S = r"['\u2019]"
_I = rf"i(?:{_S}ve|{_S}m| have| am)?(?: (?:also|only|simply|just))*"
_REWRITE = r"(?:re-?writ\w*|re-?wrote|paraphras\w*|re-?phras\w*|re-?word\w*)"
_TEXT = r"(?:text|passage|paragraph|abstract|version|article|document)"
_EDIT = (
    rf"(?:{_REWRITE}|chang\w+|replac\w+|simplif\w+|kept|maintain\w+|preserv\w+|retain\w+|remov\w+|add\w+|omit\w+"
    r"|shorten\w+|condens\w+|restructur\w+|reorgani[sz]\w+|adjust\w+|modif\w+|edit\w+|improv\w+|used|made|tried"
    r"|attempt\w+|aim\w+|avoid\w+)"
)
_EDITED = rf"\b{_I} {_EDIT}\b[^\n]{{0,300}}?\b(?:{_TEXT}|original|wording|phras\w+|{_REWRITE})\b"
_ABOUT = rf"(?:{_EDITED}|\b{_REWRITE} {_TEXT}\b|\boriginal (?:{_TEXT}|meaning|wording|content|tone|message)\b)"
_OPEN, _SHUT = r"[\s*_(\[>#]*", r"[\s*_)\].!?]*"
_NOTE = rf"{_OPEN}(?:please )?note\b[*_]*[^\n]{{0,400}}?{_ABOUT}[^\n]*"
_LINES = (
    _NOTE,
    rf"{_OPEN}(?:please )?note[*_]*:{_SHUT}",
    rf"{_OPEN}in (?:this|the|my) {_REWRITE} {_TEXT}\b[^\n]*",
    rf"{_OPEN}(?:this|the|my) {_REWRITE} (?:{_TEXT} )?(?:maintain|preserve|retain|keep|aim|convey|capture)s\b[^\n]*",
    rf"{_OPEN}{_EDITED}[^\n]*",
    rf"{_OPEN}word count\W{{1,6}}[\d,]+(?: words)?{_SHUT}",
)
_LINE = re.compile("|".join(_LINES), re.IGNORECASE)
_NOTE_AT_END = re.compile(rf"(?<=[.!?\"\u201d)\]])\s+(?=[*_(\[]*(?:please )?note\b){_NOTE}\Z", re.IGNORECASE)
_CHANGES = re.compile(
    rf"{_OPEN}(?:(?:here are|below are|these are|some of|a list of|the|some|a few|my|main|key|major|specific) )*"
    rf"(?:(?:changes|modifications|edits) (?:that )?(?:{_I} )?made\b[^\n]{{0,60}}|explanations? of (?:the )?changes)"
    r"[*_]*:[*_]*\s*",
    re.IGNORECASE,
)
_ITEM = re.compile(r"\s*(?:[-*\u2022\u2013+]|\d{1,2}[.)])\s+\S")
_RULE = re.compile(r"\s*(?:-{3,}|\*{3,}|_{3,}|={3,})\s*")
_ABOUT_IT = re.compile(rf"{_ABOUT}|\b{_REWRITE}\b|\b(?:word count|note\s*:)", re.IGNORECASE)

# Courtesies, each a sentence.
_MORE = r"(?:if (?:you|there|anything)|(?:(?:any|further|more|other|additional) )+questions?)"
_KNOW = (
    rf"(?:let me know\b[^.!?\n]{{0,160}}"
    rf"|(?:feel free|(?:don{_S}?t|do not) hesitate) to (?:ask|reach out|contact me)(?: to me| me)?"
    rf"(?: {_MORE}\b[^.!?\n]{{0,120}})?)"
)
_READY = (
    rf"i(?:{_S}ll|{_S}d|{_S}m| will| would| am)(?: be)?(?: more than)?(?: here)?(?: (?:happy|glad))? to (?:help|assist)"
)
_HELPS = r"(?:helps?|is helpful|was helpful|works for you|meets your|suits your|is what you|makes sense)"
_COURTESIES = (
    rf"(?:i )?(?:really |sincerely )?hope (?:that )?(?:this|it)(?: {_REWRITE})?(?: {_TEXT})? {_HELPS}\b"
    r"[^.!?\n]{0,80}",
    rf"(?:please )?{_KNOW}",
    rf"if (?:you|there|anything)\b[^.!?\n]{{0,120}}?\b(?:{_KNOW}|{_READY}\b[^.!?\n]{{0,100}})",
    r"(?:is there anything else (?:you|i)|would you like me to|(?:can|may) i (?:help|assist) you)\b[^.!?\n]{0,120}",
    rf"{_READY}\b[^.!?\n]{{0,100}}",
)
_COURTESY = re.compile(rf"[*_]*(?:{'|'.join(_COURTESIES)})[.!?]*\W*", re.IGNORECASE)
_COURTEOUS = re.compile(r"\b(?:hope|let me know|feel free|hesitate|anything else|questions?)\b", re.IGNORECASE)
_SENTENCE = re.compile(r"(?<=[.!?])[\"\u201d)\]*_]*\s+(?=[\w*_])")

# Wrappers around all of the text.
_THOUGHT = re.compile(r"\s*<(think|thinking|thought|reasoning|reflection)>.*?</\1>\s*", re.DOTALL)
_FENCE = re.compile(r"```[\w-]*[ \t]*\n(?P<inside>.*?)\s*```", re.DOTALL)
_TAG = re.compile(
    r"<((?:re-?written|paraphrased|rephrased|revised|summary|output|answer|result|text|passage|document)(?:[_-]\w+)?)>"
    r"(?P<inside>.*)</\1>",
    re.DOTALL | re.IGNORECASE,
)
_BOLD = re.compile(r"\*\*(?P<inside>[^*]+)\*\*")
_QUOTES = re.compile(
    r"\"(?P<plain>[^\"]+)\"|\u201c(?P<curly>[^\u201c\u201d]+)\u201d|\u00ab(?P<angle>[^\u00ab\u00bb]+)\u00bb"
)


def clean(
    raw: pl.Series, source: pl.Series, *, opening: Callable[[pl.Series], pl.Series] = quality.opening
) -> pl.DataFrame:
    """Take off what a model said around its rewrite, and nothing that a person would write; null counts as empty.

    One row an answer: `text`, without white space around it; `opening` and `closing`, what was taken off before and
    after it, null where nothing was. The three stand in the answer one after another, each to the letter. Taken off are
    openings (those that `opening` finds), a ``<think>`` block, remarks on the rewriting ("Note: I have …", "In
    this rewritten text, …", "Changes made:" with its list, a bare "Note:"), courtesies ("I hope this helps!", "Let me
    know if …"), and a code fence, a tag, bold type or one pair of quotation marks around all. English words only. What
    the source has itself stays. Where no letter and no digit would be left, nothing is taken off.
    """
    if len(raw) != len(source):
        raise UserError(f"clean: expected as many answers as sources ({len(source)}), got {len(raw)}")
    whole, sources = raw.fill_null("").to_list(), source.fill_null("").to_list()
    spans = [_stripped(text, 0, len(text)) for text in whole]
    active = list(range(len(whole)))
    for _ in range(_PASSES):
        openings = opening(pl.Series([whole[i][slice(*spans[i])] for i in active], dtype=pl.String)).to_list()
        before = [spans[i] for i in active]
        for i, found in zip(active, openings, strict=True):
            spans[i] = _narrowed(whole[i], spans[i], sources[i], found)
        active = [i for i, old in zip(active, before, strict=True) if spans[i] != old]
        if not active:
            break
    return _parts(whole, spans)


def remark(text: str) -> str | None:
    """Find what a model says after its rewrite, remarks on the rewriting or courtesies, as it stands; None for nothing.

    Unlike `clean`, this looks at no source.
    """
    end = _before_remarks(text, None)
    return text[end:].strip() or None


def _parts(whole: list[str], spans: list[tuple[int, int]]) -> pl.DataFrame:
    rows = []
    for text, (start, end) in zip(whole, spans, strict=True):
        if not re.search(r"[^\W_]", text[start:end]):
            start, end = _stripped(text, 0, len(text))
        rows.append((text[start:end], text[:start].strip() or None, text[end:].strip() or None))
    return pl.DataFrame(rows, schema=dict.fromkeys(("text", "opening", "closing"), pl.String), orient="row")


def _stripped(text: str, start: int, end: int) -> tuple[int, int]:
    inside = text[start:end]
    return start + len(inside) - len(inside.lstrip()), max(start, start + len(inside.rstrip()))


def _narrowed(whole: str, span: tuple[int, int], source: str, opening: str | None) -> tuple[int, int]:
    """Take one layer off: an opening or a thought, remarks, and a wrapper around what is left."""
    start, end = span
    thought = _THOUGHT.match(whole, start, end)
    if thought and not _THOUGHT.match(source):
        start = thought.end()
    elif opening is not None and quality.opening(pl.Series([source])).null_count():
        start = whole.index(opening, start) + len(opening)
    start, end = _stripped(whole, start, end)
    end = start + _before_remarks(whole[start:end], source)
    return _unwrapped(whole, *_stripped(whole, start, end), source)


def _unwrapped(whole: str, start: int, end: int, source: str) -> tuple[int, int]:
    text, plain = whole[start:end], source.lstrip()
    if text[:1] in ("`", "<", "*", '"', "\u201c", "\u00ab") and plain[:1] != text[:1]:
        for pattern in (_FENCE, _TAG, _BOLD, _QUOTES):
            found = pattern.fullmatch(text)
            if found and found.lastgroup and "```" not in found[found.lastgroup]:
                return _stripped(whole, start + found.start(found.lastgroup), start + found.end(found.lastgroup))
    if text.endswith("```") and text.count("```") == 1 and "```" not in source:
        return _stripped(whole, start, end - 3)
    return start, end


def _before_remarks(text: str, source: str | None) -> int:
    """Where the remarks at the end begin; the length of the text where there are none."""
    end = len(text)
    for _ in range(_MOST_REMARKS):
        if (start := _last_remark(text[:end].rstrip(), source)) is None:
            break
        end = start
    if end == len(text):
        return end
    kept = text[:end].rstrip()
    while kept and _RULE.fullmatch(kept, line := kept.rfind("\n") + 1):
        kept = kept[:line].rstrip()
    return len(kept)


def _last_remark(text: str, source: str | None) -> int | None:
    """Where the last line or sentence begins, if it is a remark that the source gives no reason for."""
    line = text.rfind("\n") + 1
    if (start := _last_note(text, line)) is not None:
        its_own = source is not None and (_ABOUT_IT.search(source) or _CHANGES.search(source))
        return None if its_own else start
    near = max(line, len(text) - _LAST)
    start = max((found.end() for found in _SENTENCE.finditer(text, near)), default=line)
    if _COURTESY.fullmatch(text, start):
        return None if source is not None and _COURTEOUS.search(source, max(0, len(source) - _LAST)) else start
    return None


def _last_note(text: str, line: int) -> int | None:
    if _LINE.fullmatch(text, line) or _CHANGES.fullmatch(text, line):
        return line
    if _ITEM.match(text, line):
        return _list_of_changes(text, line)
    near = max(line, len(text) - _NOTE_ROOM)
    found = _NOTE_AT_END.search(text, near) if "note" in text[near:].casefold() else None
    return found.start() if found else None


def _list_of_changes(text: str, line: int) -> int | None:
    """Where the heading above a list begins, if it announces what was changed."""
    while line and (_ITEM.match(text, line) or text.startswith("\n", line)):
        line = text.rfind("\n", 0, line - 1) + 1
    return line if _CHANGES.fullmatch(text, line, text.find("\n", line)) else None
