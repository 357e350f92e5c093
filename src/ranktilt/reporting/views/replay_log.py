"""The document of a replayed log: how much of a published run is the work of its LLM.

An LLM ranker asks a model to rank passages (a *call*) and reads the ranking from its answer with a
*parser*. The replay reads the stored answers again and compares four runs: the *input order* in
which passages were shown; the *model* run, from the answers that contain a ranking; the *published*
run, by the published parser, which makes a ranking of any answer; and the *strict* run, in which
answers without a readable ranking are shuffled. A *change* is the difference between two of these
runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from ranktilt.auditing.effects import Change
from ranktilt.auditing.groups import ALL, Pair
from ranktilt.auditing.replay_log.result import INPUT, MODEL, PARTS, PUBLISHED, STRICT, ReplayedLog
from ranktilt.errors import counted, shorten
from ranktilt.measures.printing import digits_apart
from ranktilt.rankers.llm.answers import CUT_OFF, READABLE
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
    single_section,
    text_column,
)
from ranktilt.reporting.interval_chart import IntervalChart
from ranktilt.reporting.numbers import change_cell, decimal, number_cell, p_value, with_commas
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
"""Explanation of each kind of answer."""
_PART_NAMES = ("the model", "the parser", f"{PUBLISHED} run", STRICT)
"""Labels of the differences in `PARTS`, in the same order."""
_ECHO = "echo of the order shown"
"""Label of the row that counts answers which repeat the order in which passages were shown."""
_UNMATCHED = "calls left out"
"""Label of the row that counts calls which could not be matched with a list of passages."""
_NEARLY_ALL = 0.9
"""Share of the answers above which a headline says that the run shows nothing else."""


def view(replayed: ReplayedLog) -> Document:
    """Return the document of a replayed log."""
    main_finding, *further_findings = sentences(replayed)
    gate = _gate_sentence(replayed)
    blocks: list[Block] = [_answer_table(replayed)]
    if replayed.changes:
        blocks.append(_parts_table(replayed))
    lines = [Sentence(main_finding, emphasis="strong"), *map(Sentence, further_findings)]
    command = replayed.spec.get("command")
    commands = (str(command),) if command else ()
    headline = main_finding if gate is None else gate.text
    return Document(
        kind="Stored answers of an LLM ranker, read again",
        headline=headline,
        sections=single_section(blocks),
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
    changes = []
    label_of: dict[int, str] = {}
    for part, label in zip(PARTS, _PART_NAMES, strict=True):
        change = replayed.change(part, measure, pair)
        if change is not None:
            changes.append(change)
            label_of[id(change)] = label
    chart = change_chart(
        changes,
        lambda change: label_of[id(change)],
        title=f"{measure}: what each part of the published run changes",
    )
    if chart is not None:
        yield chart


def sentences(replayed: ReplayedLog) -> Iterator[str]:
    """Yield the findings: whose work the published run is, and what its parser did with answers."""
    yield _whose_work(replayed)
    # An answer is "moved" where the published parser changed the order of passages by it.
    parsed = sum(answer.moved for answer in replayed.answers if answer.kind not in READABLE)
    if parsed:
        fault = "with no or several rankings" if replayed.ambiguous else "without a ranking"
        unreadable = counted(replayed.unreadable, "answer", "answers")
        share = f"{parsed:,} of the"
        if parsed == replayed.unreadable:
            share = "the" if parsed == 1 else "all"
        yield f"The published parser treats {share} {unreadable} {fault} as a ranking."
    if unfinished := replayed.kinds.get(CUT_OFF, 0):
        verb = "answer is" if unfinished == 1 else "answers are"
        yield f"{unfinished:,} {verb} cut off within their reasoning: the model needs more tokens."


def _whose_work(replayed: ReplayedLog) -> str:
    """Say whether the published run is the work of the model or of the parser."""
    total, echoes = len(replayed.answers), replayed.echoes
    unreadable, ambiguous = replayed.unreadable, replayed.ambiguous
    empty = unreadable - ambiguous
    repeat = "repeats" if echoes == 1 else "repeat"
    answers = counted(total, "answer", "answers")
    if unreadable >= _NEARLY_ALL * total:
        clauses = []
        if empty:
            clauses.append(f"in {empty:,} of {answers} there is no ranking")
        if ambiguous:
            clauses.append(f"in {ambiguous:,} of {answers} there is more than one ranking")
        sentence = ", ".join(clauses)
        return (
            f"{sentence[0].upper()}{sentence[1:]}: the published run shows the input order and the "
            "parser's work."
        )
    if echoes >= _NEARLY_ALL * total:
        return (
            f"{echoes:,} of {answers} {repeat} the order in which the passages were shown: the "
            "published run shows the input order."
        )
    ranked = total - unreadable - echoes
    counts = [
        f"{ranked:,} of {answers} {_contain(ranked)} a ranking by the model",
        f"{echoes:,} {repeat} the order in which the passages were shown",
        f"{empty:,} {_contain(empty)} none",
    ]
    if ambiguous:
        counts.append(f"{ambiguous:,} {_contain(ambiguous)} more than one")
    return f"{', '.join(counts)}."


def _contain(number: int) -> str:
    """Return the verb for a number of answers."""
    return "contains" if number == 1 else "contain"


def _gate_sentence(replayed: ReplayedLog) -> Sentence | None:
    """Say whether more answers failed than `max_failures` allows; None where no limit is set."""
    max_failures = replayed.spec.get("max_failures")
    if max_failures is None:
        return None
    failures, unmatched = replayed.failures, len(replayed.unmatched)
    total = len(replayed.answers) + unmatched
    calls = counted(total, "answer", "answers")
    fault = f"{_contain(failures)} no ranking"
    if replayed.ambiguous:
        fault += ", or more than one"
    if unmatched:
        calls = counted(total, "call", "calls")
        fault += ", or cannot be matched" if replayed.ambiguous else " or cannot be matched"
    verdict = "passed" if replayed.passed else "failed"
    percentage = 100 * failures / total
    digits = digits_apart([percentage], [max_failures])
    share = f"{failures:,} of {calls} ({percentage:.{digits}f} %)"
    return Sentence(
        f"{verdict}: {share} {fault}; at most {max_failures:.{digits}f} % allowed",
        "good" if replayed.passed else "bad",
    )


def _answer_table(replayed: ReplayedLog) -> Table:
    """Return the table of how many answers are of each kind, with the most frequent answer."""
    examples = {}
    # The examples of a kind begin with the most frequent, so it is written last.
    for example in reversed(replayed.examples):
        if example.times > 1:
            answer = shorten(" ".join(example.answer.split()), 50)
            examples[example.kind] = f"{answer} ({example.times:,} ×)"
    total = len(replayed.answers)
    counts = {**replayed.kinds, _ECHO: replayed.echoes}
    if replayed.unmatched:
        counts[_UNMATCHED] = len(replayed.unmatched)
    rows = []
    for label, count in counts.items():
        # A call that was left out is not among the answers.
        share = Cell("") if label == _UNMATCHED else number_cell(100 * count / total, decimal)
        example_cell = Cell(examples.get(label, ""))
        cells = (Cell(label), number_cell(count, with_commas), share, example_cell)
        rows.append(Row(cells, rule=label == _ECHO))
    columns = (
        name_column("answer"),
        Column("number"),
        Column("share in %"),
        text_column("most often"),
    )
    return Table("Answers", columns, tuple(rows))


def _questions(replayed: ReplayedLog) -> list[tuple[str, Pair]]:
    """Return each measure with its pair of groups, the primary measure over all documents first."""
    questions = [(change.measure, (change.a, change.b)) for change in replayed.changes]
    return list(dict.fromkeys(questions))


def _parts_table(replayed: ReplayedLog) -> Table:
    """Return the table of what the model and the parser change, on each measure."""
    columns = (
        name_column("part"),
        Column("value"),
        Column("difference"),
        Column("95 % interval"),
        Column("corrected p", drop_order=1),
        Column("queries", drop_order=2),
    )
    rows: list[Row] = []
    for measure, pair in _questions(replayed):
        rows += _parts_rows(replayed, measure, pair)
    return Table("The published run in parts", columns, tuple(rows), group_titles=("measure",))


def _parts_rows(replayed: ReplayedLog, measure: str, pair: Pair) -> Iterator[Row]:
    """Yield the row of the input order and that of each difference, on one measure and pair."""
    changes = [replayed.change(part, measure, pair) for part in PARTS]
    model, parser, both, strict = (change for change in changes if change is not None)
    group, blank = (_heading(model),), Cell("")
    value, queries = number_cell(model.old, model.amount), number_cell(model.queries, str)
    yield Row((Cell(INPUT), value, blank, blank, blank, queries), group)
    published_title = f"{PUBLISHED} run"
    rows = (
        ("+ model", model),
        ("+ parser", parser),
        (published_title, both),
        (STRICT, strict),
    )
    for title, change in rows:
        difference = change_cell(change)
        cells = (
            Cell(title),
            number_cell(change.new, change.amount),
            replace(difference, ends=None),  # the interval has its own column
            Cell(difference.interval),
            number_cell(change.p_corrected, p_value),
            blank,
        )
        yield Row(cells, group, rule=title == published_title)


def _heading(change: Change) -> str:
    """Name the measure of a difference, with its groups unless it is about all documents."""
    pair = "" if (change.a, change.b) == (ALL, ALL) else f", {change.a} | {change.b}"
    return f"Relative Δ {change.measure}{pair}" if change.of_tilt else f"{change.measure}{pair}"


def _legend(replayed: ReplayedLog) -> Iterator[str]:
    """Yield sentences on the kinds of answers, on the parts, and on how they were tested."""
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
