"""The text of a ranker: what it means, that nothing one can type is lost, and what is refused in
one line.

No model is looked for before a text is known to be possible.
"""

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ranktilt import Ranker, UserError, ranker
from ranktilt.data.text.analyzers import analyzers
from ranktilt.models.device import PRECISIONS
from ranktilt.papers.dai.rankers import DaiBM25, DaiTFIDF
from ranktilt.rankers.base import Pipeline
from ranktilt.rankers.dense.retriever import SIMILARITIES, Dense
from ranktilt.rankers.lexical.bm25 import BM25, TFIDF
from ranktilt.rankers.replay import Replay
from ranktilt.rankers.rerank.cross_encoder import CrossEncoder, MonoBERT
from ranktilt.rankers.rerank.monot5 import MonoT5
from ranktilt.registry import ranker_names
from ranktilt.spec import Stage, parse_stages

NASTY = [
    "",
    " ",
    '"',
    "\\",
    '\\"',
    ">>",
    "a>",
    ">b",
    "@3",
    "a@3",
    "(x=1)",
    "a,b",
    "a=b",
    "a b",
    " a ",
    "\n",
    "\t\x0b",
]
texts = st.one_of(st.sampled_from(NASTY), st.text(), st.text(alphabet='ab"\\()@,=> \n'))
names = st.from_regex(r"[A-Za-z_][\w.+-]*", fullmatch=True)
options = st.dictionaries(st.from_regex(r"[A-Za-z_]\w*", fullmatch=True), texts, max_size=3)
stages = st.builds(
    Stage,
    name=names,
    argument=st.none() | texts,
    options=options,
    k=st.none() | st.integers(0, 10**9),
)


@pytest.mark.parametrize(
    ("text", "stage", "printed"),
    [
        ("bm25()", Stage(name="bm25"), "bm25"),
        (
            "  x ( k1 = 0.9 , b = 4 ) @ 100  ",
            Stage(name="x", argument=None, options={"k1": "0.9", "b": "4"}, k=100),
            "x(k1=0.9,b=4)@100",
        ),
        (
            r"replay:C:\runs\a.trec",
            Stage(name="replay", argument=r"C:\runs\a.trec"),
            r'replay:"C:\\runs\\a.trec"',
        ),
        (
            'replay:"übung.trec"@5',
            Stage(name="replay", argument="übung.trec", options={}, k=5),
            "replay:übung.trec@5",
        ),
        ('x:"a (1)@2"@50', Stage(name="x", argument="a (1)@2", options={}, k=50), 'x:"a (1)@2"@50'),
        (
            'x:"say \\"hi\\" >> out"',
            Stage(name="x", argument='say "hi" >> out'),
            'x:"say \\"hi\\" >> out"',
        ),
        (
            'x(n="a,b=c(d)",empty=)',
            Stage(name="x", argument=None, options={"n": "a,b=c(d)", "empty": ""}),
            'x(n="a,b=c(d)",empty="")',
        ),
        (r'x:"two\nlines"', Stage(name="x", argument="two\nlines"), r'x:"two\nlines"'),
    ],
)
def test_a_stage_is_read_and_printed_as_one_would_type_it(
    text: str, stage: Stage, printed: str
) -> None:
    assert parse_stages(text) == [stage]
    assert str(stage) == printed


@given(stage=stages)
@example(stage=Stage(name="replay", argument="run>"))
@example(stage=Stage(name="replay", argument='"@1'))
def test_what_is_printed_reads_back(stage: Stage) -> None:
    assert parse_stages(str(stage)) == [stage]


depths = st.integers(1, 10**6)
maybe_depth = st.none() | depths
models = st.sampled_from(["minilm", "C:\\runs\\a b.trec", 'a "b" (c)@5>>d', "übung>"]) | st.text(
    min_size=1
)
shared = {
    "k": depths,
    "text": st.sampled_from(["title+text", "text"]),
    "exclude_self": st.none() | st.booleans(),
}
lexical = {**shared, "analyzer": st.sampled_from(analyzers())}
bm25 = {**lexical, "k1": st.floats(0, 1e300), "b": st.floats(0, 1)}
neural = {"precision": st.sampled_from(PRECISIONS), "device": st.none() | st.text()}
pairs = {
    "k": maybe_depth,
    "text": shared["text"],
    "max_query_tokens": maybe_depth,
    "max_document_tokens": maybe_depth,
    "limits": st.sampled_from(["model", "paper"]),
    **neural,
}
rankers = st.one_of(
    st.builds(
        BM25, **bm25, method=st.sampled_from(["lucene", "robertson", "atire", "bm25l", "bm25+"])
    ),
    st.builds(
        BM25,
        **bm25,
        method=st.sampled_from(["bm25l", "bm25+"]),
        delta=st.none() | st.floats(0, 1e300),
    ),
    *(st.builds(kind, **lexical) for kind in (TFIDF, DaiTFIDF)),
    st.builds(DaiBM25, **bm25),
    st.builds(
        Dense,
        models,
        **shared,
        **neural,
        similarity=st.sampled_from(SIMILARITIES),
        max_tokens=maybe_depth,
    ),
    *(st.builds(kind, models, **pairs) for kind in (CrossEncoder, MonoBERT, MonoT5)),
    st.builds(Replay, models, k=maybe_depth, exclude_self=shared["exclude_self"]),
)


@given(stages=st.lists(rankers, min_size=1, max_size=3))
@settings(max_examples=40)
def test_a_ranker_or_a_pipeline_reads_back_from_its_text(stages: list[Ranker]) -> None:
    parsed = stages[0] if len(stages) == 1 else Pipeline(tuple(stages))
    assert ranker(repr(parsed)) == parsed
    assert repr(ranker(repr(parsed))) == repr(parsed)


def test_a_hub_name_is_taken_as_a_dense_model_or_as_what_the_table_knows() -> None:
    for text, typed in (
        ("intfloat/e5-base", "dense:intfloat/e5-base"),
        ("01-ai/x(similarity=dot)@5", "dense:01-ai/x(similarity=dot)@5"),
        ("bm25@20>>my/model", "bm25@20>>dense:my/model"),
        ("castorini/monot5-base-msmarco", "monot5:castorini/monot5-base-msmarco"),
    ):
        assert repr(ranker(text)) == typed


def test_a_text_makes_a_ranker_that_prints_options_off_their_defaults_alone() -> None:
    for text, expected in (
        ("bm25(b=-0,exclude_self=True)", BM25(b=0.0, exclude_self=True)),
        (
            "bm25(k1=1e-3,exclude_self=false,text=title)",
            BM25(k1=0.001, exclude_self=False, text="title"),
        ),
        ("bm25(method=bm25+,delta=0.5)", BM25(method="bm25+", delta=0.5)),
        ("bm25:dai", DaiBM25(text="text", analyzer="paper", k1=2, b=0.75, method="atire")),
        ("bm25:dai(k1=1.2)@100", DaiBM25(k1=1.2, k=100)),
        ("tfidf:dai>>bm25", DaiTFIDF(text="text", analyzer="paper") >> BM25()),
        ("replay:runs/a.trec(exclude_self=true)", Replay("runs/a.trec", exclude_self=True)),
        (
            "bm25@100>>monot5:base(limits=paper)@10",
            BM25(k=100) >> MonoT5("base", limits="paper", k=10),
        ),
    ):
        assert ranker(text) == expected
        assert ranker(expected) is expected
    for built, text in (
        (BM25(k=1000), "bm25@1000"),
        (BM25(k1=0.9, b=0.4, k=100), "bm25(k1=0.9,b=0.4)@100"),
        (BM25(exclude_self=True, k1=0.1 + 0.2), "bm25(exclude_self=true,k1=0.30000000000000004)"),
        (Replay("a@b.trec", k=3), 'replay:"a@b.trec"@3'),
    ):
        assert repr(built) == text


OURS = ", ".join(ranker_names())
GRAMMAR = "expected name[:argument][(option=value,…)][@k], stages joined by >>"
REFUSED = {
    "bm25>>": f"cannot read ranker 'bm25>>' at '': {GRAMMAR}",
    "bm25:": f"at 'bm25:': {GRAMMAR}",
    'replay:"a': f"at 'replay:\"a': {GRAMMAR}",
    "bm25@1>>x(": f"at 'x(': {GRAMMAR}",
    "bm25>>cross-encoder:m@5(limits=paper)": f"{GRAMMAR}; @k comes last",
    "bm25(k1)": "cannot read option 'k1' of ranker 'bm25(k1)': expected option=value",
    "bm25(k1=1,)": "cannot read option '' of ranker",
    "bm25(b=0.1,b=0.2)": "option 'b' of ranker 'bm25(b=0.1,b=0.2)' is given twice",
    "milvus:http://me:secret@host(mode": (
        "cannot read ranker 'milvus:http://…@host(mode' at 'milvus:http://…@host(mode'"
    ),
    "bm25>>milvus:https://me:secret@host/x@": "https://…@host/x@",
    "bm26": f"unknown ranker 'bm26'; did you mean 'bm25'? (valid: {OURS})",
    "json:loads@5": f"unknown ranker 'json' (valid: {OURS}); is it an engine? engine:json:FUNCTION",
    "minilm": f"did you mean 'milvus'? (valid: {OURS}); is it a model? dense:minilm",
    "runs/bm25.trec": (
        f"unknown ranker 'runs/bm25.trec' (valid: {OURS}); is it a run? replay:runs/bm25.trec"
    ),
    "org/model:x": f"unknown ranker 'org/model' (valid: {OURS})",
    "https://host/find": (
        "to query an engine at an address, write a function: engine:MODULE:FUNCTION"
    ),
    "bm25:dia": "unknown ranker 'bm25:dia'; did you mean 'bm25:dai'? (valid: bm25, bm25:dai)",
    "interleave:x": "interleave takes no argument, got 'x'",
    "dense": "dense needs an argument: dense:MODEL",
    "tfidf(b=1)": (
        "unknown option of tfidf 'b' (valid: text, exclude_self, query_template, "
        "attribute, analyzer)"
    ),
    "bm25(kl=0.9)": "unknown option of bm25 'kl'; did you mean 'k1'?",
    "bm25(k=5)": "unknown option of bm25 'k'",
    "bm25(b=half)": "option 'b' of bm25: expected a number, got 'half'",
    "bm25(exclude_self=maybe)": (
        "option 'exclude_self' of bm25: expected true or false, got 'maybe'"
    ),
    "bm25(text=body)": "unknown text of bm25 'body' (valid: title+text, text, title)",
    "bm25@0": "bm25: expected a depth of at least 1, got @0",
    "dense:m(max_tokens=1.5)": "option 'max_tokens' of dense: expected a whole number, got '1.5'",
    "bm25(k1=nan)": "expected k1 of at least 0, got nan",
    "bm25(b=1.1)": "expected b of 0 to 1, got 1.1",
    "bm25(delta=.5)": "delta goes with bm25l and bm25+, not with lucene",
    "bm25(method=bm25)": "unknown method of bm25 'bm25'; did you mean 'bm25l'",
    "dense:M(similarity=cosin)": "unknown similarity",
    "dense:M(precision=bfloat)": "unknown precision",
    "dense:M(store=float)": "unknown store",
    "dense:M(pooling=max)": "unknown pooling",
    "dense:M(max_tokens=0)": "max_tokens of at least 1",
    "dense:M(project_strength=.5)": "project_strength needs a direction",
    "dense:openai:tiny(precision=bfloat16)": "precision is for a model on this machine",
    'dense:minilm(base_url="http://127.0.0.1/v1")': "base_url is for a server's model",
    "dense:openai:text-embedding-ada-002": "OPENAI_API_KEY",
    "sparse:M(max_active_dims=0)": "max_active_dims of at least 1",
    "monot5:M(limits=papers)": "unknown limits",
    "monot5:M(max_query_tokens=0)": "max_query_tokens of at least 1",
    'monot5:M(true_token="")': "expected a word as true_token",
    "monot5:M(false_token=▁)": "expected a word as false_token",
    "monot5:M(true_token=false)": "expected two different answers, got 'false' twice",
    "listwise:openai:m(window=1)": "expected window of at least 2, got 1",
    "listwise:openai:m(window=5,step=5)": "expected step of 1 to 4, got 5",
    "listwise:openai:m(shuffles=101)": "expected shuffles of 0 to 100, got 101",
    "listwise:openai:m(max_failures=200)": "expected max_failures of 0 to 100, got 200",
    "listwise:openai:m(prompt=sensitive)": (
        "the slot {attribute} needs a value: listwise:openai:m(attribute=…)"
    ),
    "listwise:openai:m(prompt=neutral,attribute=a)": (
        "attribute=a is set, but the prompt has no {attribute}"
    ),
    "setwise:openai:m(size=2)": "expected size of at least 3, got 2",
    "pointwise:openai:m(method=logits)": "unknown method of pointwise 'logits'",
    "pointwise:openai:m(prompt=question)": "prompt 'question': expected {query}, and found none",
    "pointwise:openai:m(method=query-likelihood,prompt=yes-no)": (
        "prompt 'yes-no': {query} cannot be filled in"
    ),
    "pointwise:openai:m(method=query-likelihood,adapter=a)": "omit adapter",
    "engine:my_engine": (
        "expected engine:MODULE:FUNCTION, such as engine:my_engine:search, got 'my_engine'"
    ),
    "engine:a:b(concurrency=0)": "concurrency of at least 1",
    "engine:a:b(max_failures=150)": "max_failures of 0 to 100, got 150",
    "milvus:index": "expected a file that ends in .db, or an address",
    "milvus:ftp://host": "expected an address such as http://localhost:19530",
    'milvus:"http://root:secret@host:19530"': "must hold no user, password or token",
    "milvus:http://host/?token=secret": "must hold no user, password or token",
    "milvus:a.db(mode=sparse)": "unknown mode of milvus 'sparse'",
    "replay:a(score_order=ranks)": "unknown score_order of replay 'ranks'",
    "bm25(attribute=female)": "attribute goes with the slot {attribute}",
    "tfidf(query_template={attribute} {query})": "attribute goes with the slot {attribute}",
    "cross-encoder:x(query_template=female)": (
        "expected {query}, with or without {attribute}, got 'female'"
    ),
    "engine:a:b(query_template={gender} {query})": (
        "query_template: expected {query}, with or without {attribute}"
    ),
}


@pytest.mark.parametrize("spec", REFUSED)
def test_what_is_impossible_is_refused(spec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(UserError, match=rf"\A[^\n]*{re.escape(REFUSED[spec])}[^\n]*\Z") as caught:
        ranker(spec).check()
    assert "secret" not in str(caught.value)
