"""Remove everything that models and servers put around an answer, before it is read.

A *mark* is a token or tag that is no text of the answer, such as ``<think>`` or ``<|im_end|>``. A
*wrapper* is anything else around an answer. The following is no part of an answer:

- reasoning: ``<think>``, ``<thinking>``, ``<reasoning>``, ``<thought>`` and the like, the marks of
  Mistral, Cohere, Kimi, Sky-T1, Seed and Granite, and the ``analysis`` channel of gpt-oss, with or
  without its special tokens. A block may have only its end mark, because its start was in the
  prompt. If a block has no end, the text was cut off, and there is no answer;
- traces of a chat template: roles before an answer, and everything from the first end of a turn on
  (``<|im_end|>``, ``<|eot_id|>``, ``</s>``);
- marks of byte order, and invisible characters;
- around short answers (rankings, choices, grades, yes or no), which `clean_answer` reads:
  ``<answer>`` tags, LaTeX boxes, code fences, JSON with a single value, "Final answer:", quotation
  marks, and Markdown.

Answers are stored unchanged and cleaned when they are read, so that a better cleaner also improves
what journals and logs hold. Nothing here searches prose for an answer; readers stay strict. A
rewritten document may have fences, tags and quotation marks itself: `answer_span` finds its start
and end, and `ranktilt.generation.checks` removes only what surrounds all of it and is not in its
source.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

INVISIBLE = "\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff"
"""Invisible characters, as a part of a regular expression's set."""
LONGEST = 20_000
"""Most characters of an answer that are read, after its reasoning is removed."""

_MARK = re.compile(
    r"(?<!`)(?:"
    r"[<\u25c1](?P<slash>/?)(?P<name>think(?:ing)?|thoughts?|reason(?:ing)?|reflection|analysis"
    r"|scratchpad|seed:think|antthinking)(?:\s[^<>]{0,200})?[>\u25b7]"
    r"|\[(?P<mistral_slash>/?)(?-i:THINK)\]"
    r"|<\|(?P<side>start|begin|end)_(?:of_)?(?:thinking|thought)\|>"
    r"|\A\s*(?P<granite>Here(?: is|'s) my thought process:)"
    r"|(?P<granite_end>Here(?: is|'s) my response:)"
    r")",
    re.IGNORECASE,
)
"""Start or end mark of reasoning; in backticks, a text only mentions one."""
_FINAL_CHANNEL = re.compile(r"<\|channel\|>\s*final\b[^<]*(?:<\|constrain\|>[^<]*)?<\|message\|>")
"""Start of the final channel of gpt-oss."""
_ANY_CHANNEL = re.compile(r"<\|channel\|>")
"""Start of any channel of gpt-oss."""
_BARE_CHANNEL = re.compile(r"\s*(?:assistant)?(?:analysis|commentary)(?=[A-Z\"'(\[\d])")
"""Name of a channel whose special tokens were dropped, in one word with what follows."""
_BARE_FINAL = "assistantfinal"
"""Name of the final channel without its special tokens, in one word with what follows."""
_TURN_START = re.compile(
    rf"(?:[\s{INVISIBLE}]"
    r"|<\|(?:im_start|start|start_header_id)\|>\s*assistant(?:\s*<\|end_header_id\|>)?"
    r"|<start_of_turn>\s*model|<\|assistant\|>|<\uff5cAssistant\uff5c>|\[/INST\]|<s>|<bos>"
    r"|<\|(?:begin_of_text|message|START_RESPONSE|begin_of_solution|START_OF_TURN_TOKEN"
    r"|CHATBOT_TOKEN)\|>|\Aassistant[ \t]*\n)+"
)
"""Marks of a chat template before an answer, and roles."""
_TURN_END = re.compile(
    r"<\|(?:im_end|im_start|eot_id|eom_id|eot|end|return|call|end_of_text|endoftext|end_of_turn"
    r"|END_OF_TURN_TOKEN|END_RESPONSE|end_of_solution|eos|user|observation|start_header_id)\|>"
    r"|</s>|<end_of_turn>|<eos>|\[EOS\]|<\uff5cend\u2581of\u2581sentence\uff5c>"
)
"""Marks of a chat template that end a turn; nothing after them is part of an answer."""
_NOTHING_BUT_MARKS = re.compile(r"\s*(?:<\||\Z)")
"""Blanks that are followed by another mark or by the end of the text."""


@dataclass(frozen=True, kw_only=True)
class AnswerSpan:
    """The part of a model's text that is its answer."""

    start: int
    """Position of the answer's first character."""
    end: int
    """Position after its last character."""
    is_cut_off: bool = False
    """Whether the text ends before its answer begins, so that there is only reasoning."""


@dataclass(frozen=True, kw_only=True)
class CleanAnswer:
    """A short answer without everything around it."""

    text: str
    """The answer, without wrappers."""
    plain: str
    """The answer with its wrappers, but without reasoning and marks of the chat template."""
    is_cut_off: bool = False
    """Whether the model's text ends before its answer begins, so that there is only reasoning."""

    @property
    def is_wrapped(self) -> bool:
        """Whether there was a wrapper around the answer; reasoning and marks do not count."""
        return self.text != self.plain


def answer_span(text: str, source: str | None = None) -> AnswerSpan:
    """Find the answer in a model's text: after its reasoning, and up to the end of its turn.

    `source` is the text that the answer rewrites or replies to; None for a short answer. An answer
    with a source may be a document of any kind, also one about chat templates. Marks that the
    source has as well are then left alone, and an end of turn counts only if nothing but marks
    follows it.
    """
    is_document = source is not None
    start, is_cut_off = _channel_start(text)
    if not is_cut_off:
        start, is_cut_off = _reasoning_end(text, start, source=source or "")
    if is_cut_off:
        return AnswerSpan(start=len(text), end=len(text), is_cut_off=True)
    begin, end = _after(_TURN_START, text, start), len(text)
    if not is_document or not _TURN_END.search(source or ""):
        marks = _TURN_END.finditer(text, begin)
        ends = (
            mark.start()
            for mark in marks
            if not is_document or _NOTHING_BUT_MARKS.match(text, mark.end())
        )
        end = next(ends, end)
    return AnswerSpan(start=begin, end=end, is_cut_off=start > 0 and not text[begin:end].strip())


def _channel_start(text: str) -> tuple[int, bool]:
    """Return the position at which the final channel of gpt-oss begins, and whether it is missing.

    The position is 0 in a text without channels.
    """
    finals = list(_FINAL_CHANNEL.finditer(text))
    if finals:
        return finals[-1].end(), False
    if _ANY_CHANNEL.search(text):
        return len(text), True
    start = text.rfind(_BARE_FINAL)
    if start >= 0:
        return start + len(_BARE_FINAL), False
    return (len(text), True) if _BARE_CHANNEL.match(text) else (0, False)


def _reasoning_end(text: str, start: int, *, source: str) -> tuple[int, bool]:
    """Return the position at which the reasoning before an answer ends, and whether it has no end.

    Reasoning may be several blocks, each from a start mark to its end mark. An end mark without a
    start belongs to a block that began in the prompt. `start` is the position at which to begin,
    and `source` the text that the answer rewrites, or an empty text.
    """
    if _MARK.match(source.strip()):
        return start, False
    if _MARK.search(source):
        # The source has marks in its text, so the answer may have them too. Only blocks before the
        # answer count.
        return _leading_blocks_end(text, start)
    # The name of the open block (empty for none), and whether it is at the start of the answer.
    opened, is_leading = "", False
    for mark in _MARK.finditer(text, start):
        name, is_end = _meaning(mark)
        if not is_end and not opened:
            opened, is_leading = name, not _visible(text[start : mark.start()])
        elif is_end and not opened and name != "granite":
            # Granite's end mark is plain words, so it is one only after its start mark.
            start = mark.end()
        elif is_end and opened == name:
            start = mark.end() if is_leading else start
            opened = ""
    return start, bool(opened) and is_leading


def _leading_blocks_end(text: str, start: int) -> tuple[int, bool]:
    """Return where the blocks at the start of a text end, and whether the last one has no end."""
    opened = ""
    for mark in _MARK.finditer(text, start):
        name, is_end = _meaning(mark)
        if opened == name and is_end:
            start, opened = mark.end(), ""
        elif not opened and (is_end or _visible(text[start : mark.start()])):
            return start, False
        elif not opened:
            opened = name
    return start, bool(opened)


def _meaning(mark: re.Match[str]) -> tuple[str, bool]:
    """Return the name of a mark, equal for start and end of a block, and whether it is an end."""
    if mark["name"]:
        name = mark["name"].lower()
        return "think" if name == "thinking" else name, bool(mark["slash"])
    if mark["side"]:
        return "token", mark["side"].lower() == "end"
    if mark["granite"] or mark["granite_end"]:
        return "granite", mark["granite_end"] is not None
    return "mistral", bool(mark["mistral_slash"])


def _visible(text: str) -> bool:
    """Tell whether a text has anything but marks of a chat template and blanks."""
    return _TURN_START.fullmatch(text) is None and bool(text)


def _after(pattern: re.Pattern[str], text: str, start: int) -> int:
    """Return the position after a match at `start`; `start` if there is none."""
    match = pattern.match(text, start)
    return start if match is None else match.end()


# Short answers

_INVISIBLE_CHARACTER = re.compile(f"[{INVISIBLE}]")
"""An invisible character."""
_ANSWER_NAMES = (
    "answer|final_answer|final_ranking|final|response|output|result|ranking|ranked_list|rank|order"
    "|solution|choice|selection|score|grade|verdict"
)
"""Names of tags and JSON keys that hold an answer."""
_ANSWER_TAG = re.compile(
    rf"<(?P<name>{_ANSWER_NAMES})(?:\s[^<>]*)?>(?P<content>.*?)(?:</(?P=name)>|\Z)", re.I | re.S
)
"""An answer in a tag, which may never close."""
_STRAY_TAG = re.compile(rf"</(?:{_ANSWER_NAMES})>", re.I)
"""End of a tag that never began."""
_BOXED = re.compile(r"\\boxed\s*\{(?P<content>(?:[^{}]|\{[^{}]*\})*)\}")
"""An answer in a LaTeX box; braces may be nested once."""
_LATEX = re.compile(r"\\(?:text|mathrm|mathbf)\s*\{([^{}]*)\}")
"""Text within a LaTeX formula."""
_FENCE = re.compile(
    r"(?P<mark>```|~~~)(?:[A-Za-z][\w+-]*(?=\s))?(?P<content>(?:(?!(?P=mark)).)*)(?P=mark)?", re.S
)
"""A code fence with its content, which may never close."""
_NOUN = (
    r"(?:answer|ranking|ranked list|rank|order|list|result|output|response|choice|selection"
    r"|verdict|decision)s?"
)
"""Words for an answer."""
_FINAL_LABEL = re.compile(
    rf"\bfinal {_NOUN}[*_]{{0,3}}(?:(?:\s+(?:is|are))?\s*[:=]|\s+(?:is|are)\b|[ \t]*\n)[*_]{{0,3}}",
    re.I,
)
""""Final answer:" and the like, anywhere in a text."""
_LEADING_LABEL = re.compile(
    r"[\s#*_]*(?:(?:the|my|so|therefore|best|correct|final|ranked|sorted),? )*"
    rf"(?:{_NOUN}|assistant)[*_]{{0,3}}(?:\s+(?:is|are))?\s*[:=][*_]{{0,3}}\s*",
    re.I,
)
""""The answer is:" and the like, at the start of a text."""
_PAIR = re.compile(
    r"(?P<mark>\*{1,3}|_{1,3}|`{1,2}|~~|\"|'|\$\$?)(?P<content>(?:(?!(?P=mark)).)+)(?P=mark)"
    r"|\u201c(?P<curly>[^\u201c\u201d]+)\u201d|\u00ab(?P<angle>[^\u00ab\u00bb]+)\u00bb"
    r"|\\\((?P<math>.+)\\\)",
    re.S,
)
"""A text between two equal marks: Markdown, quotation marks, or a formula."""
_EMPHASIS = re.compile(r"(\*{1,3}|_{2,3}|`{1,2}|~~)(?=\S)((?:(?!\1)[^\n])+)(?<=\S)\1")
"""A part of a line between two equal marks of Markdown."""
_ESCAPED = re.compile(r"\\([\[\]>*_#.])")
"""A sign that Markdown escapes."""
_IDENTIFIER = re.compile(r"\s*(?:passage\s*)?\[?\s*(\d{1,6})\s*\]?\s*", re.I)
"""Number of a passage, as in ``[3]`` or ``passage 3``."""
_REASONING_KEYS = frozenset(
    [
        "reasoning",
        "reasoning_content",
        "thinking",
        "think",
        "thought",
        "thoughts",
        "explanation",
        "rationale",
        "analysis",
        "justification",
        "reason",
        "comment",
        "notes",
    ]
)
"""JSON keys of reasoning and remarks, in lower case."""
_ANSWER_KEYS = frozenset(
    (*_ANSWER_NAMES.split("|"), "text", "content", "answers", "rankings", "identifier")
)
"""JSON keys of an answer, in lower case."""
_MOST_WRAPPERS = 8
"""Most wrappers that are removed, one within another."""


def clean_answer(text: str) -> CleanAnswer:
    """Return a short answer (a ranking, choice, grade, yes or no) without everything around it.

    If tags, boxes or labels mark several different answers, all are returned, one on each line, so
    that a strict reader refuses them.
    """
    unescaped = html.unescape(text) if "&" in text else text
    span = answer_span(unescaped)
    if span.is_cut_off:
        return CleanAnswer(text="", plain="", is_cut_off=True)
    without_reasoning = _without_later_reasoning(unescaped[span.start : span.end])
    plain = _INVISIBLE_CHARACTER.sub("", without_reasoning[:LONGEST]).strip()
    answer = plain
    for _ in range(_MOST_WRAPPERS):
        unwrapped = _unwrapped(answer)
        if unwrapped == answer:
            break
        answer = unwrapped
    return CleanAnswer(text=answer, plain=plain)


def _without_later_reasoning(text: str) -> str:
    """Remove blocks of reasoning within or after an answer."""
    parts, start, opened = list[str](), 0, ""
    for mark in _MARK.finditer(text):
        name, is_end = _meaning(mark)
        if not opened and not is_end:
            parts.append(text[start : mark.start()])
            opened = name
        elif opened == name and is_end:
            start, opened = mark.end(), ""
    return " ".join(parts if opened else [*parts, text[start:]])


def _unwrapped(answer: str) -> str:
    """Remove the outermost wrapper; return the answer as it is if there is none."""
    for pattern in (_ANSWER_TAG, _BOXED):
        if marked := _different_lines([match["content"] for match in pattern.finditer(answer)]):
            return marked
    if fence := _FENCE.fullmatch(answer):
        return fence["content"].strip() or answer.strip("`~ \n")
    if labelled := _different_lines(_FINAL_LABEL.split(answer)[1:]):
        return labelled
    if (label := _LEADING_LABEL.match(answer)) and answer[label.end() :]:
        return answer[label.end() :].strip()
    if pair := _PAIR.fullmatch(answer):
        return str(pair[str(pair.lastgroup)]).strip()
    from_json = _single_value(answer)
    if from_json is not None:
        return from_json.strip()
    without_marks = _LATEX.sub(r"\1", _EMPHASIS.sub(r"\2", _STRAY_TAG.sub("", answer)))
    if without_marks.startswith("{"):  # JSON, in which a backslash is no escape of Markdown
        return without_marks
    return _ESCAPED.sub(r"\1", without_marks).strip()


def _different_lines(answers: list[str]) -> str:
    """Return the different answers, one on each line."""
    texts = [answer.strip() for answer in answers]
    return "\n".join(dict.fromkeys(text for text in texts if text))


def text_of_object(answer: str) -> str | None:
    """Return the text of a JSON object with one field besides reasoning; None for anything else."""
    value = _parsed(answer)
    texts = list(_without_reasoning_keys(value).values()) if isinstance(value, Mapping) else []
    return texts[0] if len(texts) == 1 and isinstance(texts[0], str) else None


def _parsed(answer: str) -> Any:
    """Parse a JSON object or list; None for anything else."""
    if not answer.startswith(("{", "[")):
        return None
    try:
        return json.loads(answer, strict=False)
    except (ValueError, RecursionError):
        return None


def _without_reasoning_keys(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a JSON object that are not reasoning."""
    return {key: field for key, field in value.items() if key.lower() not in _REASONING_KEYS}


def _single_value(answer: str) -> str | None:
    """Return the value of a JSON object with one field besides reasoning; None for anything else.

    A list of identifiers becomes a list of numbers. A number stays in its object, which a reader of
    JSON expects.
    """
    value = _parsed(answer)
    if isinstance(value, list):
        return _from_list(value)
    if not isinstance(value, Mapping):
        return None
    fields = _without_reasoning_keys(value)
    if len(fields) != 1:
        return None
    ((key, field),) = fields.items()
    if isinstance(field, list) and (from_list := _from_list(field)) is not None:
        return from_list
    if isinstance(field, str) and key.lower() in _ANSWER_KEYS:
        return field
    if isinstance(field, Mapping):
        return json.dumps(field, ensure_ascii=False)
    return json.dumps(fields, ensure_ascii=False) if len(fields) < len(value) else None


def _from_list(values: list[object]) -> str | None:
    """Return a list of identifiers as a list of numbers, or the only text of a list."""
    texts = [value for value in values if isinstance(value, str)]
    if not texts or len(texts) < len(values):
        return None
    identifiers = [_IDENTIFIER.fullmatch(text) for text in texts]
    numbers = [int(match[1]) for match in identifiers if match is not None]
    if len(numbers) == len(texts):
        return json.dumps(numbers)
    return texts[0] if len(texts) == 1 else None
