"""What is wrong with a rewrite: each fault by hand, and what is none because the source has it too."""

import hypothesis.strategies as st
import polars as pl
import pytest
from hypothesis import given, settings

from ranktilt.errors import UserError
from ranktilt.generation.flags import FLAGS, LIMITS, UNSPACED, RewriteLimits, flags
from ranktilt.text.quality import SCRIPTS

SOURCE = "Bees tell one another by a dance where the flowers grow, and the hive follows."
GOOD = "By dancing, bees let the whole hive know where it can find the flowers."


def series(*texts: str | None) -> pl.Series:
    return pl.Series("text", texts, dtype=pl.String)


def flagged(text: str | None, source: str | None = SOURCE, finish: str | None = "stop", **limits: float) -> list[str]:
    """Flags of one rewrite."""
    found = flags(series(source), series(text), series(finish), limits=RewriteLimits(**limits))
    return found.to_list()[0]  # type: ignore[no-any-return]


def numbered(count: int, name: str = "w") -> str:
    """So many different words and a full stop."""
    return " ".join(f"{name}{number}" for number in range(count)) + "."


def test_a_good_rewrite_has_no_flag() -> None:
    assert flagged(GOOD) == []


@pytest.mark.parametrize(
    "text",
    [
        "I'm sorry, but I cannot rewrite this text for you, since it is about bees.",
        "I must decline to rewrite this text about the dance of bees in a hive.",
        "I can't create content that describes how bees dance in order to find flowers.",
        "You haven't provided any text, so there is nothing that could be rewritten here.",
    ],
)
def test_a_refusal_is_flagged(text: str) -> None:
    assert flagged(text) == ["refusal"]


def test_a_source_that_reads_like_a_refusal_may_be_rewritten() -> None:
    source = "I'm sorry, but I cannot help you with the bees that live under your roof any longer."
    assert flagged("Unfortunately, I am unable to help you with the bees below your roof from now on.", source) == []


@pytest.mark.parametrize("text", ["", " \n\t", "\u00a0", "\x1c", None])
def test_an_empty_rewrite_is_only_that(text: str | None) -> None:
    assert flagged(text) == ["empty"]
    assert flagged(text, finish="length") == ["empty", "cut off"]
    assert flagged(text, finish="content_filter") == ["empty", "filtered"]


@pytest.mark.parametrize("text", [GOOD[:-1], f"{GOOD[:-1]},", f"{GOOD} And then", f"{GOOD[:-1]}:", f"{GOOD[:-1]}..."])
def test_a_rewrite_without_an_end_is_cut_off(text: str) -> None:
    assert flagged(text) == ["cut off"]


def test_a_rewrite_that_met_the_limit_is_cut_off_whatever_its_end() -> None:
    assert flagged(GOOD, finish="length") == ["cut off"]
    assert flagged(GOOD[:-1], SOURCE[:-1], finish="length") == ["cut off"]


@pytest.mark.parametrize("finish", [None, "stop", "eos", ""])
def test_other_ends_are_no_fault(finish: str | None) -> None:
    assert flagged(GOOD, finish=finish) == []


def test_a_source_without_an_end_asks_for_none() -> None:
    assert flagged(GOOD[:-1], SOURCE[:-1]) == []
    assert flagged(GOOD, SOURCE[:-1]) == []


def test_a_mark_of_a_truncated_abstract_is_looked_through() -> None:
    mark = "(ABSTRACT TRUNCATED AT 250 WORDS)"
    assert flagged(f"{GOOD} {mark}", f"{SOURCE} {mark}") == []
    assert flagged(GOOD[:-1], f"{SOURCE} {mark}") == ["cut off"]
    assert flagged(GOOD, f"{SOURCE} (abstract truncated)") == []


@pytest.mark.parametrize("mark", ["-", "*", "\u2022", "1."])
def test_a_list_without_punctuation_has_an_end(mark: str) -> None:
    text = f"Bees let the hive know:\n\n{mark} how far the flowers are\n{mark} where they are from the sun"
    assert flagged(text) == []
    assert flagged(text.replace("are\n", "are.\n")) == ["cut off"]
    assert flagged(f"{text},") == ["cut off"]
    assert flagged(f"{GOOD}\n\n{mark} where") == ["cut off"]


def test_a_filtered_answer_is_flagged() -> None:
    assert flagged(GOOD, finish="content_filter") == ["filtered"]


@pytest.mark.parametrize("text", [SOURCE, SOURCE.upper(), f"  {SOURCE} \n", SOURCE.replace(" ", "\n")])
def test_the_same_words_are_copied(text: str) -> None:
    assert flagged(text) == ["copied"]


@pytest.mark.parametrize(("changed", "copied"), [(0, True), (1, True), (2, False), (10, False)])
def test_nineteen_of_twenty_words_in_their_order_are_copied(changed: int, copied: bool) -> None:
    words = numbered(20).split()
    words[5 : 5 + changed] = [f"new{number}" for number in range(changed)]
    assert flagged(" ".join(words), numbered(20)) == (["copied"] if copied else [])


def test_the_share_is_of_the_words_of_the_source() -> None:
    assert flagged(f"{numbered(20)} {numbered(15, 'x')}", numbered(20)) == ["copied"]
    assert flagged(numbered(18), numbered(20)[:-1] + " end.") == []


def test_the_same_words_in_another_order_are_not_copied() -> None:
    words = numbered(20)[:-1].split()
    assert flagged(" ".join(words[10:] + words[:10]) + ".", numbered(20)) == []


def test_a_short_title_may_stand_in_its_rewrite() -> None:
    assert flagged("The bees of the south dance.", "Bees of the south dance.") == []
    assert flagged("Bees of the south dance.", "bees of  the South dance.") == ["copied"]


def test_eight_words_are_no_short_title() -> None:
    assert flagged("x " + numbered(7), numbered(7)) == []
    assert flagged("x " + numbered(8), numbered(8)) == ["copied"]


CHINESE = "蜜蜂通过舞蹈告诉同伴花朵在哪里。整个蜂群随后就跟着飞去。"
SPANISH = "Las abejas bailan para decir a la colmena dónde están las flores del valle."


@pytest.mark.parametrize(
    "text",
    [
        SPANISH,
        "Les abeilles dansent pour dire à la ruche où sont les fleurs de la vallée.",
        "Die Bienen tanzen, um dem Stock zu sagen, wo die Blumen des Tals sind.",
        "Пчёлы танцуют, чтобы улей знал, где в долине растут цветы для них.",
        "蜜蜂通过跳舞告诉蜂群花在哪里。",
    ],
)
def test_another_language_is_flagged_and_that_of_the_source_is_not(text: str) -> None:
    assert flagged(text) == ["other language"]
    assert flagged(GOOD, text) == ["other language"]
    assert "other language" not in flagged(text, text)


def test_a_spanish_source_may_be_rewritten_in_spanish() -> None:
    text = "Con su danza, las abejas dicen a todas dónde se encuentran las flores del valle."
    assert flagged(text, SPANISH) == []


@pytest.mark.parametrize("text", ["12.5 (3.4) 99 1 2 3 4 5 6 7.", "!? !? !? !? !? !? !? !? !?."])
def test_a_text_without_letters_is_in_no_language(text: str) -> None:
    assert "other language" not in flagged(text)
    assert "other language" not in flagged(GOOD, text)


def test_a_japanese_title_may_have_no_kana() -> None:
    assert flagged("ミツバチの行動の研究", "蜜蜂行動研究") == []
    assert flagged("蜜蜂行動研究史概論序説", "ミツバチの行動の研究") == []
    assert flagged("ミ" * 15 + "。", "蜂" * 16) == flagged("ミ" * 16, "蜂" * 16) == ["other language"]
    assert flagged("ミツバチは踊って花の場所を仲間に伝えます。みんながそれに続きます。", CHINESE) == ["other language"]


def test_the_script_is_that_of_most_letters() -> None:
    quoting = "Пчёлы танцуют (the bees see the sea, we agree) и улей знает, где цветут деревья и травы."
    assert flagged(quoting) == ["other language"]
    quoted = "By dancing (танцуют), the bees let the whole hive know where it can find flowers."
    assert flagged(quoted) == []
    assert flagged("by gym dry try why shy fly sky my", "BY GYM DRY TRY WHY SHY FLY SKY MYRRH") == []
    assert flagged("пчёлы", "bcdfg") == ["other language"]


def test_greek_letters_make_no_greek_text() -> None:
    text = "Bees dance for the hive: α = 0.3 ± 0.1, β = 2.4 µm, and γ is where it finds the flowers."
    assert flagged(text) == []


@pytest.mark.parametrize(
    ("words", "found"), [(20, []), (10, []), (9, ["too short"]), (40, []), (41, ["too long"]), (1, ["too short"])]
)
def test_half_to_twice_as_many_words_are_allowed(words: int, found: list[str]) -> None:
    assert flagged(numbered(words, "x"), numbered(20)) == found


def test_the_limits_of_length_can_be_set() -> None:
    assert flagged(numbered(19, "x"), numbered(20), shortest=1.0) == ["too short"]
    assert flagged(numbered(21, "x"), numbered(20), longest=1.0) == ["too long"]
    assert flagged(numbered(99, "x"), numbered(20), longest=5.0) == []


def test_the_limit_of_copying_can_be_set() -> None:
    text = f"{numbered(10)[:-1]} {numbered(10, 'x')}"
    assert flagged(text, numbered(20)) == []
    assert flagged(text, numbered(20), copied=0.5) == ["copied"]


@pytest.mark.parametrize(
    ("source", "few", "many"), [(1, 1, 16), (2, 1, 16), (3, 1, 16), (4, 1, 16), (6, 2, 16), (7, 3, 16), (8, 4, 16)]
)
def test_short_sources_may_grow_to_sixteen_words_and_lose_one_more(source: int, few: int, many: int) -> None:
    for words in range(1, 20):
        expected = ["too short"] if words < few else ["too long"] if words > many else []
        assert flagged(numbered(words, "x"), numbered(source)) == expected


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("飞舞的蜜蜂让整个蜂巢知道花开在什么地方。于是大家一起出发。", []),
        ("蜜蜂跳舞。", ["too short"]),
        ("蜂群里的蜜蜂会跳舞。" * 7, ["too long"]),
        (CHINESE, ["copied"]),
        (CHINESE.replace("告诉", "告诉 "), ["copied"]),
        (CHINESE.replace("整个", "而且整个"), ["copied"]),
    ],
)
def test_where_no_space_stands_between_words_letters_are_counted(text: str, found: list[str]) -> None:
    assert flagged(text, CHINESE) == found


def test_a_short_title_in_letters_is_one_of_fewer_than_sixteen() -> None:
    assert flagged("关于蜜蜂舞蹈的一篇简短的研究。", "蜜蜂舞蹈。") == []
    assert flagged("关于蜜蜂舞蹈。" * 5, "蜜蜂舞蹈。") == ["too long"]
    assert flagged("蜜" * 8, "蜂" * 16) == flagged("蜜" * 32, "蜂" * 16) == []
    assert flagged("蜜" * 7, "蜂" * 16) == ["too short"]
    assert flagged("蜜" * 6, "蜂" * 15) == flagged("蜜" * 32, "蜂" * 15) == []
    assert flagged("蜜" * 5, "蜂" * 15) == ["too short"]
    assert flagged("蜜" * 33, "蜂" * 15) == ["too long"]


def test_thai_is_counted_in_letters_too() -> None:
    source = "ผึ้งเต้นรำเพื่อบอกตำแหน่งของดอกไม้ในหุบเขา"
    assert flagged("ในหุบเขามีผึ้งที่เต้นรำบอกว่าดอกไม้อยู่ที่ใด", source) == []
    assert flagged("ผึ้งเต้นรำ", source) == ["too short"]


def test_lengths_are_not_held_against_another_kind_of_script() -> None:
    assert flagged(numbered(200, "x"), CHINESE) == ["other language"]
    assert flagged("蜂。", numbered(20)) == ["other language"]


def test_an_empty_source_has_no_length() -> None:
    assert flagged(GOOD, "") == flagged(GOOD, None) == []
    assert flagged("", "") == ["empty"]


BOILERPLATE = [
    "Sure! Here is the rewritten text: bees dance for the hive, where the flowers are.",
    "Rewritten text:\nbees dance for the hive, so that it knows where flowers are.",
    "Original text:\nBees dance.\nRewritten text:\nBees dance for all of the hive to see.",
    "Bees dance for the hive to see.\n\n**Rewritten Text:**\n\nBees dance for the hive.",
    "Bees dance for the hive.\n## Paraphrased version\nBees dance for all of the hive.",
    "In the rewritten passage, bees dance for the hive, to show it where flowers are.",
    "Bees, as I have rephrased it here, dance to show the hive where flowers are.",
    "Bees dance for the hive to show where flowers are, and all the others follow it there. As an AI model, I cannot.",
    "Bees dance for the hive to show it where flowers are. \u00a9 2023, [Your Name].",
    "[Insert text here] Bees dance for the hive to show it where flowers are today.",
    "<think>\nBees dance for the hive to show it where flowers are in the valley.",
    "I should keep it short.</think> Bees dance for the hive, where flowers are.",
    "Bees dance for the hive to show where flowers are. I hope this helps you!",
    "Bees dance for the hive, to show it where flowers are.\n\nNote: I changed the wording.",
]


DONE = ("rewritten", "re-written", "paraphrased", "rephrased", "re-phrased", "reworded", "re-worded")
NOUNS = ("text", "passage", "paragraph", "abstract", "version", "article", "document")
BOILERPLATE += [
    *(f"Bees dance for the hive.\n{done.title()} text:\nBees dance to show it flowers." for done in DONE),
    *(f"Bees dance for the hive.\nOriginal {noun}:\nBees dance to show it flowers." for noun in NOUNS),
    *(
        f"Bees dance for all of the hive to see, as {whose} rewritten {NOUNS[1]} tells."
        for whose in ("the", "my", "your", "this")
    ),
    *(f"Bees dance for all of the hive to see, as {i} rephrased for you here." for i in ("I", "I've", "I have also")),
    "Bees dance for all of the hive to see, as I rewrote for you right here.",
    "Bees dance for the hive to show where flowers are, and all the others follow it there. As an AI assistant, I say.",
    *(f"<{tag}>Bees dance for the hive to show it where flowers are now." for tag in ("thinking", "thought")),
    *(f"<{tag}>Bees dance for the hive to show it where flowers are now." for tag in ("reasoning", "reflection")),
    "Keep it short.</thinking> Bees dance for the hive, where flowers are.",
    *(
        f"Bees dance for the hive to show it where flowers are [{blank} here]."
        for blank in ("insert text", "rewritten text")
    ),
]


@pytest.mark.parametrize("text", BOILERPLATE)
def test_words_on_the_task_are_boilerplate(text: str) -> None:
    assert flagged(text) == ["boilerplate"]


@pytest.mark.parametrize(
    ("text", "source"),
    [
        (
            "Rewritten text: a poem in ten lines, on bees and what they tell one another.",
            "Rewritten text: ten lines on bees, a poem of what they say to each other.",
        ),
        (
            "In the rewritten version, the bees are gone and the hive is what is left of them.",
            "The author rephrased the poem: no bee is left in it, and the hive stands alone.",
        ),
        (
            "The old poem had bees in it.\nOriginal text:\nten lines on what bees tell all others.",
            "What the original version had were bees, in ten lines, on what they would tell.",
        ),
        (
            "Dear [Your Name], your bees dance for the hive to tell it where flowers are.",
            "Hello [your first name], the bees in your hive dance, to tell where flowers grow.",
        ),
        (
            "Bees dance to tell the hive where the flowers grow. I hope this helps you out.",
            "The bees are dancing for the hive: flowers grow in the valley. Hope this helps!",
        ),
    ],
)
def test_a_source_on_rewriting_may_be_rewritten(text: str, source: str) -> None:
    assert flagged(text, source) == []


@pytest.mark.parametrize("cue", ["rewriting", "he rewrote it", "a paraphrase", "rephrasing", "rewording", "Re-written"])
def test_a_source_that_speaks_of_rewriting_explains_it(cue: str) -> None:
    source = f"Bees tell one another by a dance where the flowers grow: {cue}, and the hive follows."
    assert flagged("In this rewritten text, bees let the hive know where it can find flowers.", source) == []


@pytest.mark.parametrize(
    "text",
    [
        "Bees have an original dance to tell the hive where to go for the flowers.",
        "Bees insert [sic] a pause in the dance that tells the hive where flowers are.",
        "Bees think; as an aide, I let the hive know where it can find the flowers.",
        "The dance, as a text: a line for the way to go, a circle for the flowers.",
    ],
)
def test_what_a_person_would_write_is_no_boilerplate(text: str) -> None:
    assert flagged(text) == []


def test_flags_come_in_their_order() -> None:
    text = "I'm sorry, but I cannot rewrite it. Original text:\nBees"
    assert flagged(text, f"{SOURCE} {SOURCE}", "length") == ["refusal", "cut off", "too short"]
    listed = flagged("Rewritten text: 蜂", "蜜蜂舞蹈。" * 20, "content_filter")
    assert listed == ["cut off", "filtered", "other language", "boilerplate"]
    assert listed == sorted(listed, key=FLAGS.index)


def test_rewrites_are_flagged_a_row_each_in_their_order() -> None:
    texts = [GOOD, "", SOURCE, SPANISH, "Bees.", GOOD[:-1], "蜂。"]
    expected = [[], ["empty"], ["copied"], ["other language"], ["too short"], ["cut off"], ["other language"]]
    found = flags(series(*[SOURCE] * 14), series(*texts * 2), series(*["stop"] * 14))
    assert found.to_list() == expected * 2
    assert found.dtype == pl.List(pl.String)
    assert found.name == "flags"


def test_no_rewrites_have_no_flags() -> None:
    found = flags(series(), series(), series())
    assert found.dtype == pl.List(pl.String)
    assert len(found) == 0


def test_an_unknown_end_of_all_is_no_fault() -> None:
    found = flags(series(SOURCE), series(GOOD), pl.Series([None]))
    assert found.to_list() == [[]]


@given(st.lists(st.sampled_from([GOOD, SOURCE, SPANISH, CHINESE, "", "Bees", "12 3", *BOILERPLATE]), max_size=6))
@settings(max_examples=40)
def test_no_row_looks_at_another(texts: list[str]) -> None:
    together = flags(series(*[SOURCE] * len(texts)), series(*texts), series(*["stop"] * len(texts)))
    assert together.to_list() == [flagged(text) for text in texts]


def test_the_three_series_must_be_as_long() -> None:
    message = r"flags: expected as many texts and ends as sources \(1\), got 2 and 1$"
    with pytest.raises(UserError, match=message):
        flags(series("a"), series("a", "b"), series("stop"))
    with pytest.raises(UserError, match=r"got 1 and 0$"):
        flags(series("a"), series("a"), series())


@pytest.mark.parametrize(("shortest", "longest"), [(-0.1, 2), (1, 1), (2, 0.5), (float("nan"), 2), (0.5, float("nan"))])
def test_limits_of_length_must_be_a_range(shortest: float, longest: float) -> None:
    with pytest.raises(
        UserError, match=r"^limits of the length ratio: expected 0 or more and the lower below the upper"
    ):
        RewriteLimits(shortest=shortest, longest=longest)


@pytest.mark.parametrize("copied", [0, -0.5, 1.01, float("nan")])
def test_the_limit_of_copying_must_be_a_share(copied: float) -> None:
    with pytest.raises(UserError, match=r"^limit 'copied': expected above 0 and up to 1, got"):
        RewriteLimits(copied=copied)


def test_the_limits_are_those_of_the_handbook() -> None:
    assert RewriteLimits(0.5, 2.0, 0.95) == LIMITS
    assert RewriteLimits(shortest=0, copied=1).shortest == 0


def test_scripts_without_spaces_are_scripts() -> None:
    assert set(UNSPACED) < set(SCRIPTS)
