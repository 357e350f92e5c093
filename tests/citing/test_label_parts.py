"""Audits of citations whose labels err by parts of the pages: by hand, limits, and refusals."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from ranktilt.auditing.groups import Groups
from ranktilt.auditing.label_errors.model import LabelModel
from ranktilt.citing.cite import cite
from ranktilt.citing.effect import CitationEffect
from ranktilt.citing.inference.infer import estimate_spread
from ranktilt.citing.label_errors.correct import PairCorrection, corrected_rates, rate_spread
from ranktilt.citing.label_errors.membership import rates_exchanged_p, share_by_parts
from ranktilt.citing.result import CitationAudit
from ranktilt.data.collection import Collection
from ranktilt.measures.citations import rate
from ranktilt.measures.citations.base import CitationRows
from ranktilt.statistics.label_errors import Confusion
from tests.refusals import refused

QUERIES, RANKS = 20, 6
PAGES = """
short ai 20 8
short human 20 4
middling ai 10 6
middling human 30 6
long ai 12 6
long human 28 7
"""
"""Size and label of pages, how many were consulted, and how many of them were cited."""
RATES = "ai:by=words:3,fpr=.2|.1|0,fnr=.2|.1|.25"
ALIKE = "ai:by=words:3,fpr=.1|.1|.1,fnr=.2|.2|.2"


@dataclass(frozen=True, kw_only=True)
class Page:
    address: str
    size: str
    label: str
    words: int
    is_cited: bool
    query: int
    rank: int


def pages() -> list[Page]:
    """Return 120 pages on the ranks of 20 lists, in an order drawn by seed."""
    slots = np.random.default_rng(3).permutation(QUERIES * RANKS)
    listed = list[Page]()
    for line in PAGES.split("\n")[1:-1]:
        size, label, consulted, cited = line.split()
        for number in range(int(consulted)):
            slot = int(slots[len(listed)])
            page = Page(
                address=f"https://d{len(listed)}.org/1",
                size=size,
                label=label,
                words=len(listed) + 1,
                is_cited=number < int(cited),
                query=slot // RANKS,
                rank=slot % RANKS + 1,
            )
            listed.append(page)
    return listed


def write_pages(folder: Path) -> tuple[Path, str]:
    """Write answers with their lists, and the labels of pages."""
    listed = sorted(pages(), key=lambda page: (page.query, page.rank))
    rows = [f"{page.address},{page.label},{page.words},{page.size}" for page in listed]
    (folder / "pages.csv").write_text("\n".join(["url,source,words,size", *rows]) + "\n")
    lines = [f"q{page.query} Q0 {page.address} {page.rank} {-page.rank} run" for page in listed]
    (folder / "run.trec").write_text("\n".join(lines) + "\n")
    answers = []
    for query in range(QUERIES):
        consulted = [page for page in listed if page.query == query]
        record = {
            "query_id": f"q{query}",
            "cited": [page.address for page in consulted if page.is_cited],
            "consulted": [page.address for page in consulted],
        }
        answers.append(json.dumps(record))
    (folder / "answers.jsonl").write_text("\n".join(answers) + "\n")
    return folder / "answers.jsonl", f"{folder / 'pages.csv'}:id=url"


def audit_of(folder: Path, label_errors: str | None, **options: Any) -> CitationAudit:
    answers, labels = write_pages(folder)
    return cite(
        answers,
        options.pop("labels", labels),
        run=folder / "run.trec",
        pairs=options.pop("pairs", [("ai", "human")]),
        resamples=999,
        label_errors=label_errors,
        **options,
    )


def effect_of(audit: CitationAudit, question: str) -> CitationEffect:
    [effect] = [effect for effect in audit.effects if effect.question == question]
    return effect


def test_rates_and_shares_of_three_parts_by_hand(tmp_path: Path) -> None:
    audit = audit_of(tmp_path, RATES)
    # Of n pages, x of them labelled ai, (x − fpr·n) / (1 − fpr − fnr) are ai:
    #   short    (20 − .2·40) / .6  = 20    cited (8 − .2·12) / .6 = 9.3333
    #   middling (10 − .1·40) / .8  =  7.5  cited (6 − .1·12) / .8 = 6
    #   long     (12 −  0·40) / .75 = 16    cited (6 −  0·13) / .75 = 8
    # Together 43.5 of 120 pages and 23.3333 of 37 citations; the others are human.
    effect = effect_of(audit, "rate")
    assert effect.value_a == pytest.approx(23.33333333333333 / 43.5, abs=1e-12)
    assert effect.value_b == pytest.approx(13.66666666666667 / 76.5, abs=1e-12)
    assert effect.value == pytest.approx(3.0025, abs=1e-4)
    assert effect.observed is not None
    assert effect.observed.value == pytest.approx((20 / 42) / (17 / 78))
    shares = effect_of(audit, "share")
    assert shares.value == pytest.approx(100 * 23.33333333333333 / 37, abs=1e-9)
    assert shares.neutral == pytest.approx(36.25, abs=1e-12)
    assert shares.low < shares.value < shares.high
    sizes = {stage.stage: stage.value for stage in audit.stages if stage.group == "ai"}
    assert sizes["consulted"] == pytest.approx(36.25)
    assert sizes["cited"] == pytest.approx(shares.value)
    [note] = [note for note in audit.notes if note.kind == "LabelsCorrected"]
    assert note.sentence == (
        f"answers are corrected for label errors ({RATES}): words 1 to 40: labels keep 60.0 % of a "
        "gap; words 41 to 80: labels keep 80.0 % of a gap; words 81 to 120: labels keep 75.0 % of "
        "a gap"
    )


def membership(page: Page) -> float:
    """Return how much of a page is ai: (label − fpr) / J of its part."""
    false_positive, strength = {"short": (0.2, 0.6), "middling": (0.1, 0.8), "long": (0, 0.75)}[
        page.size
    ]
    return ((page.label == "ai") - false_positive) / strength


def test_funnel_of_three_parts_by_hand(tmp_path: Path) -> None:
    audit = audit_of(tmp_path, RATES)
    listed = pages()
    # Each rank has 20 pages, so that it has a citation rate of its own.
    rank_rates = [
        np.mean([page.is_cited for page in listed if page.rank == rank])
        for rank in range(1, RANKS + 1)
    ]
    evenly, by_rank, citations = 0.0, 0.0, 0
    for query in range(QUERIES):
        of_query = [page for page in listed if page.query == query]
        cited = sum(page.is_cited for page in of_query)
        counts = [membership(page) for page in of_query]
        weights = [rank_rates[page.rank - 1] for page in of_query]
        citations += cited
        evenly += cited * float(np.mean(counts))
        by_rank += cited * float(np.average(counts, weights=weights))
    pool = np.mean([membership(page) for page in listed])
    selected = np.mean([membership(page) for page in listed if page.is_cited])
    expected: dict[str, Any] = {
        "questions": evenly / citations - pool,
        "exposure": (by_rank - evenly) / citations,
        "selection": selected - by_rank / citations,
        "unretrieved": 0.0,
        "total": selected - pool,
    }
    for part in audit.funnel:
        assert part.value == pytest.approx(100 * expected.pop(part.name), abs=1e-9)
        assert part.low <= part.value <= part.high
    assert not expected
    total = audit.funnel[-1]
    assert total.value == pytest.approx(100 * (23.33333333333333 / 37 - 0.3625))


def test_error_of_each_parts_rates_adds_to_that_of_a_share(tmp_path: Path) -> None:
    known = effect_of(audit_of(tmp_path, RATES), "share")
    checked = "ai:by=words:3,fpr=10/50|5/50|0/50,fnr=10/50|5/50|10/40"
    uncertain = effect_of(audit_of(tmp_path, checked), "share")
    # What a part's pages add to the share less the neutral share, corrected: ai pages, and human.
    ai = np.array([9.333333, 6, 8]) / 37 - np.array([20, 7.5, 16]) / 120
    both = np.array([12, 12, 13]) / 37 - np.array([40, 40, 40]) / 120
    strength = np.array([0.6, 0.8, 0.75])
    false_positive = (np.array([10, 5, 0]) + 0.5) / 51
    false_negative = (np.array([10, 5, 10]) + 0.5) / np.array([51, 51, 41])
    variance = ((both - ai) / strength) ** 2 * false_positive * (1 - false_positive) / 50
    variance += (
        (ai / strength) ** 2 * false_negative * (1 - false_negative) / np.array([50, 50, 40])
    )
    added = uncertain.error**2 - known.error**2
    assert added == pytest.approx(100**2 * variance.sum(), rel=1e-6)
    assert uncertain.value == pytest.approx(known.value)
    assert uncertain.low < known.low
    rates = [effect_of(audit_of(tmp_path, text), "rate") for text in (RATES, checked)]
    assert rates[1].low < rates[0].low < rates[0].high < rates[1].high


def test_parts_with_equal_rates_are_corrected_as_all_pages_are(tmp_path: Path) -> None:
    plain, alike = audit_of(tmp_path, "ai:fpr=.1,fnr=.2"), audit_of(tmp_path, ALIKE)
    compared = {
        "effects": ("value", "value_a", "value_b", "neutral", "two_way_p"),
        "stages": ("value", "low", "high"),
        "funnel": ("value", "low", "high", "p"),
    }
    for records, names in compared.items():
        for before, after in zip(getattr(plain, records), getattr(alike, records), strict=True):
            for name in names:
                expected = pytest.approx(getattr(before, name), abs=1e-12, rel=1e-12, nan_ok=True)
                assert getattr(after, name) == expected, (records, name)
    before, after = effect_of(plain, "share"), effect_of(alike, "share")
    assert after.exchange_p == before.exchange_p
    assert (after.low, after.high) == pytest.approx((before.low, before.high), abs=1e-11)


def test_page_without_a_part_is_refused(tmp_path: Path) -> None:
    answers, labels = write_pages(tmp_path)
    file = tmp_path / "pages.csv"
    first, *rows = file.read_text().splitlines()
    file.write_text("\n".join([f"{first},lang", *(f"{row},en" for row in rows[:-1])]))
    file.write_text(file.read_text() + f"\n{rows[-1]},\n")
    with refused("--label-errors ai:by=lang,fpr=.1,fnr=.2: 1 labelled document has no lang…"):
        cite(answers, labels, label_errors="ai:by=lang,fpr=.1,fnr=.2", resamples=199)


def test_turned_pair_and_names_of_parts(tmp_path: Path) -> None:
    first = effect_of(audit_of(tmp_path, RATES), "rate")
    # Named parts are in the order of their names: long, middling, short.
    text = "human:by=size,fpr=.25|.1|.2,fnr=0|.1|.2"
    turned = effect_of(audit_of(tmp_path, text, pairs=[("human", "ai")]), "rate")
    assert turned.value == pytest.approx(1 / first.value)
    assert turned.low == pytest.approx(1 / first.high, rel=1e-6)
    assert (turned.p, turned.exchange_p) == pytest.approx((first.p, first.exchange_p))


def test_checked_pages_have_the_part_of_their_address(tmp_path: Path) -> None:
    by_address, by_part = ["url,true,label"], ["words:3,true,label"]
    names = {"short": "words 1 to 40", "middling": "words 41 to 80", "long": "words 81 to 120"}
    for number, page in enumerate(pages()):
        truth = "ai" if (page.label == "ai") != (number % 8 == 0) else "human"
        address = page.address.replace("https://", "http://www.")
        by_address.append(f"{address}/,{truth},{page.label}")
        by_part.append(f"{names[page.size]},{truth},{page.label}")
    effects = []
    for name, lines in (("addresses", by_address), ("parts", by_part)):
        file = tmp_path / f"{name}.csv"
        file.write_text("\n".join(lines) + "\n")
        effects.append(effect_of(audit_of(tmp_path, f"{file}:by=words:3"), "rate"))
    assert effects[0] == effects[1]
    assert effects[0].observed is not None
    assert effects[0].value != effects[0].observed.value


def test_documents_of_a_collection_are_divided_by_their_length(tmp_path: Path) -> None:
    answers, _labels = write_pages(tmp_path)
    docs: list[dict[str, str]] = [
        {"id": page.address, "text": "word " * page.words, "source": page.label} for page in pages()
    ]
    queries = pl.DataFrame({"id": ["q0"], "text": ["word"]})
    judgments = {"query_id": pl.String, "doc_id": pl.String, "grade": pl.Int32}
    collection = Collection(pl.DataFrame(docs), queries, pl.DataFrame(schema=judgments))
    options: dict[str, Any] = {"pairs": [("ai", "human")], "resamples": 199}
    text = RATES.replace("words:3", "length:3")
    effect = effect_of(cite(answers, collection, label_errors=text, **options), "rate")
    assert effect.value == pytest.approx(3.0025, abs=1e-4)


def test_parts_of_few_units_and_groups_of_queries(tmp_path: Path) -> None:
    answers, labels = write_pages(tmp_path)
    text = (tmp_path / "pages.csv").read_text().splitlines()
    sites = [f"{row},site{number % 4 + 4 * ('ai' in row)}" for number, row in enumerate(text[1:])]
    (tmp_path / "pages.csv").write_text("\n".join([f"{text[0]},site", *sites]) + "\n")
    groups = [f"q{query},{'even' if query % 2 else 'odd'}" for query in range(QUERIES)]
    (tmp_path / "queries.csv").write_text("\n".join(["query_id,topic", *groups]) + "\n")
    options: dict[str, Any] = {"pairs": [("ai", "human")], "resamples": 199, "cluster": "site"}
    by_query = f"{tmp_path / 'queries.csv'}:topic"
    plain, alike = (
        cite(answers, labels, label_errors=errors, by_query=by_query, **options)
        for errors in ("ai:fpr=.1,fnr=.2", ALIKE)
    )
    before, after = plain.primary[0].these_units, alike.primary[0].these_units
    assert before is not None
    assert after is not None
    assert (after.low, after.high) == pytest.approx((before.low, before.high))
    for first, second in zip(before.largest, after.largest, strict=True):
        assert second.value_without == pytest.approx(first.value_without)
    assert plain.by_query is not None
    assert alike.by_query is not None
    for expected, answer in zip(plain.by_query.answers, alike.by_query.answers, strict=True):
        assert answer.effect.value == pytest.approx(expected.effect.value)


@dataclass(frozen=True, kw_only=True)
class Refusal:
    text: str
    message: str


REFUSALS = [
    Refusal(
        text="ai:by=size2,fpr=.1|.2|.1,fnr=.1|.2|.1",
        message="--label-errors ai:by=size2,fpr=.1|.2|.1,fnr=.1|.2|.1: unknown column of the pages "
        "'size2'; did you mean 'size'? (valid: words, size); name a column of --groups, such as…",
    ),
    Refusal(
        text="ai:by=length:3,fpr=.1|.2|.1,fnr=.1|.2|.1",
        message="--label-errors ai:by=length:3,fpr=.1|.2|.1,fnr=.1|.2|.1: unknown column of the…",
    ),
    Refusal(
        text="ai:by=size:3,fpr=.1|.2|.1,fnr=.1|.2|.1",
        message="--label-errors ai:by=size:3,fpr=.1|.2|.1,fnr=.1|.2|.1: unknown column of numbers…",
    ),
    Refusal(
        text="ai:by=words:3,fpr=.1|.2,fnr=.1|.2",
        message="--label-errors ai:by=words:3,fpr=.1|.2,fnr=.1|.2: expected 3 rates, one for each "
        "part of words:3 (words 1 to 40, words 41 to 80, words 81 to 120), got 2",
    ),
    Refusal(
        text="ai:by=words:3,fpr=2/100|2/6|2/100,fnr=5/100|2/6|5/100",
        message="--label-errors ai:by=words:3,fpr=2/100|2/6|2/100,fnr=5/100|2/6|5/100: 12 "
        "documents that were checked for words:3 'words 41 to 80' leave open whether labels say "
        "anything (sensitivity + specificity − 1 = 0.33 ± 0.28); check more",
    ),
]


@pytest.mark.parametrize("case", REFUSALS, ids=lambda case: case.text)
def test_parts_that_do_not_fit_are_refused(case: Refusal, tmp_path: Path) -> None:
    with refused(case.message):
        audit_of(tmp_path, case.text)


def test_sample_that_lacks_a_part_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "checked.csv"
    file.write_text("size,true,label\nshort,ai,ai\nshort,human,human\n")
    with refused(f"{file}: no checked document of size 'long' is truly 'ai'; check some of every…"):
        audit_of(tmp_path, f"{file}:by=size")
    file.write_text("size,true,label\nhuge,ai,ai\nshort,human,human\n")
    with refused(f"{file}: unknown part 'huge' (valid: long, middling, short)"):
        audit_of(tmp_path, f"{file}:by=size")
    file.write_text("url,true,label\nhttps://elsewhere.org/1,ai,ai\n")
    with refused(f"{file}: unknown document 'elsewhere.org/1' (valid: ids of the collection)"):
        audit_of(tmp_path, f"{file}:by=size")


# ---- simulated ----------------------------------------------------------------------------------

WORLDS, EXCHANGES = 400, 1_999
SITES, SITE_PAGES, ANSWER_PAGES, ANSWERS = 150, 3, 12, 100
AI_SHARE = np.array([0.45, 0.4, 0.35])
CITED = np.array([0.5, 0.3, 0.15])
"""How often human pages of a part are cited: parts whose labels overstate AI are cited more."""
FALSE_POSITIVE, FALSE_NEGATIVE = np.array([0.3, 0.1, 0.02]), np.array([0.05, 0.1, 0.3])


@dataclass(frozen=True, kw_only=True)
class Answer:
    covers: bool
    is_finding: bool


def true_ratio_of(preference: float) -> float:
    """Return how many times as often ai pages are cited, over all parts alike."""
    ai_cited, human_cited = AI_SHARE * CITED * preference, (1 - AI_SHARE) * CITED
    rates = ai_cited.sum() / AI_SHARE.sum(), human_cited.sum() / (1 - AI_SHARE).sum()
    return float(rates[0] / rates[1])


def world(seed: int, *, true_ratio: float, sample: int) -> Iterator[tuple[str, Answer]]:
    """Yield whether intervals of a ratio of rates and of a share cover what is true."""
    preference = true_ratio / true_ratio_of(1.0)
    rng = np.random.default_rng([58, seed])
    part = rng.integers(0, 3, SITES)
    is_ai = rng.random(SITES) < AI_SHARE[part]
    page_site = np.repeat(np.arange(SITES), SITE_PAGES)
    wrong = np.where(is_ai, FALSE_NEGATIVE[part], FALSE_POSITIVE[part])[page_site]
    labelled_ai = is_ai[page_site] ^ (rng.random(len(page_site)) < wrong)
    listed = rng.integers(0, len(page_site), (ANSWERS, ANSWER_PAGES)).ravel()
    site = page_site[listed]
    chance = CITED[part[site]] * np.where(is_ai[site], preference, 1.0)
    count = len(listed)
    rows = CitationRows(
        question=np.repeat(np.arange(ANSWERS), ANSWER_PAGES),
        cluster=site,
        weight=np.ones(count),
        is_a=labelled_ai[listed],
        is_cited=rng.random(count) < chance,
        is_first=np.zeros(count, dtype=bool),
        is_consulted=np.ones(count, dtype=bool),
        retrieval_rank=np.zeros(count, dtype=np.int64),
        cited_words=np.full(count, np.nan),
        part=part[site],
    )
    confusions = [
        Confusion.from_rates(
            false_positive=rng.binomial(sample, positive) / sample,
            false_negative=rng.binomial(sample, negative) / sample,
            checked_negative=sample,
            checked_positive=sample,
        )
        for positive, negative in zip(FALSE_POSITIVE, FALSE_NEGATIVE, strict=True)
    ]
    none = np.empty(0, dtype=np.int64)
    model = LabelModel(
        groups=Groups(by="source", names=("ai", "human"), code=none),
        parts=("short", "middling", "long"),
        confusions=tuple(confusions),
        part=none,
    )
    correction = PairCorrection(model=model, a="ai")
    exchanged_p = rates_exchanged_p("rate", rows, correction, resamples=EXCHANGES, seed=0)
    # By the labels as they are, without a correction.
    observed = estimate_spread(rows, rate.estimate(rows), resamples=EXCHANGES, seed=0)
    tested = replace(observed, exchange_p=exchanged_p)
    covers = observed.low <= true_ratio <= observed.high
    yield "observed", Answer(covers=covers, is_finding=observed.p < 0.05)
    around = rate_spread(corrected_rates("rate", rows, correction), tested)
    yield "rate", Answer(covers=around.low <= true_ratio <= around.high, is_finding=around.p < 0.05)
    estimate, around = share_by_parts("share", rows, correction, resamples=EXCHANGES, seed=0)
    ai_cited, human_cited = AI_SHARE * CITED * preference, (1 - AI_SHARE) * CITED
    true_share = 100 * ai_cited.sum() / (ai_cited + human_cited).sum()
    true_tilt = true_share - 100 * AI_SHARE.mean()
    low, high = around.low - estimate.neutral, around.high - estimate.neutral
    yield "share", Answer(covers=low <= true_tilt <= high, is_finding=around.p < 0.05)


@pytest.mark.long
@pytest.mark.parametrize("true_ratio", [1.0, 1.4])
def test_intervals_of_three_parts_cover_what_is_true(true_ratio: float) -> None:
    answers: dict[str, list[Answer]] = {"observed": [], "rate": [], "share": []}
    for seed in range(WORLDS):
        for question, answer in world(seed, true_ratio=true_ratio, sample=100):
            answers[question].append(answer)
    observed = answers.pop("observed")
    # Uncorrected, the parts whose labels overstate AI and that are cited more make a finding.
    if true_ratio == 1:
        assert np.mean([answer.is_finding for answer in observed]) >= 0.3
    for question, drawn in answers.items():
        # 95 and 5 %, less or more three standard errors of 400 worlds.
        assert np.mean([answer.covers for answer in drawn]) >= 0.917, question
        findings = float(np.mean([answer.is_finding for answer in drawn]))
        assert findings <= 0.083 if true_ratio == 1 else findings >= 0.3, question
