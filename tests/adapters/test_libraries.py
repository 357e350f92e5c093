"""Runs, measures and rankers of other libraries, made and read by the libraries themselves."""

import json
import re
import warnings
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest

import ranktilt as rt
from ranktilt.adapters.ir_measures import as_ir_measures
from ranktilt.adapters.mteb import as_mteb
from ranktilt.adapters.pyterrier import as_pyterrier
from tests.rankers.tiny import tiny_model
from tests.refusals import refused
from tests.toy import toy

pytestmark = pytest.mark.filterwarnings("ignore")
SCORES = {"q1": {"d1-human": 3.0, "d1-llm": 3.0, "d2-llm": 1.5}, "q2": {"d3-human": 0.25}}


def scores_of(run: rt.Run) -> dict[str, dict[str, float]]:
    frame = run.frame()
    return {
        query: dict(frame.filter(query_id=query).select("doc_id", "score").iter_rows())
        for query in run.queries
    }


class TestFiles:
    @pytest.mark.long  # ranx compiles its measures when it is imported for the first time
    @pytest.mark.parametrize("ending", ["json", "parquet", "trec"])
    def test_ranx(self, tmp_path: Path, ending: str) -> None:
        ranx = pytest.importorskip("ranx")
        ranx.Run(SCORES, name="mine").save(str(tmp_path / f"run.{ending}"))
        assert scores_of(rt.Run.load(tmp_path / f"run.{ending}")) == SCORES

    def test_mteb(self, tmp_path: Path) -> None:
        mteb = pytest.importorskip("mteb")
        from mteb.mocks.mock_tasks import MockRetrievalTask

        task = MockRetrievalTask()
        results = mteb.evaluate(
            as_mteb(rt.ranker("bm25")), [task], cache=None, prediction_folder=tmp_path
        )
        [file] = tmp_path.iterdir()
        run = rt.Run.load(file)
        assert (run.name, run.queries) == ("ranktilt/bm25", ("q1", "q2"))
        qrels = {"q1": "d1", "q2": "d2"}
        ranks = [list(scores_of(run)[query]).index(doc) for query, doc in qrels.items()]
        ndcg = np.mean([1 / np.log2(2 + rank) for rank in ranks])
        assert results[0].scores["test"][0]["ndcg_at_10"] == pytest.approx(ndcg, abs=1e-5)

    def test_documents_of_mteb_come_in_no_order(self, tmp_path: Path) -> None:
        scores = {query: {"a": 1.0, "b": 2.0, "c": 3.0} for query in ("q1", "q2", "q3")}
        predictions = {"mteb_model_meta": {"model_name": "m"}, "default": {"test": scores}}
        (tmp_path / "T_predictions.json").write_text(json.dumps(predictions), encoding="utf-8")
        for run in (rt.Run.from_mteb(predictions), rt.Run.load(tmp_path / "T_predictions.json")):
            assert scores_of(run) == scores
            assert list(scores_of(run)["q1"]) == ["c", "b", "a"]

    def test_names_of_mteb_mean_the_numbers_of_mteb(self) -> None:
        metrics = pytest.importorskip("mteb._evaluators.retrieval_metrics")
        collection = toy()
        drawn = np.random.default_rng(5)
        scores = {
            query: dict(
                zip(collection.ids, drawn.random(collection.docs.height).tolist(), strict=True)
            )
            for query in collection.queries_with_judgments["id"]
        }
        qrels: dict[str, dict[str, int]] = {}
        for query, doc, grade in collection.qrels.iter_rows():
            qrels.setdefault(query, {})[doc] = int(grade)
        theirs = metrics.calculate_retrieval_scores(scores, qrels, [3])
        expected = {
            "ndcg_at_3": theirs.ndcg["NDCG@3"],
            "map_at_3": theirs.map["MAP@3"],
            "recall_at_3": theirs.recall["Recall@3"],
            "precision_at_3": theirs.precision["P@3"],
            "mrr_at_3": theirs.mrr["MRR@3"],
        }
        audit = rt.audit(collection, rt.Run.from_dict(scores), list(expected), resamples=100)
        means = audit.frame("means").filter(group="all")["mean"].to_list()
        assert means == pytest.approx(list(expected.values()), abs=1e-5)  # they round

    def test_sentence_transformers(self, tmp_path: Path) -> None:
        pytest.importorskip("sentence_transformers")
        from sentence_transformers.sentence_transformer.evaluation import (
            InformationRetrievalEvaluator,
        )

        class Model:
            """Encodes a text by its length, as the evaluator asks for it."""

            similarity_fn_name = "dot"
            model_card_data = SimpleNamespace(set_evaluation_metrics=lambda *_, **__: None)

            def encode_query(self, texts: list[str], **_: Any) -> Any:
                import torch

                return torch.tensor([[float(len(text)), 1.0] for text in texts])

            encode_document = encode_query

            def similarity(self, a: Any, b: Any) -> Any:
                return a @ b.T

        texts, queries = {"a": "one", "b": "three", "c": "x"}, {"q1": "abc", "q2": "de"}
        evaluator = InformationRetrievalEvaluator(
            queries,
            texts,
            {"q1": {"a"}, "q2": {"b"}},
            write_predictions=True,
            score_functions={"dot": Model().similarity},
            accuracy_at_k=[1],
            precision_recall_at_k=[1],
            mrr_at_k=[3],
            ndcg_at_k=[3],
            map_at_k=[3],
        )
        evaluator(Model(), output_path=str(tmp_path))
        [file] = tmp_path.glob("*.jsonl")
        assert scores_of(rt.Run.load(file)) == {
            "q1": {"b": 16.0, "a": 10.0, "c": 4.0},
            "q2": {"b": 11.0, "a": 7.0, "c": 3.0},
        }

    def test_pyterrier(self, tmp_path: Path) -> None:
        pt = pytest.importorskip("pyterrier")
        results = as_pyterrier(rt.ranker("bm25@3"), toy())(topics())
        results.to_csv(tmp_path / "results.csv.gz", index=False)
        pt.io.write_results(results, str(tmp_path / "results.trec"))
        for name in ("results.csv.gz", "results.trec"):
            assert rt.Run.load(tmp_path / name) == rt.ranker("bm25@3").rank(toy())

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (
                '{"mteb_model_meta": {}, "en": {"dev": {}, "train": {}}}',
                "one subset and split, got en/dev, en/train",
            ),
            (
                '{"mteb_model_meta": {}, "en": {"test": {}}, "de": {"test": {}}}',
                "got en/test, de/test",
            ),
            (
                '{"query_id": "q1", "results": []}\n{"query_id": "q1", "results": []}',
                "2: query 'q1' occurs twice",
            ),
            (
                '{"query_id": "q1", "results": []}\n{"x": 1}',
                "2: expected query_id and results, got {'x': 1}",
            ),
            (
                '{"query_id": "q1", "results": []}\n{"x',
                "2: expected one JSON value per line, got broken JSON",
            ),
        ],
    )
    def test_what_is_refused(self, tmp_path: Path, content: str, message: str) -> None:
        (tmp_path / "run.json").write_text(content, encoding="utf-8")
        with pytest.raises(rt.DataError, match=re.escape(message)):
            rt.Run.load(tmp_path / "run.json")


class TestObjects:
    @pytest.mark.long
    def test_runs(self) -> None:
        ranx, pandas = pytest.importorskip("ranx"), pytest.importorskip("pandas")
        rows = [
            (query, doc, score) for query, scores in SCORES.items() for doc, score in scores.items()
        ]
        frame = pandas.DataFrame(rows, columns=["qid", "docno", "score"])
        predictions = {
            "mteb_model_meta": {"model_name": "m"},
            "default": {"dev": {}, "test": SCORES},
        }
        runs = (
            rt.Run.from_dict(SCORES),
            rt.Run.from_ranx(ranx.Run(SCORES)),
            rt.Run.from_pandas(frame),
            rt.Run.from_mteb(predictions),
        )
        assert [scores_of(run) for run in runs] == [SCORES] * 4
        assert runs[3].name == "m"
        assert rt.Run.from_mteb(predictions, split="dev").queries == ()
        with refused("expected a column for score, got qid, docno"):
            rt.Run.from_pandas(frame[["qid", "docno"]])

    @pytest.mark.long
    def test_measures_are_those_of_an_audit(self) -> None:
        ir_measures = pytest.importorskip("ir_measures")
        collection = toy()
        run = rt.ranker("bm25").rank(collection)
        source = collection.docs.select(doc_id="id", source="source")
        ranked = run.frame().join(source, on="doc_id").to_pandas()
        judged = collection.qrels.select("query_id", "doc_id", relevance="grade")
        qrels = judged.join(source, on="doc_id").to_pandas()
        measures = as_ir_measures(["nDCG@3", "AP@3"])
        audit = rt.audit(collection, run, ["nDCG@3", "AP@3"], resamples=100)
        ours = {
            (f"{m}[source={group}]", query): value
            for m, group, query, value in audit.table.select(
                "measure", "group", "query", "value"
            ).iter_rows()
            if group in ("human", "llm")
        }
        by_query = {
            (str(m.measure), m.query_id): m.value
            for m in ir_measures.iter_calc(measures, qrels, ranked)
        }
        assert {key: by_query[key] for key in ours} == ours  # to the last bit
        theirs = ir_measures.calc_aggregate(
            measures, qrels, ranked
        )  # which adds them up in another order
        means = {
            (m, g): v
            for m, g, v in audit.frame("means").select("measure", "group", "mean").iter_rows()
        }
        for tilt in audit.tilts:
            human, llm, delta = measures[:3] if tilt.measure == "nDCG@3" else measures[3:]
            sides = means[tilt.measure, "human"], means[tilt.measure, "llm"]
            assert (theirs[human], theirs[llm], theirs[delta]) == pytest.approx(
                (*sides, tilt.value), rel=1e-13
            )
        with pytest.raises(
            rt.UserError, match="by gender: expected a column 'gender' in the qrels"
        ):
            ir_measures.calc_aggregate(as_ir_measures("nDCG@3", by="gender"), qrels, ranked)
        doubled = pl.concat([pl.from_pandas(ranked), pl.from_pandas(ranked).head(1)]).to_pandas()
        doc, query = ranked["doc_id"][0], ranked["query_id"][0]
        with refused(f"run 'ir_measures': document {doc!r} occurs twice for query {query!r}"):
            ir_measures.calc_aggregate(measures, qrels, doubled)
        again = pl.concat([pl.from_pandas(qrels), pl.from_pandas(qrels).head(1)]).to_pandas()
        with pytest.raises(rt.UserError, match=r"judgment '.*', '.*' occurs more than once"):
            ir_measures.calc_aggregate(as_ir_measures("nDCG@3"), again, ranked)
        relabelled = ranked.assign(
            source=[
                "llm" if name == doc else source
                for name, source in zip(ranked["doc_id"], ranked["source"], strict=True)
            ]
        )
        if ranked["source"][0] == "human":
            with pytest.raises(rt.UserError, match=f"document '{doc}' has two values of 'source'"):
                ir_measures.calc_aggregate(as_ir_measures("nDCG@3"), qrels, relabelled)
        human = qrels[qrels["source"] == "human"]
        with refused("nDCG@3: no query has a relevant document of both human and llm"):
            ir_measures.calc_aggregate(as_ir_measures("nDCG@3"), human, ranked)
        assert sorted(ir_measures.run_inputs(measures)) == ["doc_id", "query_id", "score", "source"]

    def test_a_pyterrier_pipeline_is_a_ranker_and_a_ranker_a_pipeline(self) -> None:
        pt = pytest.importorskip("pyterrier")
        collection, bm25 = toy(), rt.ranker("bm25")
        transformer = as_pyterrier(bm25, collection)
        assert rt.ranker(transformer).rank(collection) == bm25.rank(collection)
        spec = rt.ranker(transformer).rank(collection).spec
        assert spec["object"]["class"].startswith("pyterrier.")
        assert spec["packages"] == {"pyterrier": version("pyterrier")}
        again = as_pyterrier(rt.ranker("tfidf"), collection)
        both = (bm25 >> rt.ranker(again)).rank(collection)
        assert both == rt.ranker("bm25>>tfidf").rank(collection)
        assert "source" in transformer(topics()).columns
        qrels = collection.qrels.select(
            qid="query_id", docno="doc_id", label=pl.col("grade").cast(pl.Int64)
        )
        source = collection.docs.select(docno="id", source="source")
        judged = qrels.join(source, on="docno").to_pandas()
        results = pt.Experiment([transformer], topics(), judged, as_ir_measures("nDCG@3"))
        tilt = rt.audit(collection, bm25.rank(collection), "nDCG@3", resamples=100).tilts[0]
        assert results["RelativeDelta(nDCG@3)[human,llm]"].tolist() == pytest.approx(
            [tilt.value], rel=1e-13
        )

    @pytest.mark.long
    def test_a_model_of_mteb_is_a_ranker(self) -> None:
        pytest.importorskip("mteb")
        model = as_mteb(rt.ranker("bm25"))
        ranker = rt.ranker(model)
        assert repr(ranker) == "mteb:ranktilt/bm25@1000"
        assert scores_of(ranker.rank(toy())) == scores_of(rt.ranker("bm25").rank(toy()))
        with refused("bm25: index the corpus before you search it"):
            as_mteb(rt.ranker("bm25")).search({"id": ["q"], "text": ["x"]}, top_k=3)
        for top_k in (0, -1, None, 2.5, True):
            with refused(f"top_k: expected a whole number of 1 or more, got {top_k!r}"):
                model.search({"id": ["q"], "text": ["x"]}, top_k=top_k)
        spec = ranker.rank(toy()).spec
        assert spec["object"] == {"class": "ranktilt.adapters.mteb.MtebModel"}
        with refused(
            "mteb:ranktilt/bm25@1000 searches the whole collection and cannot re-rank; put it first"
        ):
            (rt.ranker("bm25") >> ranker).rank(toy())
        assert repr(rt.ranker(model, k=5)) == "mteb:ranktilt/bm25@5"

    def test_an_encoder_of_mteb_searches_as_mteb_does(self, tmp_path: Path) -> None:
        wrappers = pytest.importorskip("mteb.models.sentence_transformer_wrapper")
        library = pytest.importorskip("sentence_transformers")
        model = library.SentenceTransformer(str(tiny_model(tmp_path / "tiny", similarity="cosine")))
        encoder = wrappers.SentenceTransformerEncoderWrapper(model)
        ranker = rt.ranker(encoder, k=4)
        assert repr(ranker) == "mteb:SentenceTransformerEncoderWrapper@4"
        run = ranker.rank(toy())
        expected = rt.ranker(model, k=4).rank(toy())
        for query, scores in scores_of(expected).items():
            assert scores_of(run)[query] == pytest.approx(scores, abs=1e-5)
        assert run.spec["object"]["class"].endswith(".SentenceTransformerEncoderWrapper")
        assert run.spec["packages"]["mteb"]


def test_topics_name_each_query_once() -> None:
    pandas, _ = pytest.importorskip("pandas"), pytest.importorskip("pyterrier")
    transformer = as_pyterrier(rt.ranker("bm25"), toy())
    twice = pandas.DataFrame({"qid": ["q1", "q1"], "query": ["red apples", "river water"]})
    with refused("topics: query 'q1' comes twice, with two texts; give each its own qid"):
        transformer(twice)
    same = pandas.DataFrame({"qid": [1.0, 1.0], "query": ["red apples"] * 2})
    assert set(transformer(same)["qid"]) == {"1"}
    with refused("topics: column 'qid' has no value in row 1"):
        transformer(pandas.DataFrame({"qid": ["q1", None], "query": ["red apples"] * 2}))


def topics() -> Any:
    return toy().queries_with_judgments.select(qid="id", query="text").to_pandas()


def test_relative_delta_of_two_means_of_zero_is_undefined() -> None:
    pd = pytest.importorskip("pandas")
    ir_measures = pytest.importorskip("ir_measures")
    judged = pd.DataFrame(
        {
            "query_id": ["1"] * 3,
            "doc_id": ["a", "b", "c"],
            "relevance": [1, 1, 0],
            "source": ["human", "llm", "human"],
        }
    )
    ranked = pd.DataFrame({"query_id": ["1"], "doc_id": ["c"], "score": [1.0], "source": ["human"]})
    measures = as_ir_measures("nDCG@1")
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        values = ir_measures.calc_aggregate(measures, judged, ranked)
    assert [values[name] for name in measures[:2]] == [0, 0]
    assert np.isnan(values[measures[2]])
