"""A replayed log: what the answers are, and whose work the published run is."""

from __future__ import annotations

from collections.abc import Iterator

from ranktilt.auditing.effects import ALPHA, Change
from ranktilt.auditing.groups import ALL, Pair
from ranktilt.auditing.llm_log.result import INPUT, MODEL, PARTS, PUBLISHED, STRICT, ReplayedLog
from ranktilt.errors import counted, shorten
from ranktilt.rankers.llm.answers import MISSING, READABLE
from ranktilt.reporting.document import Block, Cell, Column, Document, Figure, Row, Sentence, Table, printed
from ranktilt.reporting.figures.charts import ForestRow, forest
from ranktilt.reporting.numbers import decimal, p_value

_MEANINGS = {
    "ok": "one ranking of all passages, as asked for",
    "repaired": "the same with words around it, other signs, or numbers beyond the list",
    "missing": "a ranking that leaves passages out",
    "repeated": "a ranking that names a passage twice; its first place counts",
    "refused": "a refusal",
    "off-format": "no ranking that could be read, or more than one",
    "unanswered": "no answer at all",
}
_OF_MODEL, _OF_PARSER, _BOTH, _OF_ANSWERS = PARTS
_NEARLY = 0.9
"""Share of the answers from which a run is said to show nothing else."""


def view(replayed: ReplayedLog) -> Document:
    """Return what is said of a replayed log."""
    said = list(sentences(replayed))
    gate = _gate(replayed)
    parts: tuple[Block, ...] = (_split(replayed), _figure(replayed)) if replayed.changes else ()
    return Document(
        title="Replayed log",
        kind="Stored answers of an LLM ranker, read again",
        headline=said[0] if gate is None else gate.text,
        sections=printed([_answers(replayed), *parts]),
        sentences=tuple(Sentence(one, emphasis="" if n else "strong") for n, one in enumerate(said)),
        legend=tuple(_legend(replayed)),
        notes=replayed.notes,
        outcome="" if gate is None else gate.tone,
        commands=(str(replayed.spec["command"]),) if replayed.spec.get("command") else (),
    )


def sentences(replayed: ReplayedLog) -> Iterator[str]:
    """Say whose work the published run is."""
    total, failed, echoed = len(replayed.answers), replayed.unreadable, replayed.echoes
    answers = counted(total, "answer", "answers")
    if failed >= _NEARLY * total:
        yield (
            f"In {failed:,} of {answers} there is no ranking: what the published run shows is the input order and the "
            "parser's work."
        )
    elif echoed >= _NEARLY * total:
        yield (
            f"{echoed:,} of {answers} repeat the order in which the passages were shown: what the published run shows "
            "is the input order."
        )
    else:
        yield (
            f"{total - failed - echoed:,} of {answers} hold a ranking of the model's own, {echoed:,} repeat the order "
            f"in which the passages were shown, {failed:,} hold none."
        )
    taken = sum(one.moved for one in replayed.answers if one.kind not in READABLE)
    if taken:
        which = "all" if taken == failed else f"{taken:,} of the"
        yield f"The published reading takes {which} {counted(failed, 'answer', 'answers')} without a ranking for one."
    for measure, pair in _questions(replayed)[:1]:
        yield from _split_sentences(replayed, measure, pair)


def _split_sentences(replayed: ReplayedLog, measure: str, pair: Pair) -> Iterator[str]:
    model, parser, both, alone = (replayed.change(part, measure, pair) for part in PARTS)
    if model is None or parser is None or both is None or alone is None:
        return
    parts = (
        f"{_difference(c)} {_interval(c)} from {name}" for c, name in ((model, "the model"), (parser, "the parser"))
    )
    yield f"{_heading(model)} of the published run: {model.amount(model.old)} from the input order, " + (
        f"{', '.join(parts)}: {parser.amount(parser.new)}."
    )
    if replayed.unreadable or MISSING in replayed.kinds:
        yield (
            f"Strictly read, with all that no answer decides shuffled within its window: "
            f"{alone.amount(alone.new)}, {_difference(alone)} {_interval(alone)} against the input order."
        )


def _gate(replayed: ReplayedLog) -> Sentence | None:
    most = replayed.spec.get("max_failures")
    if most is None:
        return None
    failed, lost = replayed.failures, len(replayed.unmatched)
    total, word = len(replayed.answers) + lost, "passed" if replayed.passed else "failed"
    of = counted(total, *(("call", "calls") if lost else ("answer", "answers")))
    share = f"{failed:,} of {of} ({100 * failed / total:.1f} %) hold no ranking{' or cannot be matched' * bool(lost)}"
    return Sentence(f"{word}: {share}; at most {100 * most:.1f} % may", "good" if replayed.passed else "bad")


def _answers(replayed: ReplayedLog) -> Table:
    columns = (
        Column("answer", number=False, header=True), Column("number"), Column("share in %"),
        Column("most often", number=False),
    )  # fmt: skip
    total = len(replayed.answers)
    said = {one.kind: one for one in reversed(replayed.examples)}
    rows = [
        Row((Cell(kind), Cell(f"{n:,}", n), Cell(decimal(100 * n / total), 100 * n / total), _example(said.get(kind))))
        for kind, n in replayed.kinds.items()
    ]
    echoed = replayed.echoes
    share = 100 * echoed / total
    more = (Cell("echo of the order shown"), Cell(f"{echoed:,}", echoed), Cell(decimal(share), share), Cell(""))
    left = len(replayed.unmatched)
    lost = [Row((Cell("calls left out"), Cell(f"{left:,}", left), Cell(""), Cell("")))] if left else []
    return Table("Answers", columns, (*rows, Row(more, rule=True), *lost))


def _example(one: object) -> Cell:
    answer, times = getattr(one, "answer", ""), getattr(one, "times", 0)
    return Cell(f"{shorten(' '.join(answer.split()), 50)} ({times:,} ×)" if times > 1 else "")


def _questions(replayed: ReplayedLog) -> list[tuple[str, Pair]]:
    """What was split, the primary measure over all documents first."""
    return list(dict.fromkeys((c.measure, (c.a, c.b)) for c in replayed.changes))


def _split(replayed: ReplayedLog) -> Table:
    columns = (
        Column("part", number=False, header=True), Column("value"), Column("difference"), Column("95 % interval"),
        Column("corrected p", spare=1), Column("queries", spare=2),
    )  # fmt: skip
    rows = [row for measure, pair in _questions(replayed) for row in _rows(replayed, measure, pair)]
    return Table("The published run in parts", columns, tuple(rows), groups=("measure",))


def _rows(replayed: ReplayedLog, measure: str, pair: Pair) -> Iterator[Row]:
    model, parser, both, strict = (c for part in PARTS if (c := replayed.change(part, measure, pair)) is not None)
    group = (_heading(model),)
    blank = Cell("")
    queries = Cell(str(model.queries), model.queries)
    yield Row((Cell(INPUT), Cell(model.amount(model.old), model.old), blank, blank, blank, queries), group)
    for name, change in (("+ model", model), ("+ parser", parser), (f"{PUBLISHED} run", both), (STRICT, strict)):
        difference = _difference(change) + ("*" if change.p_corrected < ALPHA else "")
        cells = (
            Cell(name), Cell(change.amount(change.new), change.new),
            Cell(difference, change.value, emphasis="strong" if change.shown else ""), Cell(_interval(change)),
            Cell(p_value(change.p_corrected), change.p_corrected), blank,
        )  # fmt: skip
        yield Row(cells, group, rule=name == f"{PUBLISHED} run")


def _figure(replayed: ReplayedLog) -> Figure:
    """The parts of the primary measure, each with its interval."""
    measure, pair = _questions(replayed)[0]
    parts = [change for part in PARTS if (change := replayed.change(part, measure, pair)) is not None]
    names = ("the model's part", "the parser's part", "both: the published run", "strict reading")
    start, scale = parts[0], parts[0].estimand.scale
    rows = [
        ForestRow(name, scale * change.value, scale * change.low, scale * change.high)
        for name, change in zip(names, parts, strict=True)
    ]
    drawing = forest(rows, x=f"change of {_heading(start)}", margin=0)
    title = f"Who changes the input order's {_heading(start)}, {start.amount(start.old)}"
    return Figure(title, "Changes with their 95 % intervals.", drawing)


def _heading(change: Change) -> str:
    pair = "" if (change.a, change.b) == (ALL, ALL) else f", {change.a} | {change.b}"
    return f"Relative Δ {change.measure}{pair}" if change.of_tilt else f"{change.measure}{pair}"


def _difference(change: Change) -> str:
    return change.amount(change.value, sign=True)


def _interval(change: Change) -> str:
    return f"[{', '.join(change.ends)}]"


def _legend(replayed: ReplayedLog) -> Iterator[str]:
    meanings = (f"{kind}: {_MEANINGS[kind]}" for kind in replayed.kinds)
    yield f"Answers: {'; '.join(meanings)}. An echo is counted beside its kind."
    if not replayed.changes:
        return
    yield (
        f"Input order: the candidates as they were. {MODEL.capitalize()}: what answers with a ranking of their own "
        "change of it; echoes change nothing, and what no answer decides stays as it came. Parser: what the published "
        "reading (every number of an answer, in turn; RankGPT, rank_llm) changes beyond that. Differences of these two "
        "are to the line above, of the others to the input order."
    )
    yield (
        f"{STRICT.capitalize()}: every ranking that could be read counts, and what none decides is shuffled (seed "
        f"{replayed.spec['seed']}) within the window that was shown, of which the first stage chose the passages."
    )
    yield (
        "Means in % and differences in points; "
        f"intervals: paired bootstrap over queries, {replayed.spec['resamples']:,} resamples; * corrected p < .05 "
        f"({str(replayed.spec['correction']).capitalize()}; sign flips, and for Relative Δ runs exchanged)."
    )
