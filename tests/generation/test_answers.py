"""What a model is asked, what is taken off its answers, and what is wrong with the rest."""

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ranktilt.data.collection import Collection
from ranktilt.data.loading.load import load
from ranktilt.data.queries import read_queries
from ranktilt.data.text import quality
from ranktilt.errors import UserError
from ranktilt.generation.answer.answer import answer
from ranktilt.generation.answer.save import save_answered
from ranktilt.generation.checks import (
    RewriteLimits,
    check_answer,
    check_text,
    check_title,
    clean,
    flags,
)
from ranktilt.generation.settings import ATTEMPTS_PER_ANSWER, Answering, Rewriting
from ranktilt.generation.templates import (
    ANSWER_PROMPTS,
    PROMPTS,
    QUERY_SLOTS,
    TITLE,
    PromptTemplate,
    answer_template,
    template,
)
from tests.generation.scripted import Scripted, humans
from tests.toy import jsonl, write


def test_each_prompt_ends_with_the_text_and_the_default_is_the_papers() -> None:
    for name in (*PROMPTS, TITLE):
        prompt = template(name)
        assert (prompt.name, prompt.path, prompt.fields) == (name, "", ("text",))
        assert prompt.render("@@@").partition("@@@")[1:] == ("@@@", "")
    assert (
        template("paper").render("Apples are red.")
        == "Please rewrite the following text: Apples are red."
    )
    assert template("summarise").limits["shortest"] < 0.34
    assert template("polish").limits["copied"] == 1
    assert template("paper").limits == {}


@given(st.text(), st.text())
@example("body {x}", "{text}")
def test_a_document_is_put_in_to_the_letter(text: str, title: str) -> None:
    prompt = PromptTemplate(name="mine", text="a{{{title}}}b{text}c{text}")
    assert prompt.render(text, title) == f"a{{{title}}}b{text}c{text}"
    assert prompt.fields == ("text", "title")


def mine(text: str, **options: Any) -> PromptTemplate:
    return PromptTemplate(name="mine", text=text, **options)


RATIO, COPIES = (
    "limits of the length ratio: expected 0 or more",
    "limit 'copied': expected above 0 and up to 1, got",
)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            partial(mine, "{{text}} {title}"),
            "prompt 'mine': expected {text}, where the document's text goes, and fou",
        ),
        (
            partial(mine, "{text} {qrels}"),
            "prompt 'mine': {qrels} cannot be filled in, only {text} and {title} can; w",
        ),
        (
            partial(mine, "{query} {text}", slots=QUERY_SLOTS),
            "prompt 'mine': {text} cannot be filled in, only {query}",
        ),
        (partial(mine, "{text!r:>9}"), "prompt 'mine': {text!r:>9} cannot be filled in"),
        (partial(mine, "{} {text}"), "prompt 'mine': {} cannot be filled in"),
        (
            partial(mine, "{text} {"),
            "prompt 'mine': unmatched brace (Single '{' encountered in format string); write ",
        ),
        (partial(Answering, n=0), "generation: expected n of at least 1, got 0"),
        (
            partial(Answering, n=2, temperatures=(0.0,)),
            "at temperature 0 a model repeats itself: 2 documents per que",
        ),
        (
            partial(Rewriting, attempts=0),
            "generation: expected attempts of at least 1 and at most 1,000, got 0",
        ),
        (
            partial(Rewriting, attempts=1001),
            "generation: expected attempts of at least 1 and at most 1,000, got 1001",
        ),
        (partial(Rewriting, temperatures=()), "expected a temperature, got none"),
        (
            partial(Rewriting, temperatures=(0.2, 1.0, 0.2)),
            "temperature 0.2 is given twice; each temperature makes",
        ),
        (
            partial(Rewriting, temperatures=(0, 1), source="x"),
            "2 temperatures make 2 sources, and one name was given:",
        ),
        (partial(Rewriting, source=" "), "expected a name for the source, got an empty one"),
        (partial(RewriteLimits, shortest=-0.1), RATIO),
        (partial(RewriteLimits, shortest=1, longest=1), RATIO),
        (partial(RewriteLimits, longest=float("nan")), RATIO),
        (partial(RewriteLimits, copied=0), COPIES),
        (partial(RewriteLimits, copied=1.01), COPIES),
    ],
)
def test_prompts_and_settings_that_cannot_be_are_refused(
    make: Callable[[], object], message: str
) -> None:
    with pytest.raises(UserError, match="^" + re.escape(message)):
        make()


def test_a_file_is_named_after_its_stem_a_prompts_name_wins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("my own.txt").write_bytes("\ufeffSay it anew:\r\n{text}\r\n".encode())
    prompt = template(Path("my own.txt"))
    assert (prompt.name, prompt.text, prompt.path) == (
        "my_own",
        "Say it anew:\n{text}",
        "my own.txt",
    )
    Path("paper").write_text("Mine: {text}", encoding="utf-8")
    assert template("paper").render("x") != template("./paper").render("x") == "Mine: x"


def test_a_file_that_is_no_prompt_is_named(tmp_path: Path) -> None:
    for file, message in {
        write(tmp_path / "a.txt", b"no place"): "expected {text}, where",
        write(
            tmp_path / "b.txt", b"\xff{text}"
        ): "expected a prompt as UTF-8 text: invalid at byte 0",
        tmp_path / "c.txt": "cannot be read: No such file or directory",
    }.items():
        with pytest.raises(UserError, match=f"^{file}: {message}"):
            template(file)


pytestmark = pytest.mark.usefixtures("own_cache")


def says(prompt: str, times: int) -> str:
    return f"Answer {times} to what was asked, in {len(prompt)} letters."


def test_a_prompt_holds_the_query_as_it_is_and_nothing_else() -> None:
    for name in ANSWER_PROMPTS:
        assert answer_template(name).render("what {is} that?").endswith("what {is} that?")
    llm = Scripted(says)
    answer(humans(), llm, Answering(prompt="question"))
    assert llm.prompts == ["vitamin c cold", "river mouth"]


@pytest.mark.parametrize(
    ("query", "text", "finish", "flags"),
    [
        ("who wrote it?", "Someone", "stop", []),
        ("who wrote it?", "A text that ends in the middle of", "length", ["cut off"]),
        ("who wrote it?", " Who wrote it? ", "stop", ["copied"]),
        (
            "who wrote it and when was it written, and for whom?",
            "Who wrote it and when was it written, and for whom? It was Ann who wrote it.",
            "stop",
            [],
        ),
        ("who wrote it?", " \n", "content_filter", ["empty", "filtered"]),
        ("who wrote it?", "I'm sorry, but I cannot answer that.", "stop", ["refusal"]),
        (
            "what is the name of the one who wrote it",
            "这是我们都在问的问题。",
            "stop",
            ["other script"],
        ),
    ],
)
def test_answers_are_checked_without_regard_to_length(
    query: str, text: str, finish: str, flags: list[str]
) -> None:
    checked = check_answer(
        *(pl.Series([value], dtype=pl.String) for value in (query, text, finish))
    )
    assert checked["flags"].to_list() == [flags]


def test_what_a_model_says_around_an_answer_is_taken_off() -> None:
    for opening in (
        "Here's a detailed answer to your question:\n",
        "**Answer:** ",
        "Passage: ",
        "",
    ):
        checked = check_answer(
            pl.Series(["bees"]), pl.Series([f"{opening}Bees see colours."]), pl.Series(["stop"])
        )
        assert checked.select("text", "flags", "opening").rows() == [
            ("Bees see colours.", [], opening.strip() or None)
        ]


def test_a_flagged_answer_is_asked_for_again_and_what_is_made_is_read_back(tmp_path: Path) -> None:
    llm = Scripted(
        lambda prompt, times: "" if times < 3 and "river" in prompt else says(prompt, times)
    )
    answered = answer(humans(), llm, Answering(attempts=3))
    assert len(llm.prompts) == 4
    assert answered.left_out.height == 0
    assert answered.answers.filter(pl.col("flags").list.len() > 0).height == 2
    assert answered.collection.ids.to_list() == ["q1-tiny-1", "q2-tiny-1"]
    rows = [{"_id": "a", "text": "one thing", "domain": "x"}, {"_id": "b", "text": "another"}]
    collection = read_queries(write(tmp_path / "queries.jsonl.gz", jsonl(rows)))
    answered = answer(collection, Scripted(says), Answering())
    save_answered(answered, tmp_path / "out")
    back = load(tmp_path / "out")
    assert back == answered.collection
    assert back.docs["domain"].to_list() == ["x", None]
    assert back.docs["temperature"].to_list() == [0.2, 0.2]


def test_queries_of_one_text_share_an_answer_and_temperatures_make_sources() -> None:
    queries = pl.DataFrame({"id": ["a", "b"], "text": ["the same", "the same"]})
    empty = pl.DataFrame(schema={"id": pl.String, "text": pl.String})
    qrels = pl.DataFrame(schema={"query_id": pl.String, "doc_id": pl.String, "grade": pl.Int32})
    llm = Scripted(says)
    answered = answer(
        Collection(empty, queries, qrels), llm, Answering(n=2, temperatures=(0.5, 1.0), seed=4)
    )
    assert len(llm.prompts) == 4, "two draws at two temperatures"
    assert set(llm.seeds) == {4, 4 + ATTEMPTS_PER_ANSWER}
    assert answered.collection.sources == ("tiny-tmp0.5", "tiny-tmp1.0")
    docs = answered.collection.docs.filter(source="tiny-tmp0.5")
    assert docs["id"].to_list() == [f"{q}-tiny-tmp0.5-{n}" for q in "ab" for n in (1, 2)]
    assert docs["text"][0] == docs["text"][2] != docs["text"][1]


SOURCE = "Bees tell one another by a dance where the flowers grow, and the hive follows."
GOOD = "By dancing, bees let the whole hive know where it can find the flowers."
CHINESE = "蜜蜂通过舞蹈告诉同伴花朵在哪里。整个蜂群随后就跟着飞去。"


def series(*texts: str | None) -> pl.Series:
    return pl.Series("text", texts, dtype=pl.String)


def cleaned(raw: str | None, source: str | None = SOURCE) -> tuple[str, str | None, str | None]:
    """Text, opening and closing of one answer."""
    return clean(series(raw), series(source)).row(0)  # type: ignore[return-value]


def flagged(
    text: str | None, source: str | None = SOURCE, finish: str | None = "stop", **limits: float
) -> list[str]:
    flag_lists = flags(series(source), series(text), series(finish), limits=RewriteLimits(**limits))
    return flag_lists.to_list()[0]  # type: ignore[no-any-return]


def numbered(count: int, name: str = "w") -> str:
    return " ".join(f"{name}{number}" for number in range(count)) + "."


def test_an_opening_a_thought_and_a_wrapper_are_taken_off_and_what_the_source_has_stays() -> None:
    """`quality.opening` has tests of its own."""
    for before, after in (
        ("<think>\nHm.\n</think>\n\nHere is the rewritten text:\n\n", ""),
        ('"', '"'),
        ("\u00ab ", " \u00bb"),
        ("Here is the rewritten text:\n\n```text\n", "\n```"),
        ("<think>Hm.</think>Rewritten text: \u201c", "\u201d"),
        ("First the bees, then the hive.\n</think>\n", ""),
        ("<|channel|>analysis<|message|>Hm.<|end|><|channel|>final<|message|>", "<|return|>"),
        ("<reasoning>Hm.</reasoning><answer>", "</answer>"),
        ("**", "**"),
        ('Final answer:\n```\n"', '"\n```\n<|im_end|>'),
        ('{"rewritten_text": "', '"}'),
        ("\ufeff", "</s>"),
    ):
        assert cleaned(before + GOOD + after) == (GOOD, before.strip(), after.strip() or None)
    for raw, source in (
        (f'"{GOOD}"', f'"{SOURCE}"'),
        (f"```\n{GOOD}\n```", f"```\n{SOURCE}\n```"),
        (f"Rewritten text: {GOOD}", f"Rewritten text: {SOURCE}"),
        (f'"Bees" is a word. {GOOD} So is "hive"', SOURCE),
        (f"```\n{GOOD}\n```\nand\n```\n{GOOD}\n```", SOURCE),
        (f"{GOOD}\n\n```json\n{{}}\n```", SOURCE),
        (f"<answer> and {GOOD} and </answer>, <think> and </think>", SOURCE),
        (f"**Bees.** {GOOD} **Hives.**", SOURCE),
        (f"<answer>{GOOD}</answer>", f"<answer>{SOURCE}</answer>"),
        (f'{{"text": "{GOOD}"}}', f'{{"text": "{SOURCE}"}}'),
        (f"It is closed by </think>, as {GOOD}", f"It is closed by </think>. {SOURCE}"),
        (f"Final answer: {GOOD}", f"Final answer: {SOURCE}"),
        (f"Results: {GOOD}", SOURCE),
        ("Sure! Here is the rewritten text:", SOURCE),
        ('"..."', SOURCE),
    ):
        assert cleaned(f" {raw}\n", source) == (raw, None, None)
        assert cleaned(None) == cleaned(" \n", None) == ("", None, None)


def test_reasoning_alone_is_an_empty_text() -> None:
    for raw in (
        f"<think>\nThe user wants {GOOD}",
        f"<think>{GOOD}</think>",
        f"{GOOD}</think>",
        f"analysis{GOOD}",
    ):
        assert cleaned(raw) == ("", raw, None)
        assert check_text(RewriteLimits())(series(SOURCE), series(raw), series("length"))[
            "flags"
        ].to_list() == [["empty", "cut off"]]


PIECES = st.sampled_from(
    [GOOD, "Rewritten text:", "Certainly!", "```", "```\n", '"', "<think>", "</think>", "\n"]
)


@given(st.lists(PIECES, max_size=9).map(" ".join), st.sampled_from([SOURCE, ""]))
@settings(max_examples=100)
def test_the_parts_make_up_the_answer(raw: str, source: str) -> None:
    text, opening, closing = cleaned(raw, source)
    assert "".join(f"{opening or ''}{text}{closing or ''}".split()) == "".join(raw.split())
    assert text == text.strip()
    has_reasoning = "think>" in raw
    assert any(map(str.isalnum, text)) or not any(map(str.isalnum, raw)) or has_reasoning


def test_a_good_rewrite_has_no_flag_and_refusals_empty_ones_and_ends_cut_off_have() -> None:
    assert (
        flagged(GOOD)
        == flagged(GOOD, finish=None)
        == flagged(GOOD, "")
        == flagged(GOOD, None)
        == []
    )
    assert flagged(
        "I'm sorry, but I cannot rewrite this text for you, since it is about bees."
    ) == ["refusal"]
    source = "I'm sorry, but I cannot help you with the bees that live under your roof any longer."
    assert (
        flagged(
            "Sorry, but I can't help you with bees below your roof from now on, or ever.", source
        )
        == []
    )
    for text in ("", " \n\t", "\u00a0", None):
        assert flagged(text) == ["empty"]
        assert flagged(text, finish="length") == ["empty", "cut off"]
        assert flagged(text, finish="content_filter") == ["empty", "filtered"]
    assert flagged(GOOD, finish="length") == ["cut off"]
    assert (
        flagged(GOOD[:-1])
        == flagged(f"{GOOD} And then")
        == flagged(f"{GOOD[:-1]}...")
        == ["cut off"]
    )
    assert flagged(GOOD[:-1], SOURCE[:-1]) == []
    for mark in ("-", "\u2022", "1."):
        text = (
            f"Bees let the hive know:\n\n{mark} how far the flowers are\n"
            f"{mark} where they are from the sun"
        )
        assert flagged(text) == []
        assert flagged(text.replace("are\n", "are.\n")) == flagged(f"{text},") == ["cut off"]


def test_nineteen_of_twenty_words_in_their_order_are_copied_but_for_a_short_title() -> None:
    for changed, flags_of in ((0, ["copied"]), (1, ["copied"]), (2, []), (10, [])):
        words = numbered(20).split()
        words[5 : 5 + changed] = [f"new{number}" for number in range(changed)]
        assert flagged(" ".join(words), numbered(20)) == flags_of
        assert flagged(" ".join(words).upper(), numbered(20), copied=0.5) == ["copied"]
    assert flagged("x " + numbered(7), numbered(7)) == []
    assert flagged("x " + numbered(8), numbered(8)) == ["copied"]
    assert flagged("bees of  the South dance.", "Bees of the south dance.") == ["copied"]


def test_another_script_is_flagged_and_without_spaces_letters_are_counted() -> None:
    russian = (
        "Пчёлы танцуют (the bees see the sea, we agree) и улей знает, где цветут деревья и травы."
    )
    spanish = "Las abejas bailan para decir a la colmena dónde están las flores del valle."
    for pair in ((russian, SOURCE), (GOOD, russian), ("蜜蜂通过跳舞告诉蜂群花在哪里。", SOURCE)):
        assert flagged(*pair) == ["other script"]
    assert (
        flagged(spanish)
        == flagged("α = 0.3, β = 2.4, and bees dance to tell where the flowers are.")
        == []
    )
    assert "other script" not in flagged("12.5 (3.4) 99 1 2 3 4 5 6 7.")
    assert flagged("ミツバチの行動の研究", "蜜蜂行動研究") == []
    assert flagged("飞舞的蜜蜂让整个蜂巢知道花开在什么地方。于是大家一起出发。", CHINESE) == []
    assert flagged("蜜蜂跳舞。", CHINESE) == ["too short"]
    assert flagged("蜂群里的蜜蜂会跳舞。" * 7, CHINESE) == ["too long"]
    assert flagged(CHINESE.replace("告诉", "告诉 ").replace("整个", "而且整个"), CHINESE) == [
        "copied"
    ]
    assert flagged(numbered(200, "x"), CHINESE) == ["other script"], "lengths are of other things"


@pytest.mark.parametrize(
    ("source", "few", "many"),
    [(20, 10, 40), (1, 1, 16), (4, 1, 16), (6, 2, 16), (7, 3, 16), (8, 4, 16)],
)
def test_half_to_twice_as_many_words_are_allowed_and_for_short_sources_more(
    source: int, few: int, many: int
) -> None:
    for words in {1, few - 1, few, many, many + 1} - {0}:
        expected = []
        if words < few:
            expected = ["too short"]
        elif words > many:
            expected = ["too long"]
        assert flagged(numbered(words, "x"), numbered(source)) == expected
        assert flagged(numbered(words, "x"), numbered(source), shortest=0, longest=20) == []


def test_titles_are_flagged_for_what_a_title_can_lack() -> None:
    for raw, finish, expected in (
        ("The use of apples in adults after breast cancer", "stop", []),
        ('"Apples"', "stop", []),
        ("", "content_filter", ["empty", "filtered"]),
        ("I'm sorry, but I cannot rewrite this title.", "stop", ["refusal"]),
        ("On the apple and", "length", ["cut off"]),
        ("One title\nOther title", "stop", ["too long"]),
        ("word " * 80, "stop", ["too long"]),
        ("苹果", "stop", ["other script"]),
    ):
        assert check_title(series("Apples"), series(raw), series(finish))["flags"].to_list() == [
            expected
        ]


# "here is my attempt to rewrite the given text:\nRewritten Text:" in front of a rewrite.
ANNOUNCED = {
    *(
        "MED-1129",
        "MED-1161",
        "MED-1178",
        "MED-1277",
        "MED-1780",
        "MED-2344",
        "MED-2783",
        "MED-2812",
        "MED-2814",
    ),
    *("MED-3143", "MED-3294", "MED-3450", "MED-3962", "MED-4178", "MED-4700", "MED-727", "MED-733"),
}
# A bare 'Note:', hundreds of empty lines and 'MS', and 'Here are five arguments for this
# connection:' with none.
CUT_OFF = {"MED-1393", "MED-2490", "MED-2496", "MED-1657", "MED-2890"}
# These end as their sources do: 'in a repeated-ins' before '(ABSTRACT TRUNCATED)', a trial's
# number, '© 2023', a list.
NOT_CUT_OFF = {"MED-957", "MED-2362", "MED-3482", "MED-3532", "MED-4033"}
# Two to the letter; of 268 words 258 are left; a few commas more; small changes in five places of
# 351 words.
COPIED = {"MED-2724", "MED-4883", "MED-4075", "MED-821", "MED-928"}
# A sentence and its remark; 158 words made into 426, with a summary of itself.
TOO_LONG = {"MED-2489", "MED-4438"}


@pytest.fixture(scope="module")
def pairs(shared_data: Path) -> pl.DataFrame:
    """Number, human text, rewrite as it came, and what the check of a rewrite makes of it."""
    collection = load(shared_data / "cocktail-nfcorpus")
    human, llama = collection.sources
    texts = collection.docs.select("id", "text")
    twins = collection.pairs(human, llama).select("a", "b").join(texts, left_on="a", right_on="id")
    twins = twins.join(texts, left_on="b", right_on="id", suffix="_llama")
    twins = twins.select(
        pl.col("a").str.extract(r"(MED-\d+)").alias("id"), human="text", raw="text_llama"
    )
    stop = pl.Series(["stop"] * twins.height)
    return twins.hstack(check_text(RewriteLimits())(twins["human"], twins["raw"], stop))


@pytest.mark.data
def test_the_faults_are_those_found_by_reading_and_medical_english_is_in_one_script(
    pairs: pl.DataFrame,
) -> None:
    flagged = pairs.select("id", "flags").explode("flags").drop_nulls()
    ids_by_flag = {
        flag: set(part["id"])
        for (flag,), part in flagged.partition_by("flags", as_dict=True).items()
    }
    short = ids_by_flag.pop("too short")
    assert ids_by_flag == {"cut off": CUT_OFF, "copied": COPIED, "too long": TOO_LONG}
    assert set(pairs.filter(quality.cut_off(pairs["text"]))["id"]) == CUT_OFF | NOT_CUT_OFF
    words = pairs.select("id", ratio=quality.words(pairs["text"]) / quality.words(pairs["human"]))
    assert short == set(words.filter(pl.col("ratio") < 0.5)["id"])
    assert (pairs.height, len(short)) == (3633, 159)
    assert set(pairs.drop_nulls("opening")["id"]) == ANNOUNCED | {"MED-4133"}
    assert pairs["closing"].null_count() == pairs.height
    # Every human text against the next one: never the same document, always the same language.
    human = pairs["human"]
    following = pl.concat([human.tail(-1), human.head(1)])
    flag_lists = flags(human, following, pl.Series(["stop"] * len(human))).to_list()
    assert not any({"other script", "refusal"} & set(listed) for listed in flag_lists)
    assert sum("copied" in listed for listed in flag_lists) == 1


@pytest.mark.data
def test_nothing_is_taken_off_what_people_wrote(pairs: pl.DataFrame, shared_data: Path) -> None:
    files = sorted((shared_data / "hc3").glob("*.jsonl"))
    rows = (orjson.loads(line) for path in files for line in path.read_bytes().splitlines())
    answers = [
        text.replace("\\n", "\n") for row in rows for text in row["human_answers"] or [] if text
    ]
    assert len(answers) == 3277
    for text in (pairs["human"], load(shared_data / "scifact").docs["text"], pl.Series(answers)):
        parts = clean(text, pl.Series([""] * len(text)))
        assert parts["opening"].null_count() == parts["closing"].null_count() == len(text)
        assert parts["text"].equals(text.str.strip_chars())
    assert not quality.refusal(pl.Series(answers)).any()
