"""Summary and notes of ``ranktilt generate`` after texts were written.

A document is *rewritten* (or, from a query, *written*), *left out* with a reason, or *unanswered*:
the model failed, and the same command asks again. A *flag* marks an answer that was kept although
it looks odd, such as a very short one.
"""

from __future__ import annotations

import json as json_
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ranktilt.cli.notes import note
from ranktilt.cli.output import print_result
from ranktilt.errors import counted

if TYPE_CHECKING:
    from ranktilt.generation.generated import Generated, SourceSummary
    from ranktilt.generation.output_folder import SavedFolder

INCOMPLETE = 1
"""Exit code of a command that has to be repeated for missing answers, or that wrote nothing."""

_LISTED_IDS = 3
"""Largest number of documents that a note lists."""


def write_summary(content: dict[str, Any], json: str | None) -> None:
    """Write a summary as JSON into the file `json`, or to standard output for ``-``."""
    from ranktilt.data.files import write_files

    if json is None:
        return
    data = json_.dumps(content, indent=1, ensure_ascii=False) + "\n"
    if json == "-":
        print_result(data)
    else:
        write_files({Path(json): data.encode(errors="backslashreplace")})


def report_texts(
    generated: Generated,
    saved: SavedFolder,
    verb: str,
    json: str | None,
    *,
    max_failures: float = 0.0,
) -> bool:
    """Write the summary and the notes, and tell whether the command is complete.

    Parameters
    ----------
    generated : Generated
        The texts, and what became of the requests for them.
    saved : SavedFolder
        The folder that was written.
    verb : str
        ``rewritten`` or ``written``, for notes and keys of the summary.
    json : str or None
        The file of the summary.
    max_failures : float
        Percentage of documents that may be left without an answer.
    """
    summary = {
        "spec": dict(generated.spec),
        "summaries": [_source_content(source, verb) for source in generated.summaries],
        "left_out": generated.left_out.to_dicts(),
        "folder": str(saved.folder),
        "splits": list(saved.splits),
    }
    write_summary(summary, json)
    for line in generation_notes(generated, saved, verb):
        note(line)
    unanswered = generated.unanswered
    has_texts = any(source.rewritten for source in generated.summaries)
    if unanswered:
        message = next((text for text in generated.left_out["message"] if text), "")
        documents = counted(unanswered, "document", "documents")
        note(f"{documents} got no answer ({message}); run the command again to ask only for these")
    elif not has_texts:
        has_answers = any(source.answers for source in generated.summaries)
        reason = "no answer passed the checks" if has_answers else "no document could be sent"
        note(f"{reason}: there is nothing to {'compare' if verb == 'rewritten' else 'rank'}")
    document_count = sum(source.documents for source in generated.summaries)
    return has_texts and unanswered <= max_failures / 100 * document_count


def _source_content(source: SourceSummary, verb: str) -> dict[str, Any]:
    """Return the counts of a source for the summary, where `verb` is the key of its texts."""
    counts = {**asdict(source), "rejected": dict(source.rejected), "flags": dict(source.flags)}
    return {verb if name == "rewritten" else name: value for name, value in counts.items()}


def generation_notes(generated: Generated, saved: SavedFolder, verb: str) -> Iterator[str]:
    """Yield notes: which texts were written, which were left out and why, and how many were new.

    `verb` is ``rewritten`` or ``written``.
    """
    yield f"{saved.folder}: {generated.collection!r}"
    for source in generated.summaries:
        written = (
            f"{source.rewritten:,} of {counted(source.documents, 'document', 'documents')} {verb}"
        )
        parts = [f"{source.source}: {written}"]
        parts += [_reasons("left out", source.rejected)] if source.rejected else []
        parts += [_reasons("flagged answers", source.flags)] if source.flags else []
        parts += [f"{source.cut:,} from a truncated text"] if source.cut else []
        yield "; ".join(parts)
    names = {row["id"]: row["reason"] for row in generated.left_out.iter_rows(named=True)}
    if names:
        first = ", ".join(
            f"{name} ({reason})" for name, reason in list(names.items())[:_LISTED_IDS]
        )
        ellipsis = ", …" if len(names) > _LISTED_IDS else ""
        yield f"left out: {first}{ellipsis}; all in {saved.folder / 'left-out.jsonl'}"
    fresh_count = sum(source.fresh for source in generated.summaries)
    known_count = sum(source.answers for source in generated.summaries) - fresh_count
    known = f"; had {known_count:,} already" if known_count else ""
    yield f"asked for {counted(fresh_count, 'answer', 'answers')}{known}"


def _reasons(label: str, counts: Mapping[str, int]) -> str:
    """Return counts with their reasons, such as ``left out: 3 too long, 1 empty``."""
    return f"{label}: {', '.join(f'{count:,} {reason}' for reason, count in counts.items())}"
