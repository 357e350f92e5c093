"""An audit's file in place of a collection: later commands read the inputs of the audit.

``ranktilt explain audit.json`` becomes ``ranktilt explain DIR -r bm25 …``, with the folder or
labels, the runs and the judgments that the audit was made from. Options that are typed win over
those of the audit.

*Words* are the parts of a command line, as a shell splits it. *Repeats* are several rankings of
each query in one run, such as those of a language model asked again; a verb other than ``audit``
reads runs with a single ranking.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from ranktilt.cli.notes import note
from ranktilt.errors import UserError, join_words

if TYPE_CHECKING:
    from ranktilt.auditing.result import Audit
    from ranktilt.citing.result import CitationAudit

VERBS = ("audit", "explain", "mitigate")
"""Verbs that can take their inputs from an audit."""
_RUN_OPTIONS = ("-r", "--ranker", "--run")
"""Options that name rankers or runs; where one is typed, those of the audit are not read."""
_PAIR_OPTIONS = ("--pair", "--protected")
"""Options that name the two groups."""
_LABEL_OPTIONS = ("--groups", "--name", "--rest", "--by", "--reference")
"""Options of ``explain`` for labels and groups."""
_INPUT_OPTIONS = frozenset((*_LABEL_OPTIONS, "--split", "--text", "--queries", "--score-order"))
"""Options of ``explain``, besides those of runs, that replace inputs of the audit."""
_audit_to_correct: ContextVar[str] = ContextVar("audit_to_correct", default="")
"""File of the audit that is explained, if ``mitigate`` can correct a run of it as it is."""
_SUFFIXES = (".json", ".json.gz")
"""Endings of an audit's file."""


@dataclass(frozen=True, kw_only=True)
class TypedOption:
    """An option with its value, a flag, or an argument without an option before it."""

    name: str
    """The option, such as ``--pair``; empty for an argument."""
    words: tuple[str, ...]
    """The words of the command line: the option and its value."""


def with_inputs_of_audit(words: Sequence[str]) -> list[str]:
    """Replace an audit's file right after a verb by the inputs of the audit.

    This happens before any option is read, because these inputs may include ``--set``, which is an
    option of every command.
    """
    _audit_to_correct.set("")
    for index, (verb, file) in enumerate(pairwise(words)):
        if verb in VERBS and _is_audit_file(file):
            if verb == "explain" and is_citation_audit(Path(file)):
                return list(words)  # it contains its pages, and explain reads it as it is
            typed = list(words[index + 2 :])
            is_quiet = "--quiet" in words
            return [*words[: index + 1], *_read_inputs(verb, file, typed, is_quiet=is_quiet)]
    return list(words)


def _read_inputs(verb: str, file: str, typed: list[str], *, is_quiet: bool) -> list[str]:
    """Return the words that follow the verb, once an audit's file is read and its inputs exist."""
    path = Path(file)
    audit = _audit_to_read(path, verb)
    _require_files(path, audit)
    if not is_quiet:
        _note_differences(path, audit, verb)
    if verb == "explain" and _is_correctable(audit, typed):
        _audit_to_correct.set(file)
    return _words_after_verb(verb, path, audit, typed)


def _note_differences(file: Path, audit: Audit, verb: str) -> None:
    """Write a note on what the verb will read that is not as the audit read it."""
    _note_changed_files(file, audit)
    if verb != "audit":
        note_label_errors(file, audit, verb)


def audit_to_correct() -> str:
    """Return the audit's file that ``explain`` reads, if ``mitigate`` can read it too; else empty.

    The file keeps what an explanation does not read: judgments, the question, the margin.
    """
    return _audit_to_correct.get()


def _is_correctable(audit: Audit, typed: Sequence[str]) -> bool:
    """Tell whether ``mitigate`` can correct the runs that ``explain`` reads from an audit's file.

    It cannot if options replace inputs of the audit, or if the audit asks about something else than
    a tilt of two groups in points.
    """
    from ranktilt.auditing.answer.command_words import mitigate_words

    if _INPUT_OPTIONS & {option.name for option in _options(typed)}:
        return False
    if not set(_typed_runs(typed)) <= set(audit.runs):
        return False
    runs = [name for name in audit.runs if audit.repeat_count(name) == 1]
    if not runs:
        return False
    # Whether it can depends on the question and the groups, which all runs share.
    return any(mitigate_words(audit, runs[0], pair) for pair in audit.judged_pairs)


def note_label_errors(file: Path, audit: Audit | CitationAudit, verb: str) -> None:
    """Write a note if an audit is corrected for wrong labels and the verb, which is not, reads it.

    Without the note, the two answers would seem to be about the same labels.
    """
    if "label_errors" in audit.spec:
        note(
            f"{file} is corrected for label errors ({audit.spec['label_errors']}); {verb} takes "
            "the labels as they are"
        )


def is_citation_audit(file: Path) -> bool:
    """Return whether a file is an audit of citations, as its format says."""
    from ranktilt.citing.result import CitationAudit
    from ranktilt.data.artifact import read_json
    from ranktilt.data.files import read_bytes

    content = read_json(file, read_bytes(file), CitationAudit.header.noun)
    return isinstance(content, dict) and content.get("format") == CitationAudit.header.format


def _audit_to_read(file: Path, verb: str) -> Audit:
    """Return the audit whose inputs a verb reads; of audits of several sources, the first."""
    from ranktilt.auditing.result import Audit
    from ranktilt.auditing.sources.source_audits import SourceAudits
    from ranktilt.reporting.report import read_result

    result: Audit | SourceAudits = read_result(file, (Audit, SourceAudits))
    if not isinstance(result, SourceAudits):
        return result
    if verb != "explain":
        raise UserError(
            f"{file} audits {len(result.sources)} sources, each with {result.reference}; to "
            f"{verb} it, name its collection DIR, with --source or --pair"
        )
    # explain examines every source of the collection, which each of these audits names.
    return result.audits[0]


def _words_after_verb(verb: str, file: Path, audit: Audit, typed: list[str]) -> list[str]:
    """Return the words that follow the verb: inputs of the audit, then what was typed."""
    if verb != "audit":
        audit = _with_runs_without_repeats(file, verb, audit, typed)
    inputs = _words_of_verb(verb, audit, _runs_to_read(file, verb, audit, typed), typed)
    if not inputs:
        raise UserError(f"{file}: {_obstacle(verb, audit)}")
    inputs = inputs[2:]  # without ranktilt and the verb
    typed = _without_run_names(typed, audit)
    typed_options = {option.name for option in _options(typed)}
    if typed_options & set(_RUN_OPTIONS):
        # One option that names runs replaces the audit's runs, whichever options name those.
        typed_options |= set(_RUN_OPTIONS)
    words_of_audit: list[str] = []
    for option in _options(inputs):
        if not option.name or option.name not in typed_options:
            words_of_audit += option.words
    return [*words_of_audit, *typed]


def _is_audit_file(word: str) -> bool:
    """Tell whether a word is the path of a file that may be an audit."""
    return word.endswith(_SUFFIXES) and os.path.isfile(word)


def _require_files(file: Path, audit: Audit) -> None:
    """Refuse an audit whose files have moved."""
    paths = [record["path"] for record in audit.spec.get("inputs", ())]
    moved = [path for path in paths if not os.path.isfile(path)]
    if moved:
        are = "is" if len(moved) == 1 else "are"
        raise UserError(
            f"{file} was made from {join_words(moved[:3])}, which {are} no longer there; run "
            "this where the audit was made, or name the inputs themselves"
        )


def _note_changed_files(file: Path, audit: Audit) -> None:
    """Write a note for each file of an audit whose content is not what the audit read."""
    from ranktilt.data.files import sha256

    for record in audit.spec.get("inputs", ()):
        if sha256(Path(record["path"])) != record["sha256"]:
            note(f"{record['path']} has changed since {file} was made")


def _with_runs_without_repeats(file: Path, verb: str, audit: Audit, typed: Sequence[str]) -> Audit:
    """Return an audit whose runs a verb can read: those with one ranking of each query.

    Runs with several rankings (repeats) are refused if they are named or if all runs have repeats,
    and otherwise left out with a note. Where runs that the audit lacks are typed, they replace its
    runs, and nothing is refused.
    """
    typed_names = _typed_runs(typed)
    if not set(typed_names) <= set(audit.runs):
        return _without_repeats(audit)
    runs = typed_names or list(audit.runs)
    repeated = [name for name in runs if audit.repeat_count(name) > 1]
    if not repeated:
        return audit
    names = join_words([repr(name) for name in repeated])
    if typed_names or len(repeated) == len(runs):
        is_mean = "is the mean" if len(repeated) == 1 else "are means"
        raise UserError(
            f"{file}: {names} {is_mean} of several rankings of each query, and {verb} reads one; "
            f"name a file of one repeat: ranktilt {verb} {shlex.quote(str(file))} --run FILE"
        )
    note(f"{names}: left out, because {verb} reads one ranking of each query")
    return audit


def _without_repeats(audit: Audit) -> Audit:
    """Return an audit that keeps the first ranking of each query alone."""
    specs = [dict(spec) for spec in audit.spec["runs"]]
    for spec in specs:
        spec.pop("repeats", None)
    return replace(audit, spec={**audit.spec, "runs": specs})


def _typed_runs(typed: Sequence[str]) -> list[str]:
    """Return the values of typed options that name rankers or runs."""
    return [
        option.words[1]
        for option in _options(typed)
        if option.name in _RUN_OPTIONS and len(option.words) > 1
    ]


def _runs_to_read(file: Path, verb: str, audit: Audit, typed: Sequence[str]) -> list[str]:
    """Return the audit's runs that the verb reads: those that -r or --run names, or all."""
    typed_names = _typed_runs(typed)
    runs = [name for name in audit.runs if name in typed_names] or list(audit.runs)
    if verb != "audit":
        runs = [name for name in runs if audit.repeat_count(name) == 1]
    if verb == "mitigate" and len(runs) > 1 and not typed_names:
        choices = join_words([f"-r {name}" for name in runs], "or")
        raise UserError(f"{file} holds {len(runs)} runs, but mitigate takes one: {choices}")
    return runs


def _without_run_names(typed: Sequence[str], audit: Audit) -> list[str]:
    """Leave out -r where it names a run of the audit, which the audit's own words name already."""
    words: list[str] = []
    for option in _options(typed):
        is_run = option.name in _RUN_OPTIONS and len(option.words) > 1
        if not (is_run and option.words[1] in audit.runs):
            words += option.words
    return words


def _obstacle(verb: str, audit: Audit) -> str:
    """Say why a verb cannot read the inputs of an audit, and what to do instead."""
    from ranktilt.auditing.answer.command_words import input_words

    if verb != "mitigate" or not input_words(audit, list(audit.runs)):
        return f"{verb} cannot read this audit's inputs again; name a collection DIR or labels"
    if any("," in a + b for a, b in audit.pairs):
        return (
            "mitigate takes two groups (--pair A,B), and names with a comma cannot be told apart; "
            "rename them, as in --name OLD=NEW, and audit again"
        )
    return (
        "mitigate corrects a tilt in points between two single groups, and this audit asks about "
        "something else; name the groups and a question: --pair A,B --primary Share@10"
    )


def _words_of_verb(verb: str, audit: Audit, runs: list[str], typed: Sequence[str]) -> list[str]:
    """Return the command of a verb that reads an audit's inputs; empty where it cannot."""
    from ranktilt.auditing.answer.command_words import (
        audit_words,
        explain_words,
        mitigate_words,
    )

    if verb == "audit":
        return audit_words(audit)
    if verb == "explain":
        return explain_words(audit, runs)
    for pair in _largest_first(audit, runs[0]):
        words = mitigate_words(audit, runs[0], pair)
        if words:
            is_typed = any(option.name in _PAIR_OPTIONS for option in _options(typed))
            if len(audit.pairs) > 1 and not is_typed:
                note(f"mitigate takes one pair of groups: {pair[0]} | {pair[1]}, the largest tilt")
            return words
    return []


def _largest_first(audit: Audit, run: str) -> list[tuple[str, str]]:
    """Return the pairs of groups that have a verdict, the pair with the run's largest tilt first.

    Each tilt is divided by its margin, the largest tilt that counts as none: pairs may be compared
    by different measures, whose units differ.
    """
    from ranktilt.auditing.answer.verdict import margins

    def size(pair: tuple[str, str]) -> float:
        return margins(audit.verdict(run, *pair).effect, audit.margin)

    return sorted(audit.judged_pairs, key=size, reverse=True)


def _options(words: Sequence[str]) -> Iterator[TypedOption]:
    """Yield the options of a command line with their values, flags and arguments."""
    index = 0
    while index < len(words):
        word = words[index]
        has_value = index + 1 < len(words) and not words[index + 1].startswith("-")
        if not word.startswith("-"):
            yield TypedOption(name="", words=(word,))
        elif "=" in word and word.startswith("--"):
            yield TypedOption(name=word.partition("=")[0], words=(word,))
        elif has_value:
            # --set may come several times, and each key is an option of its own.
            key = f" {words[index + 1].partition('=')[0]}" if word == "--set" else ""
            yield TypedOption(name=word + key, words=(word, words[index + 1]))
            index += 1
        else:
            yield TypedOption(name=word, words=(word,))
        index += 1
