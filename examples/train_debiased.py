"""Fine-tune a retriever with sentence-transformers' own trainer, under a constraint against favouring LLM rewrites.

    pip install "ranktilt[neural,train]"
    python train_debiased.py --model sentence-transformers/all-MiniLM-L6-v2 --alpha 0.1 --steps 50

It learns from half of the queries of the collection that RankTilt brings along; put your own in its place:
`ranktilt.load(DIR, split="train")` and `ranktilt.load(DIR, split="dev")`.
"""

import argparse

import polars as pl
from datasets import Dataset
from sentence_transformers import (
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
)
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

import ranktilt
from ranktilt.training import DebiasedLoss, SourceBiasEvaluator


def part_of(collection: ranktilt.Collection, remainder: int) -> ranktilt.Collection:
    """Every other query, with its judgments: one half to learn from, one half to evaluate on."""
    queries = collection.queries.gather_every(2, remainder)
    qrels = collection.qrels.join(queries, left_on="query_id", right_on="id", how="semi")
    return ranktilt.Collection(collection.docs, queries, qrels)


def triplets(collection: ranktilt.Collection, human: str, llm: str) -> Dataset:
    """Rows of a query, a relevant human document, and the language model's rewrite of that document."""
    texts = pl.DataFrame({"id": collection.ids, "text": collection.texts()})
    rows = (
        collection.qrels.filter(pl.col("grade") > 0)
        .join(collection.queries.select(query_id="id", query="text"), on="query_id")
        .join(collection.pairs(human, llm), left_on="doc_id", right_on="a")
        .join(texts.select(doc_id="id", human="text"), on="doc_id")
        .join(texts.select(b="id", llm="text"), on="b")
    )
    return Dataset.from_dict(rows.select("query", "human", "llm").to_dict(as_series=False))


parser = argparse.ArgumentParser(description="Fine-tune a retriever that does not favour LLM rewrites.")
parser.add_argument("--model", default="sentence-transformers/all-MiniLM-L6-v2")
parser.add_argument("--alpha", type=float, default=0.1)
parser.add_argument("--steps", type=int, default=50)
parser.add_argument("--output", default="debiased")
options = parser.parse_args()

collection = ranktilt.bundled()
human, llm = collection.sources
model = SentenceTransformer(options.model)
loss = DebiasedLoss(model, MultipleNegativesRankingLoss(model), alpha=options.alpha)
arguments = SentenceTransformerTrainingArguments(
    options.output,
    max_steps=options.steps,
    per_device_train_batch_size=16,
    eval_strategy="steps",
    eval_steps=max(options.steps // 2, 1),
    report_to="none",
)
trainer = SentenceTransformerTrainer(
    model,
    arguments,
    train_dataset=triplets(part_of(collection, 0), human, llm),
    loss=loss,
    evaluator=SourceBiasEvaluator(part_of(collection, 1), source=human, name="dev"),
)
trainer.train()
model.save_pretrained(options.output)
