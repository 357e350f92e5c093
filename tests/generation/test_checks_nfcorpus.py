"""Checks of real rewrites (Llama-2 of NFCorpus) and of texts by people: what is found was read by hand."""

from collections import Counter
from pathlib import Path

import orjson
import polars as pl
import pytest

from ranktilt.datasets.load import load
from ranktilt.generation.checks import RewriteLimits, check_text, clean, flags
from ranktilt.text import quality

pytestmark = pytest.mark.data

# "here is my attempt to rewrite the given text:\nRewritten Text:" in front of a rewrite.
ANNOUNCED = {
    *("MED-1129", "MED-1161", "MED-1178", "MED-1277", "MED-1780", "MED-2344", "MED-2783", "MED-2812", "MED-2814"),
    *("MED-3143", "MED-3294", "MED-3450", "MED-3962", "MED-4178", "MED-4700", "MED-727", "MED-733"),
}
CUT_OFF = {
    "MED-1393": "a bare 'Note:'",
    "MED-2490": "a bare 'Note:'",
    "MED-2496": "a bare 'Note:'",
    "MED-1657": "hundreds of empty lines and 'MS'",
    "MED-2890": "'Here are five arguments for this connection:', and none",
}
NOT_CUT_OFF = {
    "MED-957": "in the middle of a word, '… in a repeated-ins', as its source ends with '(ABSTRACT TRUNCATED …)'",
    "MED-2362": "keeps the '(Abstract truncated at 250 words)' of its source behind a whole sentence",
    "MED-3482": "the number of the trial, as in the source",
    "MED-3532": "'© 2023' for '© 2011 Crown Copyright'",
    "MED-4033": "a list without punctuation, made of the source's 'BMI; relative risk (RR); …'",
}
COPIED = {
    "MED-2724": "to the letter",
    "MED-4883": "to the letter",
    "MED-4075": "268 words of the source, 258 left, hardly one new",
    "MED-821": "a few commas and articles more",
    "MED-928": "small changes in five places of 351 words",
}
TOO_LONG = {"MED-2489": "a sentence and its remark", "MED-4438": "158 words made into 426, with a summary of itself"}


@pytest.fixture(scope="module")
def pairs(shared_data: Path) -> pl.DataFrame:
    """Number, human text, rewrite as it came, and what the check of a rewrite makes of it."""
    collection = load(shared_data / "cocktail-nfcorpus")
    human, llama = collection.sources
    texts = collection.docs.select("id", "text")
    found = collection.pairs(human, llama).select("a", "b").join(texts, left_on="a", right_on="id")
    found = found.join(texts, left_on="b", right_on="id", suffix="_llama")
    found = found.select(pl.col("a").str.extract(r"(MED-\d+)").alias("id"), human="text", raw="text_llama")
    stop = pl.Series(["stop"] * found.height)
    return found.hstack(check_text(RewriteLimits())(found["human"], found["raw"], stop))


def with_flag(pairs: pl.DataFrame, flag: str) -> set[str]:
    return set(pairs.filter(pl.col("flags").list.contains(flag))["id"])


def test_the_whole_side_in_figures(pairs: pl.DataFrame) -> None:
    assert pairs.height == 3633
    counts = Counter(flag for listed in pairs["flags"].to_list() for flag in listed)
    assert counts == {"too short": 159, "cut off": 5, "copied": 5, "too long": 2}


def test_the_faults_are_those_found_by_reading(pairs: pl.DataFrame) -> None:
    found = {flag: with_flag(pairs, flag) for flag in ("cut off", "copied", "too long")}
    assert found == {"cut off": set(CUT_OFF), "copied": set(COPIED), "too long": set(TOO_LONG)}
    assert set(pairs.filter(quality.cut_off(pairs["text"]))["id"]) == set(CUT_OFF) | set(NOT_CUT_OFF)
    words = pairs.select("id", ratio=quality.words(pairs["text"]) / quality.words(pairs["human"]))
    assert with_flag(pairs, "too short") == set(words.filter(pl.col("ratio") < 0.5)["id"])


def test_cleaning_takes_off_the_announcements_and_nothing_else(pairs: pl.DataFrame) -> None:
    assert set(pairs.drop_nulls("opening")["id"]) == ANNOUNCED | {"MED-4133"}
    assert pairs["closing"].null_count() == pairs.height


def test_medical_english_is_in_one_script_and_no_refusal(pairs: pl.DataFrame) -> None:
    """Every human text against the next one: never the same document, always the same language."""
    human = pairs["human"]
    following = pl.concat([human.tail(-1), human.head(1)])
    found = flags(human, following, pl.Series(["stop"] * len(human))).to_list()
    assert not any({"other script", "refusal"} & set(listed) for listed in found)
    assert sum("copied" in listed for listed in found) == 1


def test_nothing_is_taken_off_what_people_wrote(pairs: pl.DataFrame, shared_data: Path) -> None:
    files = sorted((shared_data / "hc3").glob("*.jsonl"))
    rows = (orjson.loads(line) for path in files for line in path.read_bytes().splitlines())
    answers = [text.replace("\\n", "\n") for row in rows for text in row["human_answers"] or [] if text]
    assert len(answers) == 3277
    for text in (pairs["human"], load(shared_data / "scifact").docs["text"], pl.Series(answers)):
        parts = clean(text, text)
        assert parts["opening"].null_count() == parts["closing"].null_count() == len(text)
        assert parts["text"].equals(text.str.strip_chars())
    assert not quality.refusal(pl.Series(answers)).any()
