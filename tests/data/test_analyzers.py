"""Text to terms: Lucene's English chain, the papers' NLTK chain, Snowball's languages."""

import sys

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranktilt.data.text import analyzers as analyze
from ranktilt.data.text.analyzers import TokenCodes, Vocabulary, analyzer, analyzers, stop_words
from ranktilt.errors import MissingExtra, UserError
from ranktilt.rankers.lexical.bm25 import BM25
from tests.toy import toy


def split(text: str, name: str = "english") -> list[str]:
    """Return the tokens of a text, before any is changed or dropped."""
    tokens: list[str] = analyzer(name).split(pl.Series([text], dtype=pl.String))[0].to_list()
    return tokens


def words(text: str, name: str = "english") -> list[str]:
    return [term for term in analyzer(name).normalize(split(text, name)) if term is not None]


def nltk_tokens(text: str) -> list[str]:
    """Split a text by NLTK itself, sentence by sentence."""
    nltk = pytest.importorskip("nltk")
    tokens = list[str]()
    for sentence in nltk.tokenize.PunktSentenceTokenizer().tokenize(text):
        tokens += nltk.tokenize.NLTKWordTokenizer().tokenize(sentence)
    return tokens


def test_words_end_where_unicode_says() -> None:
    expected = {
        "don't": ["don't"],
        "U.S.A.": ["u.s.a"],
        "3.14": ["3.14"],
        "p<0.05.Conclusion": ["p", "0.05", "conclusion"],
        "TCP/IP AT&T C++": ["tcp", "ip", "at", "t", "c"],
        "snake_case _x 1_000": ["snake_case", "_x", "1_000"],
        "日本語 中文": ["日", "本", "語", "中", "文"],
        "l'été a:b": ["l'été", "a:b"],
    }
    assert {text: split(text) for text in expected} == expected


@given(st.text(alphabet="aBé1.,;:_- /", max_size=12))
def test_words_end_where_another_implementation_of_unicode_says(text: str) -> None:
    regex = pytest.importorskip("regex")
    pieces = regex.split(r"\b", text.lower(), flags=regex.WORD | regex.V1)
    assert split(text) == [piece for piece in pieces if regex.search(r"\w", piece)]


def test_english_drops_possessives_and_stop_words() -> None:
    expected = {
        "Darwin\u2019s finches": ["darwin", "finch"],
        "it's John's": ["john"],
        "don't": ["don't"],
        "To be, or NOT to be: that is the question": ["question"],
        "'s": ["s"],
        "us vs ms s'": ["us", "vs", "ms", "s"],
        "": [],
    }
    assert {text: words(text) for text in expected} == expected


PORTER = """
caresses caress ponies poni ties ti cats cat feed feed agreed agre plastered plaster bled bled
motoring motor sing sing conflated conflat troubled troubl sized size hopping hop tanned tan
falling fall hissing hiss fizzed fizz failing fail filing file happy happi sky sky relational
relat conditional condit rational ration valenci valenc digitizer digit conformabli conform
radicalli radic differentli differ vileli vile analogousli analog vietnamization vietnam
predication predic operator oper feudalism feudal decisiveness decis hopefulness hope callousness
callous formaliti formal sensitiviti sensit sensibiliti sensibl triplicate triplic formative form
formalize formal electriciti electr electrical electr hopeful hope goodness good revival reviv
allowance allow inference infer airliner airlin gyroscopic gyroscop adjustable adjust defensible
defens irritant irrit replacement replac adjustment adjust dependent depend adoption adopt
homologou homolog communism commun activate activ angulariti angular homologous homolog effective
effect bowdlerize bowdler probate probat rate rate cease ceas controll control roll roll
"""


DEPARTURES = {
    "us": "us",
    "epidemiology": "epidemiolog",
    "apologies": "apolog",
    "biology": "biologi",
    "possibly": "possibl",
    "reversibly": "revers",
    "assembly": "assembl",
    "bly": "bly",
}
"""Where Porter's program and Lucene depart from his paper."""


def test_english_stems_as_porters_paper_and_program_do() -> None:
    pairs = PORTER.split()
    expected = {**dict(zip(pairs[::2], pairs[1::2], strict=True)), **DEPARTURES}
    assert {word: words(word) for word in expected} == {
        word: [stem] for word, stem in expected.items()
    }


@settings(max_examples=40)
@given(
    root=st.text(alphabet="aeioublst", max_size=5),
    ending=st.sampled_from(
        [
            "logy",
            "logies",
            "logi",
            "logical",
            "logie",
            "bly",
            "bli",
            "ably",
            "ibly",
            "blies",
            "s",
            "ed",
        ]
    ),
)
def test_english_stems_as_another_implementation_of_his_program_does(
    root: str, ending: str
) -> None:
    porter = pytest.importorskip("nltk.stem.porter").PorterStemmer(mode="MARTIN_EXTENSIONS")
    word = root + ending
    assert analyze.porter([word]) == [porter.stem(word)]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "One sentence only",
        (
            "Dr. Smith's results (p < 0.05) weren't reproduced. They \"failed\" twice... Why?  "
            "Nobody "
            "knows -- yet."
        ),
        (
            "Effects of vitamin D3, e.g. on bone density, in the U.S. were small; see Fig. 2. "
            "Conclusion: none."
        ),
        "I can't, won't and wouldn't've gone. Gimme $5.00 and 50%! http://example.com/a?b=c#d",
        "Ünïcode “quotes” — and \u2018others\u2019 … 日本語。",
        "line\nbreaks\r\nand\ttabs. New sentence.",
    ],
)
def test_paper_is_nltks_own_word_for_word(text: str) -> None:
    expected = [token for token in nltk_tokens(text) if token not in stop_words("nltk")]
    assert words(text, "paper") == expected


@given(text=st.text(alphabet="ab01 .,:;'\"`()[]>?!-—”\u2019\n\t\xa0\u3000\ue000", max_size=40))
@settings(max_examples=300, deadline=None)
def test_paper_is_nltks_own_whatever_the_marks(text: str) -> None:
    """The texts behind and before share words with it, which are read only once."""
    texts = [text, f"a cannot b' {text} a.", f"{text} {text}"]
    assert analyzer("paper").split(pl.Series(texts)).to_list() == list(map(nltk_tokens, texts))


def test_an_analyzer_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [n for n in sys.modules if n.partition(".")[0] == "nltk"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "nltk", None)
    with pytest.raises(
        MissingExtra, match=r"analyzer 'paper' needs nltk\. Install it with: pip install \"ranktilt"
    ):
        BM25(analyzer="paper").rank(toy())
    with pytest.raises(
        UserError,
        match=r"^unknown analyzer 'englsh'; did you mean 'english'\? \(valid: english, pape",
    ):
        BM25(analyzer="englsh")


def test_a_language_lowers_and_stems_and_drops_nothing() -> None:
    for name, text, stems in (
        ("german", "Die Katzen", ["die", "katz"]),
        ("french", "Les chevaux continuellement", ["le", "cheval", "continuel"]),
        ("russian", "книгами", ["книг"]),
    ):
        assert words(text, name) == stems
        assert analyzer(name) is analyzer(name)


def test_whitespace_changes_nothing_and_every_analyzer_has_terms() -> None:
    text = " The\tDON'T,\nthe\u00a0the\u3000end.  "
    assert words(text, "whitespace") == ["The", "DON'T,", "the", "the", "end."]
    assert all(words("alpha", name) for name in analyzers() if name != "paper")


def codes(*texts: str) -> TokenCodes:
    return TokenCodes.from_texts(analyzer("whitespace"), pl.Series(texts))


def test_terms_are_numbered_as_they_come_and_sorted_within_one_call() -> None:
    vocabulary = Vocabulary(analyzer("whitespace"))
    owner, term = vocabulary.encode(codes("b a b", "c"), grow=True)
    assert vocabulary.terms == {"a": 0, "b": 1, "c": 2}
    assert (owner.tolist(), term.tolist()) == ([0, 0, 0, 1], [1, 0, 1, 2])
    vocabulary.encode(codes("a 0"), grow=True)
    assert vocabulary.terms == {"a": 0, "b": 1, "c": 2, "0": 3}


def test_a_vocabulary_with_names_knows_them_and_learns_none_from_queries() -> None:
    vocabulary = Vocabulary(analyzer("english"), ["river", "appl"])
    owner, term = vocabulary.encode(codes("apples unknown", "the rivers"), grow=False)
    assert (owner.tolist(), term.tolist()) == ([0, 1], [1, 0])
    assert list(vocabulary.terms) == ["river", "appl"]


def test_stop_words_are_lucenes_and_nltks() -> None:
    expected = (
        "a an and are as at be but by for if in into is it no not of on or such that the their "
        "then there these they "
        "this to was will with"
    )
    assert stop_words("lucene") == frozenset(expected.split())
    nltk_words = stop_words("nltk")
    assert len(nltk_words) == 179
    assert {"i", "don't", "won", "wouldn't", "y", "herself"} <= nltk_words
    assert not {"he'd", "I", "would", "us"} & nltk_words
