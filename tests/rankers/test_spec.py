"""The text of a ranking stage: what it means, and that nothing one can type is lost."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ranktilt.errors import UserError
from ranktilt.rankers.spec import Stage, parse_stages
from tests.refusals import refused

NASTY = [
    "", " ", '"', "\\", '\\"', ">>", ">", "a>", ">b", "@3", "a@3", "(x=1)", "a,b", "a=b", "a b", " a ", "\n", "\t\x0b",
]  # fmt: skip
texts = st.one_of(st.sampled_from(NASTY), st.text(), st.text(alphabet='ab"\\()@,=> \n'))
names = st.from_regex(r"[A-Za-z_][\w.+-]*", fullmatch=True)
options = st.dictionaries(st.from_regex(r"[A-Za-z_]\w*", fullmatch=True), texts, max_size=3)
stages = st.builds(Stage, names, st.none() | texts, options, st.none() | st.integers(0, 10**9))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("bm25()", Stage("bm25")),
        ("  bm25 ( k1 = 0.9 , b = 0.4 ) @ 100  ", Stage("bm25", None, {"k1": "0.9", "b": "0.4"}, 100)),
        ("dense:~/models/modèle v1.5", Stage("dense", "~/models/modèle v1.5")),
        (r"replay:C:\runs\a.trec", Stage("replay", r"C:\runs\a.trec")),
        ('replay:"a (1)@2.trec"@50', Stage("replay", "a (1)@2.trec", {}, 50)),
        ('replay:"say \\"hi\\" >> out"', Stage("replay", 'say "hi" >> out')),
        ('x(note="a,b=c(d)",empty=)', Stage("x", None, {"note": "a,b=c(d)", "empty": ""})),
        ("bm25+_v.2-x", Stage("bm25+_v.2-x")),
    ],
)
def test_a_stage_is_read(text: str, expected: Stage) -> None:
    assert parse_stages(text) == [expected]


@pytest.mark.parametrize(
    ("stage", "text"),
    [
        (Stage("bm25"), "bm25"),
        (Stage("bm25", None, {"k1": "0.9", "b": "0.4"}, 100), "bm25(k1=0.9,b=0.4)@100"),
        (Stage("dense", "org/model"), "dense:org/model"),
        (Stage("replay", "a (1).trec", {}, 5), 'replay:"a (1).trec"@5'),
        (Stage("replay", "übung.trec"), "replay:übung.trec"),
        (Stage("x", "", {"o": ""}), 'x:""(o="")'),
        (Stage("x", "two\nlines"), r'x:"two\nlines"'),
    ],
)
def test_a_stage_prints_as_one_would_type_it(stage: Stage, text: str) -> None:
    assert str(stage) == text


@given(stage=stages)
@example(stage=Stage("replay", "run>"))
@example(stage=Stage("replay", '"@1'))
def test_what_is_printed_reads_back(stage: Stage) -> None:
    assert parse_stages(str(stage)) == [stage]


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("bm25>>", "''"), ("bm25@ten", "'bm25@ten'"), ("bm25(k1=0.9", "'bm25(k1=0.9'"), ("bm25:", "'bm25:'"),
        ("25bm", "'25bm'"), ("bm25 tfidf", "'bm25 tfidf'"), ('replay:"a', "'replay:\"a'"), ("bm25@1>>x(", "'x('"),
    ],
)  # fmt: skip
def test_what_does_not_follow_the_grammar_is_named(text: str, part: str) -> None:
    with pytest.raises(UserError) as caught:
        parse_stages(text)
    grammar = "name[:argument][(option=value,…)][@k], stages joined by >>"
    assert str(caught.value) == f"cannot read ranker {text!r} at {part}: expected {grammar}"


@pytest.mark.parametrize(("text", "piece"), [("bm25(k1)", "k1"), ("bm25(k1=1,)", ""), ("bm25(1k=2)", "1k=2")])
def test_an_option_without_name_or_value_is_named(text: str, piece: str) -> None:
    with refused(f"cannot read option {piece!r} of ranker {text!r}: expected option=value"):
        parse_stages(text)


def test_an_option_given_twice_is_refused() -> None:
    with refused("option 'b' of ranker 'bm25(b=0.1,b=0.2)' is given twice"):
        parse_stages("bm25(b=0.1,b=0.2)")


@pytest.mark.parametrize(
    "text",
    [
        "milvus:http://me:secret@host:19530",
        "milvus:http://me:secret@host(mode=bm25)",
        "bm25>>milvus:https://me:secret@host/x@",
        "milvus:http://me:secret@host(mode",
    ],
)
def test_a_password_in_an_address_is_shown_in_no_message(text: str) -> None:
    with pytest.raises(UserError) as caught:
        parse_stages(text)
    assert "secret" not in str(caught.value)
    assert "://…@" in str(caught.value)


def test_a_depth_before_the_options_is_told_to_stand_last() -> None:
    with pytest.raises(UserError, match=r"expected name.*stages joined by >>; @k stands last$"):
        parse_stages("bm25>>cross-encoder:m@5(limits=paper)")
