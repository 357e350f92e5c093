"""What no ranker can be made of is refused in one line, before any model is looked for."""

import pytest

from ranktilt import UserError, ranker

REFUSED = {
    "bm25(k1=-0.1)": "expected k1 of at least 0, got -0.1",
    "bm25(k1=nan)": "expected k1 of at least 0, got nan",
    "bm25(b=1.1)": "expected b of 0 to 1, got 1.1",
    "bm25(delta=.5)": "delta goes with bm25l and bm25+, not with lucene",
    "bm25(delta=nan,method=bm25+)": "expected delta of at least 0, got nan",
    "bm25(method=bm25)": "unknown method of bm25 'bm25'; did you mean 'bm25l'",
    "dense:M(similarity=cosin)": "unknown similarity",
    "dense:M(precision=bfloat)": "unknown precision",
    "dense:M(store=float)": "unknown store",
    "dense:M(pooling=max)": "unknown pooling",
    "dense:M(max_tokens=0)": "max_tokens of at least 1",
    "dense:M@0": "depth of at least 1",
    "dense:M(project_strength=.5)": "project_strength needs a direction",
    "dense:openai:tiny(precision=bfloat16)": "precision is for a model on this machine",
    "dense:openai:tiny(pooling=cls)": "pooling is for a model on this machine",
    'dense:minilm(base_url="http://127.0.0.1/v1")': "base_url is for a server's model",
    "dense:minilm(requests_per_minute=5)": "requests_per_minute is for a server's model",
    "dense:openai:text-embedding-ada-002": "OPENAI_API_KEY",
    "sparse:M(max_active_dims=0)": "max_active_dims of at least 1",
    "monot5:M@0": "depth of at least 1",
    "monot5:M(text=body)": "unknown text of monot5 'body'",
    "monot5:M(limits=papers)": "unknown limits",
    "monot5:M(precision=bf16)": "unknown precision",
    "monot5:M(max_query_tokens=0)": "max_query_tokens of at least 1",
    "monot5:M(max_document_tokens=-3)": "max_document_tokens of at least 1",
    'monot5:M(true_token="")': "expected a word as true_token",
    "monot5:M(false_token=▁)": "expected a word as false_token",
    "monot5:M(true_token=false)": "expected two different answers, got 'false' twice",
    "listwise:openai:m(window=1)": "expected window of at least 2, got 1",
    "listwise:openai:m(window=5,step=5)": "expected step of 1 to 4, got 5",
    "listwise:openai:m(shuffles=101)": "expected shuffles of 0 to 100, got 101",
    "listwise:openai:m(max_failures=2)": "expected max_failures of 0 to 1, got 2",
    "listwise:openai:m(preset=wan)": "unknown preset of listwise 'wan'; did you mean 'wang'",
    "listwise:openai:m(prompt=sensitive)": "{attribute} needs one: listwise:openai:m(attribute=…)",
    "listwise:openai:m(prompt=neutral,attribute=a)": "attribute=a, and the prompt has no {attribute}",
    "setwise:openai:m(size=2)": "expected size of at least 3, got 2",
    "pointwise:openai:m(method=logits)": "unknown method of pointwise 'logits'",
    "pointwise:openai:m(prompt=question)": "prompt 'question': expected {query}, and found none",
    "pointwise:openai:m(method=query-likelihood,prompt=yes-no)": "prompt 'yes-no': {query} cannot be filled in",
    "pointwise:openai:m(method=query-likelihood,adapter=a)": "leave adapter out",
    "engine:my_engine": "expected engine:MODULE:FUNCTION, such as engine:my_engine:search, got 'my_engine'",
    "engine:my_engine:a:b": "expected engine:MODULE:FUNCTION",
    "engine:a:b(concurrency=0)": "concurrency of at least 1",
    "engine:a:b(max_failures=1.5)": "max_failures of 0 to 1, got 1.5",
    "milvus:index": "expected a file that ends in .db, or an address",
    "milvus:ftp://host": "expected an address such as http://localhost:19530",
    'milvus:"http://root:secret@host:19530"': "must hold no user, password or token",
    "milvus:http://host/?token=secret": "must hold no user, password or token",
    "milvus:a.db(mode=sparse)": "unknown mode of milvus 'sparse'",
    "replay:a@0": "depth of at least 1",
    "replay:a(score_order=ranks)": "unknown score_order of replay 'ranks'",
    "bm25(attribute=female)": "attribute goes with the slot {attribute}",
    "tfidf(query_template={attribute} {query})": "attribute goes with the slot {attribute}",
    "cross-encoder:x(query_template=female)": "expected {query}, and {attribute} beside it or not, got 'female'",
    "engine:a:b(query_template={gender} {query})": "query_template: expected {query}, and {attribute}",
}


@pytest.mark.parametrize("spec", REFUSED)
def test_impossible_options_are_refused(spec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(UserError) as caught:
        ranker(spec).check()
    assert REFUSED[spec] in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "secret" not in str(caught.value)
