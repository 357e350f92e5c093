"""A replayed log: what the answers are, and whose work the published run is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from ranktilt.auditing.effects import Change
from ranktilt.auditing.groups import ALL, Pair
from ranktilt.auditing.replay_log.result import INPUT, MODEL, PARTS, PUBLISHED, STRICT, ReplayedLog
from ranktilt.errors import counted, shorten
from ranktilt.rankers.llm.answer_kinds import CUT_OFF, READABLE
from ranktilt.reporting.document import (
    Block,
    Cell,
    Column,
    Document,
    PageBlocks,
    Row,
    Sentence,
    Table,
    name_column,
    printed,
    text_column,
)
from ranktilt.reporting.interval_chart import IntervalChart
from ranktilt.reporting.numbers import count, decimal, moved, number, p_value
from ranktilt.reporting.sentences.meaning import replayed_meaning
from ranktilt.reporting.sentences.notes import note_sentences
from ranktilt.reporting.sentences.verdicts import star_legend
from ranktilt.reporting.views.readings import change_chart

_MEANINGS = {
    "ok": "one ranking of all passages, as asked",
    "repaired": "the same, with extra words, other signs or numbers beyond the list",
    "missing": "a ranking that leaves passages out",
    "repeated": "a ranking that names a passage twice; its first place counts",
    "refused": "a refusal",
    "ambiguous": "more than one ranking, and no way to tell which counts",
    "off-format": "no readable ranking",
    "cut off": "reasoning that ends before there is an answer",
    "unanswered": "no answer at all",
}
"""What a kind of answer is."""
_OF_MODEL, _OF_PARSER, _BOTH, _OF_ANSWERS = PARTS
"""Parts of a difference."""
_PART_NAMES = ("the model", "the parser", f"{PUBLISHED} run", STRICT)
"""Names of these parts."""
_ECHO = "echo of the order shown"
"""Name of the count of answers that repeat the order in which passages were shown."""
_LOST = "calls left out"
"""Name of the count of calls that are not in the comparison."""
_NEARLY_ALL = 0.9
"""Share of the answers from which a run is said to show nothing else."""


def view(replayed: ReplayedLog) -> Document:
    """Return the document of a replayed log."""
    findings = list(sentences(replayed))
    gate = _gate(replayed)
    blocks: list[Block] = [_answers(replayed)]
    if replayed.changes:
        blocks.append(_split(replayed))
    first, *rest = findings
    lines = [Sentence(first, emphasis="strong"), *map(Sentence, rest)]
    command = replayed.spec.get("command")
    commands = (str(command),) if command else ()
    headline = first if gate is None else gate.text
    return Document(
        kind="Stored answers of an LLM ranker, read again",
        headline=headline,
        sections=printed(blocks),
        sentences=tuple(lines),
        meaning=replayed_meaning(replayed),
        first_figure=PageBlocks(make=partial(_first_figure, replayed)),
        legend=tuple(_legend(replayed)),
        notes=note_sentences(replayed.notes),
        outcome="" if gate is None else gate.tone,
        commands=commands,
    )


def _first_figure(replayed: ReplayedLog) -> Iterator[IntervalChart]:
    """Draw what the model and the parser change on the primary measure."""
    if not replayed.changes:
        return
    measure, pair = _questions(replayed)[0]
    names = dict(zip(PARTS, _PART_NAMES, strict=True))
    changes = {name: replayed.change(part, measure, pair) for part, name in names.items()}
    known = {id(change): name for name, change in changes.items() if change is not None}
    chart = change_chart(
        [change for change in changes.values() if change is not None],
        lambda change: known[id(change)],
        title=f"{measure}: what each part of the published run changes",
    )
    if chart is not None:
        yield chart


def sentences(replayed: ReplayedLog) -> Iterator[str]:
    """Say whose work the published run is."""
    yield _whose_work(replayed)
    failed = replayed.unreadable
    taken = sum(answer.moved for answer in replayed.answers if answer.kind not in READABLE)
    if taken:
        share = "all" if taken == failed else f"{taken:,} of the"
        lack = "with no or several rankings" if replayed.ambiguous else "without a ranking"
        yield (
            f"The published parser treats {share} {counted(failed, 'answer', 'answers')} {lack} "
            "as a ranking."
        )
    if unfinished := replayed.kinds.get(CUT_OFF, 0):
        verb = "answer is" if unfinished == 1 else "answers are"
        yield f"{unfinished:,} {verb} cut off within their reasoning: the model needs more tokens."


def _whose_work(replayed: ReplayedLog) -> str:
    """Say whether the list is the work of the model or of the parser."""
    total, failed, echoed = len(replayed.answers), replayed.unreadable, replayed.echoes
    several = replayed.ambiguous
    answers = counted(total, "answer", "answers")
    if failed >= _NEARLY_ALL * total:
        clauses = []
        if failed > several:
            clauses.append(f"in {failed - several:,} of {answers} there is no ranking")
        if several:
            clauses.append(f"in {several:,} of {answers} there is more than one ranking")
        sentence = ", ".join(clauses)
        return (
            f"{sentence[0].upper()}{sentence[1:]}: the published run shows the input order and the "
            "parser's work."
        )
    if echoed >= _NEARLY_ALL * total:
        return (
            f"{echoed:,} of {answers} repeat the order in which the passages were shown: the "
            "published run shows the input order."
        )
    more = f", {several:,} contain more than one" if several else ""
    return (
        f"{total - failed - echoed:,} of {answers} contain a ranking by the model, "
        f"{echoed:,} repeat the order in which the passages were shown, {failed - several:,} "
        f"contain none{more}."
    )


def _gate(replayed: ReplayedLog) -> Sentence | None:
    """Say whether more answers failed than allowed; None where no limit is set."""
    max_failures = replayed.spec.get("max_failures")
    if max_failures is None:
        return None
    failed, unmatched = replayed.failures, len(replayed.unmatched)
    total = len(replayed.answers) + unmatched
    calls = counted(total, "answer", "answers")
    fault = "contain no ranking"
    if replayed.ambiguous:
        fault += ", or more than one"
    if unmatched:
        calls = counted(total, "call", "calls")
        fault += ", or cannot be matched" if replayed.ambiguous else " or cannot be matched"
    verdict = "passed" if replayed.passed else "failed"
    share = f"{failed:,} of {calls} ({100 * failed / total:.1f} %)"
    return Sentence(
        f"{verdict}: {share} {fault}; at most {max_failures:.1f} % allowed",
        "good" if replayed.passed else "bad",
    )


def _answers(replayed: ReplayedLog) -> Table:
    """Return the table of answers by kind."""
    examples = {}
    for example in reversed(replayed.examples):
        if example.times > 1:
            answer = shorten(" ".join(example.answer.split()), 50)
            examples[example.kind] = f"{answer} ({example.times:,} ×)"
    total = len(replayed.answers)
    counts = {**replayed.kinds, _ECHO: replayed.echoes}
    if replayed.unmatched:
        counts[_LOST] = len(replayed.unmatched)
    rows = []
    for kind, answer_count in counts.items():
        share = Cell("") if kind == _LOST else number(100 * answer_count / total, decimal)
        cells = (Cell(kind), number(answer_count, count), share, Cell(examples.get(kind, "")))
        rows.append(Row(cells, rule=kind == _ECHO))
    columns = (
        name_column("answer"),
        Column("number"),
        Column("share in %"),
        text_column("most often"),
    )
    return Table("Answers", columns, tuple(rows))


def _questions(replayed: ReplayedLog) -> list[tuple[str, Pair]]:
    """List what was split, the primary measure over all documents first."""
    questions = [(change.measure, (change.a, change.b)) for change in replayed.changes]
    return list(dict.fromkeys(questions))


def _split(replayed: ReplayedLog) -> Table:
    """Return the table of what the model and the parser changed."""
    optional_columns = (Column("corrected p", drop_order=1), Column("queries", drop_order=2))
    columns = (
        name_column("part"),
        *map(Column, ("value", "difference", "95 % interval")),
        *optional_columns,
    )
    rows: list[Row] = []
    for measure, pair in _questions(replayed):
        rows += _rows(replayed, measure, pair)
    return Table("The published run in parts", columns, tuple(rows), groups=("measure",))


def _rows(replayed: ReplayedLog, measure: str, pair: Pair) -> Iterator[Row]:
    """Yield its rows on one measure and pair."""
    changes = [replayed.change(part, measure, pair) for part in PARTS]
    model, parser, both, strict = (change for change in changes if change is not None)
    group, blank = (_heading(model),), Cell("")
    yield Row(
        (
            Cell(INPUT),
            number(model.old, model.amount),
            blank,
            blank,
            blank,
            number(model.queries, str),
        ),
        group,
    )
    for name, change in (
        ("+ model", model),
        ("+ parser", parser),
        (f"{PUBLISHED} run", both),
        (STRICT, strict),
    ):
        p, difference = number(change.p_corrected, p_value), moved(change)
        apart = (replace(difference, ends=None), Cell(difference.interval))
        cells = (Cell(name), number(change.new, change.amount), *apart, p, blank)
        yield Row(cells, group, rule=name == f"{PUBLISHED} run")


def _heading(change: Change) -> str:
    """Name what changed."""
    pair = "" if (change.a, change.b) == (ALL, ALL) else f", {change.a} | {change.b}"
    return f"Relative Δ {change.measure}{pair}" if change.of_tilt else f"{change.measure}{pair}"


def _legend(replayed: ReplayedLog) -> Iterator[str]:
    """Yield what numbers mean."""
    meanings = (f"{kind}: {_MEANINGS[kind]}" for kind in replayed.kinds)
    yield f"Answers: {'; '.join(meanings)}. An echo also counts under its kind."
    if not replayed.changes:
        return
    yield (
        f"{MODEL.capitalize()}: how answers that contain a ranking change the input order. Parser: "
        "what the published parser (every number of an answer, in turn; RankGPT, rank_llm) "
        f"changes beyond that. {STRICT.capitalize()}: only readable rankings count, and the rest "
        f"is shuffled (seed {replayed.spec['seed']}) within the window that was shown. Model and "
        "parser are compared with the line above, the others with the input order."
    )
    yield (
        f"Means in %, differences in points. {star_legend(replayed.spec)} Intervals: paired "
        f"bootstrap over queries, {replayed.spec['resamples']:,} resamples."
    )
