"""Remedies as they are printed, each built again in plain Python: the lists are those that are
saved.
"""

import math
import re
from collections.abc import Callable, Sequence
from hashlib import blake2b

import numpy as np
import pytest

from ranktilt import Collection, Run
from ranktilt.mitigation.base import Correction, Lists
from ranktilt.mitigation.fair_rerank import FairReRank
from ranktilt.mitigation.interleave import Interleave
from ranktilt.mitigation.offset import GroupOffset, Offset, OffsetFit
from ranktilt.mitigation.remedy import Remedy
from ranktilt.reporting.sentences.mitigation.remedy import remedy_lines, remedy_sentence
from tests.mitigation.builders import labelled

PATTERNS = [
    "hhhhlhlhll",
    "llhhlhhllh",
    "hlhh.hll.l",
    "hhhhhh",
    "lhhhhhhhhhhhhhhlllll",
    "gghhlg.lhh",
]
"""Lists of human and LLM documents; of a third group, and without one."""
Documents = Sequence[tuple[str, str, float]]
"""Of one list: id, group (empty for none) and score of each document, best first."""
Rule = Callable[[str, Documents], list[str]]


def lists_of(collection: Collection, run: Run) -> dict[str, Documents]:
    source = dict(zip(collection.docs["id"], collection.docs["source"], strict=True))
    lists: dict[str, list[tuple[str, str, float]]] = {query: [] for query in run.queries}
    for query, doc, _, score in run.frame().iter_rows():
        lists[query].append((doc, source[doc] or "", score))
    return lists


def remedy_of(correction: Correction, groups: Sequence[str], depth: int = 100) -> Remedy:
    return Remedy(
        candidate="chosen",
        by="source",
        groups=tuple(groups),
        depth=depth,
        rule=correction.rule(),
    )


def require_same(correction: Correction, rule: Rule, patterns: Sequence[str] = PATTERNS) -> None:
    """Correct lists of many scores, and apply a rule in plain Python to each."""
    collection, run = labelled(patterns)
    corrected = lists_of(collection, correction.rank(collection, run))
    plain = {
        query: rule(query, documents) for query, documents in lists_of(collection, run).items()
    }
    assert plain == {
        query: [doc for doc, _, _ in documents] for query, documents in corrected.items()
    }
    assert plain != {
        query: [doc for doc, _, _ in documents]
        for query, documents in lists_of(collection, run).items()
    }


def draw(text: str) -> float:
    """The printed draw: (floor(H / 4096) + 0.5) / 2^52."""
    return (
        int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little") // 4096 + 0.5
    ) / 2**52


def with_places(documents: Documents, order: Sequence[str]) -> list[str]:
    """The printed places: the new order takes those of L, and documents without a group keep
    theirs.
    """
    rest = iter(order)
    return [next(rest) if group else doc for doc, group, _ in documents]


# score'(d) = score(d) + offset[source(d)]


def offset(value: float, strength: float = 1.0) -> Offset:
    fit = OffsetFit(
        spec={"ranker": "run"},
        queries=(),
        by="source",
        reference="human",
        offsets=tuple(
            GroupOffset(group=group, value=number, low=value, high=value, queries=3)
            for group, number in (("llm", value), ("gpt", -value / 3))
        ),
    )
    return Offset(strength=strength, learned=fit)


def test_offset_formula_gives_the_lists() -> None:
    correction = offset(0.0512345678901, strength=0.7)
    lines = remedy_lines(remedy_of(correction, ("human", "llm", "gpt")))
    assert lines[0] == "score'(d) = score(d) + offset[source(d)], largest first"
    printed = {
        match[1]: float(match[2])
        for match in (re.fullmatch(r" *offset\[(.+)\] *= (.+)", line) for line in lines)
        if match
    }
    assert printed == {
        "human": 0.0,
        "llm": pytest.approx(0.7 * 0.0512345678901, rel=1e-8),
        "gpt": pytest.approx(-0.7 * 0.0512345678901 / 3, rel=1e-8),
    }

    def rule(_query: str, documents: Documents) -> list[str]:
        return [
            doc
            for doc, _, _ in sorted(
                documents, key=lambda document: -(document[2] + printed.get(document[1], 0.0))
            )
        ]

    require_same(correction, rule)


def test_offset_leaves_ties_in_the_order_of_the_run() -> None:
    collection, run = labelled(["hlhl"], [[3.0, 2.0, 2.0, 1.0]])
    corrected = offset(1.0).rank(collection, run)
    assert [doc for doc, _, _ in lists_of(collection, corrected)["q0"]] == [
        "d0-0",
        "d0-1",
        "d0-2",
        "d0-3",
    ]
    assert corrected.scores.tolist() == [3.0, 3.0, 2.0, 2.0]


# interleave


@pytest.mark.parametrize(("strength", "seed"), [(1.0, 0), (0.6, 0), (0.35, 7)])
def test_interleave_pseudo_code_gives_the_lists(strength: float, seed: int) -> None:
    groups = ("human", "gpt", "llm")  # as the collection names them

    def rule(query: str, documents: Documents) -> list[str]:
        rest = [(doc, group) for doc, group, _ in documents if group]
        free = list(range(len(rest)))
        order = [""] * len(rest)
        groups_left = [group for group in groups if any(side == group for _, side in rest)]
        for group in groups_left[:-1]:
            c, m = sum(side == group for _, side in rest), len(rest)
            today = [sum(side == group for _, side in rest[:k]) for k in range(1, m + 1)]
            aim = [(1 - strength) * today[k - 1] + strength * c * k / m for k in range(1, m + 1)]
            aim[-1] = c
            u = draw(f"{seed}\0{query}\0{groups.index(group)}")
            taken = [next(k for k in range(m) if aim[k] + u >= i) for i in range(1, c + 1)]
            for k, (doc, _) in zip(taken, [d for d in rest if d[1] == group], strict=True):
                order[free[k]] = doc
            free = [index for k, index in enumerate(free) if k not in taken]
            rest = [d for d in rest if d[1] != group]
        for index, (doc, _) in zip(free, rest, strict=True):
            order[index] = doc
        return with_places(documents, order)

    correction = Interleave(strength=strength, seed=seed)
    collection, run = labelled(PATTERNS)
    assert Lists.from_run(collection, run, "source").groups.names == groups
    lines = remedy_lines(remedy_of(correction, groups))
    assert f"groups: 0 = human, 1 = gpt, 2 = llm; s = {strength:g}" in lines
    assert any(f'"{seed}\\0QUERY\\0g"' in line for line in lines)
    require_same(correction, rule)


# fair-rerank


def merged(
    documents: Documents, group: str, need: Sequence[int], others: Sequence[int]
) -> list[str]:
    """The printed merge of both sides by the least counts of each."""
    known = [(doc, side) for doc, side, _ in documents if side]
    counts = [sum(side == group for _, side in known[:k]) for k in range(1, len(known) + 1)]
    if all(
        count >= need[k - 1] and k - count >= others[k - 1] for k, count in enumerate(counts, 1)
    ):
        return [doc for doc, _, _ in documents]
    mine = [(index, doc) for index, (doc, side) in enumerate(known) if side == group]
    rest = [(index, doc) for index, (doc, side) in enumerate(known) if side != group]
    total, order = len(mine), list[str]()
    for k in range(1, len(known) + 1):
        member_count = total - len(mine)
        if member_count < need[k - 1]:
            order.append(mine.pop(0)[1])
        elif k - 1 - member_count < others[k - 1]:
            order.append(rest.pop(0)[1])
        else:
            side = min((side for side in (mine, rest) if side), key=lambda side: side[0][0])
            order.append(side.pop(0)[1])
    return with_places(documents, order)


def floor(value: float) -> int:
    return math.floor(value + 1e-9)


@pytest.mark.parametrize(("group", "target"), [("llm", 0.0), ("llm", 20.0), ("human", -5.0)])
def test_det_const_sort_pseudo_code_gives_the_lists(group: str, target: float) -> None:
    def rule(_query: str, documents: Documents) -> list[str]:
        n = sum(side != "" for _, side, _ in documents)
        a, t = sum(side == group for _, side, _ in documents), target / 100
        if a in (0, n):
            return [doc for doc, _, _ in documents]
        p, q = min(max(a / n + t, 0), 1), max(1 - a / n - abs(t), 0)
        need = [min(floor(p * k), a) for k in range(1, n + 1)]
        others = [min(floor(q * k), n - a) for k in range(1, n + 1)]
        return merged(documents, group, need, others)

    correction = FairReRank(group=group, target=target)
    lines = remedy_lines(remedy_of(correction, ("human", "llm", "gpt")))
    assert lines[1].startswith(f"t = {target:g} / 100; a = number of {group} in L; ")
    require_same(correction, rule)


def binomial_table(n: int, p: float, c: float) -> list[int]:
    table = []
    for k in range(1, n + 1):
        total, m = 0.0, 0
        while True:
            total += math.comb(k, m) * p**m * (1 - p) ** (k - m)
            if total >= c - 1e-15:
                break
            m += 1
        table.append(m)
    return table


def chance_below(table: Sequence[int], p: float) -> float:
    """Probability that a list of draws falls below a table on some of its first k."""
    alive, lost = {0: 1.0}, 0.0
    for least in table:
        after: dict[int, float] = {}
        for count, chance in alive.items():
            after[count] = after.get(count, 0.0) + chance * (1 - p)
            after[count + 1] = after.get(count + 1, 0.0) + chance * p
        lost += sum(chance for count, chance in after.items() if count < least)
        alive = {count: chance for count, chance in after.items() if count >= least}
    return lost


@pytest.mark.parametrize(("target", "alpha"), [(10.0, 0.1), (30.0, 0.2)])
def test_fa_ir_pseudo_code_gives_the_lists(target: float, alpha: float) -> None:
    def rule(_query: str, documents: Documents) -> list[str]:
        n = sum(side != "" for _, side, _ in documents)
        a = sum(side == "llm" for _, side, _ in documents)
        if a in (0, n):
            return [doc for doc, _, _ in documents]
        p = min(max(a / n + target / 100, 0), 1)
        # Every table that a c between 0 and 1 gives; they grow with c.
        tables = {tuple(binomial_table(n, p, c)) for c in np.linspace(0, 1, 4001)[1:-1]}
        table = min(sorted(tables, key=sum), key=lambda steps: abs(chance_below(steps, p) - alpha))
        return merged(documents, "llm", [min(m, a) for m in table], [0] * n)

    correction = FairReRank(method="fa-ir", group="llm", target=target, alpha=alpha)
    lines = remedy_lines(remedy_of(correction, ("human", "llm", "gpt")))
    assert any(f"a probability as near to {alpha:g} as there is" in line for line in lines)
    require_same(correction, rule)


@pytest.mark.parametrize(("target", "seed"), [(1.0, 0), (0.8, 3), (1.5, 0)])
def test_exposure_pseudo_code_gives_the_lists(target: float, seed: int) -> None:
    def rule(query: str, documents: Documents) -> list[str]:
        weights = [1 / math.log2(1 + rank) for rank, d in enumerate(documents, 1) if d[1]]
        known = [d for d in documents if d[1]]
        for raised, least in ((True, target), (False, min(target, 1 / target))):
            is_raised = [(side == "llm") is raised for _, side, _ in known]
            if 0 < sum(is_raised) < len(known):
                order = raise_side(known, is_raised, weights, least, draw(f"{seed}\0{query}"))
                if order is not None:
                    return with_places(documents, order)
        return [doc for doc, _, _ in documents]

    correction = FairReRank(method="exposure", group="llm", target=target, seed=seed)
    lines = remedy_lines(remedy_of(correction, ("human", "llm", "gpt")))
    assert any(line.startswith(f"t = {target:g}; t' = min(t, 1 / t)") for line in lines)
    require_same(correction, rule)


def raise_side(
    known: Documents,
    is_raised: Sequence[bool],
    weights: Sequence[float],
    least: float,
    u: float,
) -> list[str] | None:
    """Raise one side by the smallest amount that is enough; None where nothing is lacking."""
    mine = [d for d, raised in zip(known, is_raised, strict=True) if raised]
    rest = [d for d, raised in zip(known, is_raised, strict=True) if not raised]

    def lead(order: Documents) -> float:
        of_mine = sum(w for w, d in zip(weights, order, strict=True) if d in mine)
        return of_mine / len(mine) - least * (sum(weights) - of_mine) / len(rest)

    def sorted_by(amount: float, *, wins: bool) -> list[tuple[str, str, float]]:
        first, second = (mine, rest) if wins else (rest, mine)
        return sorted([*first, *second], key=lambda d: -(d[2] + amount if d in mine else d[2]))

    if lead(known) >= -1e-9:
        return None
    if lead([*mine, *rest]) < 0:
        return [doc for doc, _, _ in [*mine, *rest]]
    # The order changes where a raised document meets another one, and there alone.
    amounts = sorted({0.0, *(o[2] - m[2] for m in mine for o in rest if o[2] > m[2])})
    index = next(i for i, x in enumerate(amounts) if lead(sorted_by(x, wins=True)) >= 0)
    more = sorted_by(amounts[index], wins=True)
    fewer = sorted_by(0.0, wins=False) if index == 0 else sorted_by(amounts[index - 1], wins=True)
    odds = -lead(fewer) / (lead(more) - lead(fewer))
    return [doc for doc, _, _ in (more if u < odds else fewer)]


def test_ties_of_both_sides_go_to_the_side_that_lags() -> None:
    # All tied: p = ½, so each side has a document among the first two, as four times over.
    collection, run = labelled(["hhhhllll"], [[5.0] * 8])
    corrected = FairReRank(group="llm", target=10.0).rank(collection, run)
    source = dict(zip(collection.docs["id"], collection.docs["source"], strict=True))
    sides = [source[doc] for doc, _, _ in lists_of(collection, corrected)["q0"]]
    assert all(sides[:k].count("llm") in (k // 2, k // 2 + 1) for k in range(1, 7))


@pytest.mark.parametrize(
    "correction",
    [
        offset(0.1),
        Interleave(),
        FairReRank(group="llm"),
        FairReRank(group="llm", method="fa-ir"),
        FairReRank(group="llm", method="exposure"),
    ],
)
def test_remedy_has_a_sentence_and_says_where_lists_end(correction: Correction) -> None:
    remedy = remedy_of(correction, ("human", "llm"), depth=50)
    assert re.fullmatch(r"[A-Z].*\.", remedy_sentence(remedy))
    assert remedy_lines(remedy)[-1].startswith(
        "Only the best 50 documents of a list are corrected;"
    )
    assert remedy.rule.normalisation == "none"
