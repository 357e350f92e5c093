"""Sentences are made from data: what a file holds is enough to say the same again."""

from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import ranktilt as rt
from ranktilt import Run, table
from ranktilt.data.artifact import Result
from ranktilt.data.notes.probes import GapAttributed
from ranktilt.measures.base import estimand
from ranktilt.reporting.sentences import derived
from ranktilt.reporting.sentences.answers import basis_words
from ranktilt.reporting.sentences.explaining.probes import attribution_meaning
from ranktilt.reporting.sentences.notes import note_sentence
from ranktilt.reporting.sentences.verdicts import verdict_sentence
from ranktilt.reporting.views import view
from tests.reporting.results import RESULTS, result

PLACES = {**derived._DERIVED, **derived._LEADING, **derived._SENTENCES}
NEVER_SAVED = ("installation", "models", "models, in full")
SAVED = [name for name in RESULTS if name not in NEVER_SAVED]


@pytest.mark.parametrize("name", NEVER_SAVED)
def test_other_results_have_no_file(name: str) -> None:
    assert not isinstance(result(name), Result)


@pytest.mark.parametrize("reference", sorted(set(PLACES.values())))
def test_named_function_exists(reference: str) -> None:
    module, _, name = reference.partition(":")
    assert callable(getattr(import_module(f"ranktilt.reporting.sentences.{module}"), name))


@pytest.mark.parametrize("name", SAVED)
def test_result_from_file_prints_alike(name: str, tmp_path: Path) -> None:
    path = result(name).save(tmp_path / "result.json")
    printed = table(type(result(name)).load(path))
    # The next step of citations names the file that the audit is in, once there is one.
    assert printed.replace(str(path), "citations.json") == table(result(name))


@pytest.mark.parametrize("name", SAVED)
def test_headline_is_that_of_the_page(name: str) -> None:
    headline = result(name).headline
    assert headline
    assert headline == view(result(name)).headline


def test_verdict_says_its_sentence() -> None:
    verdict = result("audit, clear").verdicts()[0]
    assert verdict.sentence == verdict_sentence(verdict)
    assert verdict.sentence in table(result("audit, clear"))


def test_record_without_words_has_none() -> None:
    assert derived.derived(object()) == {}
    assert derived.leading_finding(object()).sentence == "Nothing was compared."


@pytest.mark.parametrize(
    ("low", "with_gap", "meaning"),
    [
        (-0.1, (), "No gap between the sides is shown"),
        (0.1, (), "none of the properties examined is shown to go with it"),
        (0.1, ("words",), "Look at words first, as the gap goes with it"),
    ],
)
def test_meaning_of_an_attribution(low: float, with_gap: tuple[str, ...], meaning: str) -> None:
    assert meaning in attribution_meaning([gap_attributed(low=low, with_gap=with_gap)])


def gap_attributed(**fields: Any) -> GapAttributed:
    gap = GapAttributed(
        run="bm25",
        source="llm",
        reference="human",
        gap=0.2,
        low=0.1,
        high=0.3,
        is_of_retrieved=False,
        with_gap=("words",),
        against_gap=(),
    )
    return replace(gap, **fields)


@pytest.mark.parametrize(
    ("unvarying", "unexamined"),
    [
        (("age",), "All twins differ by the same amount in age, which could not be examined."),
        (
            ("a", "b", "c", "d"),
            "All twins differ by the same amount in 4 other properties, which could not be "
            "examined.",
        ),
    ],
)
def test_properties_in_which_twins_do_not_vary_are_said_to_be_unexamined(
    unvarying: tuple[str, ...], unexamined: str
) -> None:
    gap = gap_attributed(unvarying=unvarying)
    assert note_sentence(gap) == (
        "bm25 scores human texts higher than their llm twins, by 0.200 sd [0.100, 0.300]. This "
        f"goes with words. {unexamined}"
    )
    assert unexamined not in note_sentence(replace(gap, low=-0.1))


def test_no_property_of_retrieved_twins_is_named() -> None:
    gap = gap_attributed(is_of_retrieved=True)
    assert "words" not in note_sentence(gap)
    assert "Name the ranker (-r) instead of its run" in attribution_meaning([gap])


@pytest.mark.parametrize("third", ["forum", None])
def test_share_of_two_groups_is_not_of_all_results(third: str | None, tmp_path: Path) -> None:
    # One shop, one blog and two other results are in the first four of eight ranks.
    kinds = ["shop", "blog", third, third, "shop", "shop", third, third]
    labels = [f"d{rank},{kind}" for rank, kind in enumerate(kinds) if kind is not None]
    (tmp_path / "labels.csv").write_text("doc_id,source\n" + "\n".join(labels) + "\n", "utf-8")
    entries = [(f"q{query}", f"d{rank}", -float(rank)) for query in range(12) for rank in range(8)]
    run = Run.from_frame(pl.DataFrame(entries, ["query_id", "doc_id", "score"], orient="row"))
    collection = rt.labelled(tmp_path / "labels.csv", [run])
    audit = rt.audit(collection, run, ["Share@4"], pairs=[("shop", "blog")], resamples=100)
    assert (
        "50.0 % of shop and blog documents in the first 4 ranks are shop ones, and 75.0 % of "
        "those among the candidates"
    ) in audit.verdict(run.name).sentence
    basis = basis_words(estimand("Share@4"), audit.verdict(run.name).effect)
    assert basis.startswith("share of shop among shop and blog in the first 4 ranks")
