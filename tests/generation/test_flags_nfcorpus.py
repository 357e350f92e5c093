"""Flags and cleaning on real rewrites (Llama-2 of NFCorpus) and on texts by people: what is found was read by hand."""

import random
from collections import Counter
from pathlib import Path

import orjson
import polars as pl
import pytest

from ranktilt.datasets.load import load
from ranktilt.generation.cleaning import clean, remark
from ranktilt.generation.flags import flags
from ranktilt.text import quality

pytestmark = pytest.mark.data

# "here is my attempt to rewrite the given text:\nRewritten Text:" in front of a rewrite.
ANNOUNCED = {
    *("MED-1129", "MED-1161", "MED-1178", "MED-1277", "MED-1780", "MED-2344", "MED-2783", "MED-2812", "MED-2814"),
    *("MED-3143", "MED-3294", "MED-3450", "MED-3962", "MED-4178", "MED-4700", "MED-727", "MED-733"),
}
# The others with words on the task.
TALKING = {
    "MED-4133": "begins with 'Original Text:', and gives source and rewrite by turns",
    "MED-2033": "two labels 'Rewritten Text:' within, and a second rewrite after each",
    "MED-2445": "ends with '© 2023, [Your Name].'",
    "MED-2489": "ends with 'In this rewritten text, I've changed the wording to …'",
    "MED-1393": "ends with a bare 'Note:'",
    "MED-2490": "ends with a bare 'Note:'",
    "MED-2496": "ends with a bare 'Note:'",
}
# Of the ten texts without an end, six are cut off; the other four end as their sources do.
CUT_OFF = {
    "MED-1393": "a bare 'Note:'",
    "MED-2490": "a bare 'Note:'",
    "MED-2496": "a bare 'Note:'",
    "MED-1657": "hundreds of empty lines and 'MS'",
    "MED-2890": "'Here are five arguments for this connection:', and none",
    "MED-957": "in the middle of a word, '… in a repeated-ins'",
}
NOT_CUT_OFF = {
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
    """Number, human text, rewrite and its flags, by number."""
    collection = load(shared_data / "cocktail-nfcorpus")
    human, llama = collection.sources
    texts = collection.docs.select("id", "text")
    found = collection.pairs(human, llama).select("a", "b").join(texts, left_on="a", right_on="id")
    found = found.join(texts, left_on="b", right_on="id", suffix="_llama")
    found = found.select(pl.col("a").str.extract(r"(MED-\d+)").alias("id"), human="text", text="text_llama").sort("id")
    stop = pl.Series(["stop"] * found.height)
    return found.with_columns(flags(found["human"], found["text"], stop))


def with_flag(pairs: pl.DataFrame, flag: str) -> set[str]:
    return set(pairs.filter(pl.col("flags").list.contains(flag))["id"])


def test_the_whole_side_in_figures(pairs: pl.DataFrame) -> None:
    assert pairs.height == 3633
    counts = Counter(flag for listed in pairs["flags"].to_list() for flag in listed)
    assert counts == {"too short": 159, "boilerplate": 24, "cut off": 6, "copied": 5, "too long": 2}
    assert int((pairs["flags"].list.len() > 0).sum()) == 191


@pytest.mark.parametrize(
    ("flag", "expected"),
    [
        ("boilerplate", ANNOUNCED | set(TALKING)),
        ("cut off", set(CUT_OFF)),
        ("copied", set(COPIED)),
        ("too long", set(TOO_LONG)),
        ("other language", set()),
        ("refusal", set()),
    ],
)
def test_the_faults_are_those_found_by_reading(pairs: pl.DataFrame, flag: str, expected: set[str]) -> None:
    assert with_flag(pairs, flag) == expected


def test_every_text_without_an_end_is_accounted_for(pairs: pl.DataFrame) -> None:
    unended = set(pairs.filter(quality.cut_off(pairs["text"]))["id"])
    assert unended == set(CUT_OFF) | set(NOT_CUT_OFF)
    assert len(ANNOUNCED) == 17


def test_too_short_are_summaries_of_fewer_than_half_the_words(pairs: pl.DataFrame) -> None:
    words = pairs.select("id", ratio=quality.words(pairs["text"]) / quality.words(pairs["human"]))
    assert with_flag(pairs, "too short") == set(words.filter(pl.col("ratio") < 0.5)["id"])


# All that is flagged in a seeded sample of 200. There is no false alarm among them; up to five would be borne.
SUMMARISED = (
    *("MED-1253", "MED-1530", "MED-2992", "MED-3220", "MED-3945", "MED-4094"),
    *("MED-4223", "MED-4411", "MED-4425", "MED-4533", "MED-5167", "MED-870"),
)
SAMPLED = {
    "MED-1129": ["boilerplate"],  # announced
    "MED-1178": ["boilerplate"],  # announced
    "MED-727": ["boilerplate"],  # announced
    "MED-1657": ["cut off"],  # empty lines and 'MS'
    "MED-928": ["copied"],  # small changes in five places
} | {number: ["too short"] for number in SUMMARISED}
FALSE_ALARMS: dict[str, str] = {}


def test_a_sample_of_200_has_the_flags_that_were_read(pairs: pl.DataFrame) -> None:
    sample = random.Random(5).sample(sorted(pairs["id"]), 200)
    found = {row["id"]: row["flags"] for row in pairs.iter_rows(named=True) if row["id"] in sample and row["flags"]}
    assert found == SAMPLED
    assert len(FALSE_ALARMS) <= 5


def test_cleaning_takes_off_the_announcements_and_the_remarks_and_nothing_else(pairs: pl.DataFrame) -> None:
    parts = pairs.select("id").hstack(clean(pairs["text"], pairs["human"]))
    assert set(parts.drop_nulls("opening")["id"]) == ANNOUNCED | {"MED-4133"}
    closing = dict(parts.drop_nulls("closing").select("id", "closing").iter_rows())
    assert {number: closing[number] for number in ("MED-1393", "MED-2490", "MED-2496")} == dict.fromkeys(
        ("MED-1393", "MED-2490", "MED-2496"), "Note:"
    )
    assert closing.keys() == {"MED-1393", "MED-2490", "MED-2496", "MED-2489"}
    assert closing["MED-2489"].startswith("In this rewritten text, I've changed the wording")


def test_most_of_what_is_cleaned_has_no_flag_afterwards(pairs: pl.DataFrame) -> None:
    stop = pl.Series(["stop"] * pairs.height)
    after = pairs.select("id", flags(pairs["human"], clean(pairs["text"], pairs["human"])["text"], stop))
    assert with_flag(after, "boilerplate") == {"MED-4133", "MED-2033", "MED-2445"}
    assert with_flag(after, "cut off") == {"MED-1657", "MED-2890", "MED-957"}
    assert with_flag(after, "too long") == {"MED-4438"}


def test_medical_english_is_in_no_other_language(pairs: pl.DataFrame) -> None:
    """Every human text against the next one: never the same document, always the same language."""
    human = pairs["human"]
    following = pl.concat([human.tail(-1), human.head(1)])
    found = flags(human, following, pl.Series(["stop"] * len(human))).to_list()
    assert not any({"other language", "refusal", "boilerplate"} & set(listed) for listed in found)
    assert sum("copied" in listed for listed in found) == 1


def test_nothing_is_taken_off_human_abstracts(pairs: pl.DataFrame, shared_data: Path) -> None:
    scifact = load(shared_data / "scifact").docs["text"]
    for text in (pairs["human"], scifact):
        parts = clean(text, pl.Series([""] * len(text)))
        assert parts["opening"].null_count() == parts["closing"].null_count() == len(text)
        assert parts["text"].equals(text.str.strip_chars())


def answers(folder: Path, side: str) -> pl.Series:
    """Return all answers of one side of HC3; its line breaks are written as backslash and n."""
    lines = (line for path in sorted(folder.glob("*.jsonl")) for line in path.read_bytes().splitlines())
    return pl.Series([text.replace("\\n", "\n") for line in lines for text in orjson.loads(line)[side] or [] if text])


def test_human_answers_to_questions_keep_their_courtesies(shared_data: Path) -> None:
    human = answers(shared_data / "hc3", "human_answers")
    assert len(human) == 3277
    kept = clean(human, human)
    assert kept["opening"].null_count() == kept["closing"].null_count() == len(human)
    assert kept["text"].equals(human.str.strip_chars())
    assert {*map(tuple, flags(human, human, pl.Series(["stop"] * len(human))))} == {("copied",)}
    # Without a source to compare with, the closing words of 38 answers by doctors are those of a model.
    taken = clean(human, pl.Series([""] * len(human)))
    assert taken["opening"].null_count() == len(human)
    closing = taken["closing"].drop_nulls()
    assert len(closing) == 38
    assert closing.str.contains(
        "(?i)let me know|hope (?:this|it) helps|happy to help|feel free to (?:ask|contact)"
    ).all()
    assert not quality.refusal(human).any()


def test_a_models_answers_lose_their_courtesies_only(shared_data: Path) -> None:
    model = answers(shared_data / "hc3", "chatgpt_answers")
    closing = clean(model, pl.Series([""] * len(model)))["closing"].drop_nulls()
    assert len(model) == 5722
    assert closing.str.contains(r"(?i)let me know|i hope this helps|free to ask|hesitate to|can help").all()
    assert [remark(text) for text in closing] == closing.to_list()
    assert len(closing) == 36
