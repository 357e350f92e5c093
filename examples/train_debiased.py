"""Fine-tune a retriever with sentence-transformers' own trainer, under a constraint against
favouring LLM rewrites.

    pip install "ranktilt[neural,train]"
    python train_debiased.py --model sentence-transformers/all-MiniLM-L6-v2 --alpha 0.1 --steps 50

It learns from half of the queries of the collection that RankTilt brings along; put your own in its
place: `ranktilt.load(DIR, split="train")` and `ranktilt.load(DIR, split="dev")`.
"""

import argparse

from datasets import Dataset
from sentence_transformers import (
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
)
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

import ranktilt
from ranktilt.training import DebiasedLoss, SourceBiasEvaluator
from ranktilt.training.options import RetrieverTraining
from ranktilt.training.training_set import retriever_set


def part_of(collection: ranktilt.Collection, remainder: int) -> ranktilt.Collection:
    """Every other query, with its judgments: one half to learn from, one half to evaluate on."""
    queries = collection.queries.gather_every(2, remainder)
    qrels = collection.qrels.join(queries, left_on="query_id", right_on="id", how="semi")
    return ranktilt.Collection(collection.docs, queries, qrels)


parser = argparse.ArgumentParser(
    description="Fine-tune a retriever that does not favour LLM rewrites."
)
parser.add_argument("--model", default="sentence-transformers/all-MiniLM-L6-v2")
parser.add_argument("--alpha", type=float, default=0.1)
parser.add_argument("--steps", type=int, default=50)
parser.add_argument("--output", default="debiased")
options = parser.parse_args()

collection = ranktilt.bundled()
training_set = retriever_set(part_of(collection, 0), RetrieverTraining())
rows = [(q, d) for q, documents in enumerate(training_set.positives) for d in documents]
data = {
    "query": [training_set.queries[q] for q, _ in rows],
    "human": [training_set.texts[d] for _, d in rows],
    "llm": [training_set.texts[training_set.twins[d]] for _, d in rows],
}
model = SentenceTransformer(options.model)
trainer = SentenceTransformerTrainer(
    model,
    SentenceTransformerTrainingArguments(
        options.output,
        max_steps=options.steps,
        per_device_train_batch_size=16,
        report_to="none",
        eval_strategy="steps",
        eval_steps=max(options.steps // 2, 1),
    ),
    train_dataset=Dataset.from_dict(data),
    loss=DebiasedLoss(model, MultipleNegativesRankingLoss(model), alpha=options.alpha),
    evaluator=SourceBiasEvaluator(part_of(collection, 1), source=collection.sources[0], name="dev"),
)
trainer.train()
model.save_pretrained(options.output)
