"""Estimands of groups inside an audit: bands, calibration, several groups a document, labels that
are missing.
"""

import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import ranktilt as rt
from ranktilt import Audit, Collection, GroupEstimand, Run, table
from ranktilt.auditing.effects import Effect
from ranktilt.auditing.grouping.labels import grouping
from ranktilt.auditing.judged_run import JudgedRun
from ranktilt.auditing.judgments import Judgments
from ranktilt.auditing.null_distributions.pages import strata
from ranktilt.measures import base
from ranktilt.measures.exposure.base import GroupLists
from ranktilt.reporting.sentences.answers import basis_words
from ranktilt.reporting.sentences.notes import note_sentences
from tests.auditing.calibration.synthetic_twins import SCHEMES, sampled, with_synthetic_twins
from tests.refusals import refused
from tests.toy import run_of, toy

QUICK: dict[str, Any] = {"resamples": 100, "confounds": False}
SIDED = [
    "Share@3",
    "ExposureRatio",
    "ExposureRatio(exposure=softmax)",
    "ExposureRatio(aggregate=means)",
    "ExposureRatio(exposure=softmax,aggregate=means)",
]


def listed(
    lists: list[str],
    labels: dict[str, str | None],
    *,
    texts: list[str] | None = None,
    relevant: int = 2,
) -> tuple[Collection, Run]:
    """Lists of documents, each written as a letter whose label is looked up; the first few of each
    are relevant.
    """
    docs, rows, judged = [], [], []
    for q, letters in enumerate(lists):
        for rank, letter in enumerate(letters):
            name = f"{q}-{rank}"
            docs.append(
                {"id": name, "text": "", "source": "s", "origin": name, "kind": labels[letter]}
            )
            rows.append({"query_id": f"q{q}", "doc_id": name, "score": 9.0 - rank**1.5})
            judged += [(f"q{q}", name, 1)] if rank < relevant else []
    queries = pl.DataFrame(
        {"id": [f"q{q}" for q in range(len(lists))], "text": texts or [""] * len(lists)}
    )
    qrels = pl.DataFrame(judged, schema=["query_id", "doc_id", "grade"], orient="row")
    return Collection(pl.DataFrame(docs), queries, qrels), Run.from_frame(
        pl.DataFrame(rows), spec={"ranker": "r"}
    )


def card_of(
    collection: Collection, run: Run, *measures: str, by: str = "source", **options: Any
) -> tuple[Effect, ...]:
    return rt.audit(collection, run, list(measures), by=by, **{**QUICK, **options}).card


LETTERS: dict[str, str | None] = {"a": "a", "b": "b", "c": "c", "-": None, "x": "a|b"}


class TestCalibration:
    def test_copies_are_level(
        self,
    ) -> None:
        """Shuffled lists scatter far more than twins can: held against these, copies were
        favoured.
        """
        mixed = sampled(rt.bundled(), pairs=40, queries=40, seed=0)
        for scheme in SCHEMES[:2]:
            copies = with_synthetic_twins(mixed, scheme, seed=0)
            for effect in card_of(copies, rt.ranker("bm25@30").rank(copies), *SIDED):
                assert (
                    effect.value
                    == effect.low
                    == effect.high
                    == effect.neutral
                    == effect.estimand.neutral
                )
                assert (effect.p, effect.leans, effect.null_position) == (1, "", "inside")
        collection, run = listed(["aaaaabbbbb"] * 12, LETTERS, relevant=10)
        for card_effect in card_of(collection, run, "AWRF@5", "NDKL", "EEL@5", by="kind"):
            assert (
                card_effect.null_position
                == {"AWRF": "below", "NDKL": "above", "EEL": "above"}[card_effect.estimand.name]
            )
            assert card_effect.significant
            assert 0 < card_effect.null_low < 1  # of EE-L, too, which has no upper bound
            assert not card_effect.favours
            assert "farther from" in basis_words(card_effect.estimand, card_effect)


class TestLabels:
    def test_document_of_several_groups_is_of_neither_compared(self) -> None:
        collection, run = listed(["axbab"] * 3, LETTERS)
        share, awrf = card_of(
            collection, run, "Share@2", "AWRF(target=a:1;b:1)@2", by="kind", pairs=[("a", "b")]
        )
        assert share.value == pytest.approx(1 - 2 / 4)
        assert awrf.details == {
            **awrf.details,
            "groups": 2,
            "listed": 15,
            "several": 3,
            "unlabelled": 0,
        }
        assert "3 results of several groups, shared equally" in basis_words(awrf.estimand, awrf)
        result = rt.audit(collection, run, "Share@2", by="kind", **QUICK)
        assert [n.split(":")[0] for n in note_sentences(result.notes) if "several" in n] == [
            "3 documents name several groups of kind"
        ]
        assert result.groups == ("all", "a", "b")

    def test_beside_the_rest_it_is_of_the_protected_group(self) -> None:
        collection, run = listed(["xcab"] * 3, LETTERS)
        (effect,) = card_of(collection, run, "Share@1", by="kind", pairs=[("a", "rest")])
        assert (effect.a, effect.b, effect.value) == ("a", "rest", 1 - 2 / 4)
        (only_effect,) = card_of(collection, run, "Share@1", by="kind", pairs=[("b", "rest")])
        assert only_effect.value == 1 - 2 / 4
        (neither,) = card_of(collection, run, "Share@1", by="kind", pairs=[("c", "rest")])
        assert neither.value == 0 - 1 / 4

    def test_unlabelled_documents_left_out_or_a_class(self) -> None:
        collection, run = listed(["a-b-" * 5] * 8, LETTERS, relevant=20)
        awrf = ("AWRF(target=relevant)@4", "AWRF(target=relevant,unlabelled=class)@4")
        out, within = card_of(collection, run, *awrf, by="kind")
        assert (out.details["unlabelled"], out.details["several"]) == (80, 0)
        assert "80 of 160 results without a label, left out" in basis_words(out.estimand, out)
        assert "80 of 160 results without a label, treated as a class" in basis_words(
            within.estimand, within
        )
        assert out.value != within.value
        result = rt.audit(collection, run, "nDCG@3", by="kind", **QUICK)
        assert "80 documents without kind, so in no group" in note_sentences(result.notes)

    def test_judgment_of_missing_document_is_of_no_stratum(self) -> None:
        collection, _ = listed(["abab"] * 2, LETTERS)
        strange = pl.DataFrame(
            {"query_id": ["q0"], "doc_id": ["gone"], "grade": [1]}, schema=collection.qrels.schema
        )
        more = Collection(
            collection.docs, collection.queries, pl.concat([collection.qrels, strange])
        )
        groups = grouping(more, "kind")
        relevant, others = strata(groups, Judgments.from_collection(more, groups))
        assert (relevant.tolist(), others.tolist()) == ([0, 1, 4, 5], [2, 3, 6, 7])

    def test_a_group_of_one_is_answered_with_a_wide_band(self) -> None:
        collection, run = listed(["abbbbbbbbb"] + ["bbbbbbbbbb"] * 7, LETTERS)
        ratio, awrf = card_of(collection, run, "ExposureRatio", "AWRF@5", by="kind")
        assert (ratio.queries, ratio.excluded) == (1, 7)
        assert ratio.null_high - ratio.null_low > 1
        assert ratio.verdict() == "inconclusive"
        assert awrf.queries == 8


def test_queries_of_one_text_are_rankings_of_one_query() -> None:
    collection, run = listed(["ab" * 3, "ba" * 3, "ab" * 3], LETTERS, texts=["x", "x", "y"])
    (effect,) = card_of(collection, run, "EEL@1", by="kind")
    assert (effect.queries, effect.details["rankings"]) == (2, 1.5)
    assert "1.5 rankings each" in basis_words(effect.estimand, effect)


@pytest.mark.parametrize(
    ("measures", "options", "message"),
    [
        (["AWRF(target=a:1)@5"], {}, "the target of AWRF(target=a:1)@5 has no share for group 'b'"),
        (
            ["AWRF(target=a:1;d:1)@5"],
            {},
            "unknown group in the target of AWRF(target=a:1;d:1)@5 'd' (valid: a, b, c)",
        ),
        (
            ["Share@1"],
            {"pairs": [("a", "rest"), ("b", "rest")]},
            "'rest' stands for every group but one; name one pair with it, such as a,rest",
        ),
        (["AWRF@5"], {"by": None}, "AWRF@5 needs a column to group by; omit --by none"),
        (["NDSR@3", "NDSR@3"], {}, "measure 'NDSR@3' is given twice"),
    ],
)
def test_group_estimand_refusals(
    measures: list[str], options: dict[str, Any], message: str
) -> None:
    collection, run = listed(["abc"], LETTERS)
    with refused(message):
        rt.audit(collection, run, measures, **{"by": "kind", **QUICK, **options})


@pytest.mark.parametrize("text", ["AWRF@5", "EEL", "NDKL(target=relevant)"])
def test_without_judgments_what_needs_them_is_refused(text: str) -> None:
    collection, run = listed(["ab"], LETTERS, relevant=0)
    why = "needs judgments: it asks which documents are relevant, and there are none (--qrels FILE)"
    with refused(f"{text} {why}"):
        card_of(collection, run, text, by="kind")
    assert card_of(collection, run, "NDKL", "AWRF(target=population)@5", by="kind")


@pytest.mark.parametrize("measure_text", ["ranks", "1/rank", "n − rank", "rounded", "read"])
def test_softmax_exposure_of_an_order_is_refused(measure_text: str) -> None:
    collection, run = listed(["abab", "babab"], LETTERS)
    rank = np.concatenate([np.arange(1, 5), np.arange(1, 6)]).astype(float)
    scores = {
        "ranks": -rank,
        "1/rank": 1 / rank,
        "n − rank": 100 - rank,
        "rounded": (1 / rank).round(4),
    }
    spec = {"ranker": "r", "score_order": "rank"} if measure_text == "read" else {"ranker": "r"}
    ordered = Run(
        run.queries, run.offsets, run.docs, scores.get(measure_text, run.scores), run.ids, spec
    )
    text = "ExposureRatio(exposure=softmax)@2"
    with refused(f"{text} needs scores, and r gives only an order; choose a measure of ranks"):
        card_of(collection, ordered, text, by="kind")
    assert card_of(collection, run, text, by="kind")


def test_what_speaks_of_all_groups_stands_once_on_the_first_card(tmp_path: Path) -> None:
    collection, run = listed(["abcab", "cabba", "bacab"] * 3, LETTERS)
    measures = ["Share@2", "AWRF@3", "NDSR@3", "NDSR@1"]  # of which the card asks one anyhow
    result = rt.audit(collection, run, measures, by="kind", card=True, depth=3, **QUICK)
    assert [(e.a, e.b) for e in result.card if e.name == "AWRF@3"] == [("all", "all")]
    assert [[e.name for e in result.card_of("r", "a", b)].count("AWRF@3") for b in "bc"] == [
        1,
        0,
    ]
    names = [e.name for e in result.card_of("r", "a", "b")]
    assert len(names) == len(set(names))
    assert {"ΔNDSR@1", "ΔNDSR@3"} <= set(names)
    assert Audit.load(result.save(tmp_path / "audit.json")) == result


def test_all_groups_at_once_can_be_all_that_is_asked() -> None:
    collection, run = listed(["aaabbb"] * 12, LETTERS, relevant=6)
    result = rt.audit(collection, run, ["AWRF@3"], by="kind", **QUICK)
    assert result.judged_pairs == (("a", "b"),)
    assert result.pairs == (("a", "b"),)
    verdict = result.verdict("r")
    assert (verdict.kind, verdict.side) == ("outside", None)
    assert verdict.sentence.startswith("r: farther from the target than random rankings: AWRF@3 .")
    assert "AWRF@3 covers all groups at once and favours none." in table(result)
    collection, run = listed(["aaabbb"] * 4, LETTERS, texts=["x"] * 4, relevant=6)
    result = rt.audit(collection, run, ["NDKL"], by="kind", **QUICK)
    (effect,) = result.card
    assert (effect.null_position, effect.significant) == (
        "above",
        False,
    )  # one text asked four times is one query
    assert basis_words(effect.estimand, effect).endswith(
        "above the random band, but not significantly after correction"
    )
    assert result.verdict("r").sentence.startswith(
        "r: inconclusive: these queries and documents are worth 1 independent one, too few for a "
        "verdict (10 needed): "
        "NDKL "
    )


@dataclass(frozen=True, repr=False)
class FirstRank(GroupEstimand):
    """Share of lists whose first document is of the first group, less that of the second."""

    name = "FirstRank"
    question = "who stands first?"
    term = "first rank"
    definition = "Who stands first, of two groups."
    bounds = (-1.0, 1.0)

    def contrast(self, ranking: Any, first: Any, second: Any) -> Any:
        filled = np.diff(ranking.offsets) > 0
        top = np.where(filled, ranking.offsets[:-1], 0)
        return np.where(filled, first[top].astype(float) - second[top], np.nan)


MINE = FirstRank()


@pytest.fixture
def plugged(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The estimand as another package gives it."""
    point = EntryPoint("FirstRank", f"{__name__}:MINE", "ranktilt.measures")
    monkeypatch.setattr(
        metadata, "entry_points", lambda group: [point] if group == point.group else []
    )
    base.estimands.cache_clear()
    yield
    base.estimands.cache_clear()


def one_of_three() -> Run:
    """Human documents first in two lists, the LLM's in the third."""
    first = {"q1": "human", "q2": "human", "q3": "llm"}
    scores = {q: {f"d{q[1]}-{s}": 1.0 + (s == first[q]) for s in ("human", "llm")} for q in first}
    return run_of(toy(), scores, ranker="r")


@pytest.mark.usefixtures("plugged")
def test_an_estimand_of_another_package_prints_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    collection = toy()
    result = rt.audit(collection, one_of_three(), ["nDCG@3", "FirstRank"], **QUICK)
    (effect,) = result.card
    assert (effect.estimand, round(effect.value, 3), effect.queries) == (MINE, 0.333, 3)
    assert Audit.load(result.save(tmp_path / "audit.json")) == result
    assert json.loads(result.to_json())["card"][0]["estimand"] == "FirstRank"
    for form in ("table", "markdown", "latex", "csv"):
        assert "FirstRank" in table(result, format=form), form
    page = rt.report(result, tmp_path / "page.html", collection=collection).read_text()
    assert "who stands first?" in page
    path = result.save(tmp_path / "audit.json")
    monkeypatch.setattr(metadata, "entry_points", lambda group: [])
    base.estimands.cache_clear()
    with pytest.raises(rt.DataError, match="unknown measure 'FirstRank'"):
        Audit.load(path)


def test_ratio_does_not_depend_on_the_first_group() -> None:
    collection, run = listed(["abbabaabab", "babaabbaab", "aabbbababa"], LETTERS)
    result = rt.audit(collection, run, ["ExposureRatio"], by="kind", pairs=[("a", "b")], **QUICK)
    assert result.card_of("r", "b", "a") == [*result.card]


class TestRandomLists:
    def lists(self, letters: list[str]) -> tuple[GroupLists, np.ndarray]:
        """Lists in which a document has one name and so one letter, and the number of each entry's
        document.
        """
        collection, run = listed(letters, LETTERS)
        groups = grouping(collection, "kind")
        aligned = JudgedRun.from_run(run, collection, Judgments.from_collection(collection, groups))
        return aligned.group_lists(groups), aligned.row

    def test_each_list_keeps_what_it_holds(self) -> None:
        lists, document = self.lists(["aabbc", "abc", "ccb"])
        drawn = lists.relabelled(np.random.default_rng(0), document)
        for start, end in itertools.pairwise(lists.ranking.offsets.tolist()):
            pairs, drawn_pairs = (
                sorted(
                    zip(
                        lists_of_run.kind[start:end].tolist(),
                        lists_of_run.relevant[start:end].tolist(),
                        strict=True,
                    )
                )
                for lists_of_run in (lists, drawn)
            )
            assert drawn_pairs == pairs

    def test_a_document_is_of_one_kind_in_equal_lists(self) -> None:
        """Three lists of the same six documents, whose kinds are drawn together: alike in all, and
        by chance.
        """
        lists, _ = self.lists(["aaabbb"] * 3)
        document = np.tile(np.arange(6), 3)
        rng = np.random.default_rng(0)
        firsts = [lists.relabelled(rng, document).kind.reshape(3, 6) for _ in range(400)]
        assert all((kinds == kinds[0]).all() for kinds in firsts)
        shares = np.mean([kinds[0] == lists.kind[0] for kinds in firsts], axis=0)
        assert shares == pytest.approx(np.full(6, 0.5), abs=0.1)

    def test_lists_that_share_documents_scatter_further(self) -> None:
        """Twelve lists of the same documents in one order say what one list says; of others, what
        twelve say.
        """
        bands = []
        for letters in (["aaabbb"] * 12, ["aaabbb"] * 12):
            collection, run = listed(letters, LETTERS, relevant=6)
            if bands:  # the documents of the first list in all of them
                shared = np.tile(run.docs[:6], 12)
                run = Run(run.queries, run.offsets, shared, run.scores, run.ids, run.spec)
            (effect,) = rt.audit(
                collection, run, ["AWRF(target=candidates)@3"], by="kind", **QUICK
            ).card
            bands.append(effect.null_high - effect.null_low)
        assert bands[1] > 2 * bands[0]


def test_lists_know_which_entries_are_relevant() -> None:
    collection, run = listed(["aab", "bba"], LETTERS, relevant=2)
    groups = grouping(collection, "kind")
    judged_run = JudgedRun.from_run(run, collection, Judgments.from_collection(collection, groups))
    lists = judged_run.group_lists(groups)
    assert lists.relevant.tolist() == [True, True, False, True, True, False]


def test_without_relevant_documents_no_entry_has_a_judgment() -> None:
    collection, _ = listed(["ab"], LETTERS, relevant=0)
    judgments = Judgments.from_collection(collection, grouping(collection, "kind"))
    assert judgments.find(np.array([0, 0]), np.array([0, 1])).tolist() == [-1, -1]
