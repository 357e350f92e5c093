"""Train a retriever on a collection's own judgments, if wanted under the debiased constraint of Dai et al. (2024)."""

from __future__ import annotations

import time
from contextlib import nullcontext
from dataclasses import asdict, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ranktilt._version import __version__
from ranktilt.collection import Collection
from ranktilt.errors import UserError, unknown
from ranktilt.io.cache import Vectors
from ranktilt.io.files import cannot_write
from ranktilt.models import checkpoint
from ranktilt.models.device import set_threads
from ranktilt.models.encoder import Encoder, Kind
from ranktilt.optional import need
from ranktilt.progress import report
from ranktilt.rankers.base import Ranker
from ranktilt.rankers.dense.retriever import Dense
from ranktilt.rankers.spec import parse_stages
from ranktilt.training.directory import TrainingDirectory
from ranktilt.training.loop import TrainingLoop, device_of
from ranktilt.training.mining import Miner, RetrieverBatch, RetrieverBatches, character_lengths
from ranktilt.training.options import RetrieverTraining, Trained
from ranktilt.training.retriever_set import RetrieverSet, shared_set
from ranktilt.training.training_set import Ints, origin_of

FOR = "train retriever"
ROWS, SCORES, PAIRS = "rows", "scores", "pairs"
LOSSES = {
    "MultipleNegativesRankingLoss": ROWS,
    "CachedMultipleNegativesRankingLoss": ROWS,
    "TripletLoss": ROWS,
    "MarginMSELoss": SCORES,
    "DistillKLDivLoss": SCORES,
    "CosineSimilarityLoss": PAIRS,
    "CoSENTLoss": PAIRS,
    "AnglELoss": PAIRS,
    "ContrastiveLoss": PAIRS,
    "OnlineContrastiveLoss": PAIRS,
}
"""sentence-transformers' losses that learn from judgments, and what each is given: a query with its positive and
negatives; the same with a teacher's scores; or pairs of query and document, each with 1 or 0."""
_PACKAGES = ("torch", "transformers", "sentence-transformers")
_SCORED_ROWS = 256
_ENCODED_TEXTS = 1024


def train_retriever(
    collection: Collection,
    model: str | Path,
    folder: str | Path,
    *,
    options: RetrieverTraining | None = None,
    teacher: Ranker | None = None,
    dev: Collection | None = None,
) -> Trained:
    """Fine-tune an encoder as a retriever on a collection's judgments, with or without the debiased constraint.

    Each relevant document is a row: a query, this document, its twin where there is a constraint, and mined negatives.
    The loss is sentence-transformers' own. AdamW; no dropout. A training that was interrupted, however, goes on from
    its last checkpoint, and ends with the weights it would have had.

    Parameters
    ----------
    collection : Collection
        Loaded with the judgments to learn from: ``load(DIR, split="train")``.
    model : str or Path
        The encoder: a folder, ``minilm``, or a hub name.
    folder : str or Path
        Where the model goes: new, or with an unfinished training of the same options, which is continued.
    options : RetrieverTraining, optional
        How.
    teacher : Ranker, optional
        Of ``mine="cross"``.
    dev : Collection, optional
        The collection with other judgments, on which the model is audited after each epoch.

    Returns
    -------
    Trained
        `folder` holds the model as sentence-transformers saves it, a model card, and ``training.json``.

    Raises
    ------
    UserError
        Before any work: where there is nothing to learn from, no twin, the encoder cannot be used, or the folder holds
        something else. Later: if the loss stops being a number, memory does not suffice, or the disk is full.

    References
    ----------
    Dai et al., KDD 2024, sec. 5.
    """
    began, options = time.monotonic(), options or RetrieverTraining()
    torch = need("torch", extra="neural", for_=FOR)
    _require_fit(options, teacher, dev)
    directory = TrainingDirectory(Path(folder))
    device = device_of(options.device, FOR)
    base, encoder = _starting_model(model, device)
    spec = {
        "kind": "retriever", **asdict(options), "teacher": None if teacher is None else repr(teacher),
        "body": encoder.fingerprint, "device": device.partition(":")[0],
        "packages": {name: version(name) for name in _PACKAGES},
    }  # fmt: skip
    directory.require_same(spec)
    found = shared_set(collection, options)
    spec["data"], spec["twin_source"] = found.digest(), found.twin_source
    directory.require_same(spec)
    if directory.record is not None:
        directory.clear()
        return Trained(directory.folder, directory.record, directory.record["figures"]["steps"])
    set_threads()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(options.seed)
        trainable = _Trainable(base, encoder, found, options)
        trainable.prepare(directory, teacher)
    loop = TrainingLoop(
        trainable.module, trainable.batches, trainable.loss, lambda batch: batch.documents.size, options.rate, FOR,
        warmup=options.warmup_steps, weight_decay=options.weight_decay, patience=options.patience,
        evaluate=None if dev is None else trainable.evaluation(dev),
    )  # fmt: skip
    steps = options.steps or (None if options.minutes else options.epochs * trainable.batches.per_epoch)
    scores = trainable.positive_scores()
    resumed = loop.complete(directory, spec, replace(options, steps=steps), began)
    record = {
        "spec": spec,
        "ranktilt": __version__,
        "from": str(model),
        "collection": origin_of(collection),
        "figures": {
            "threads": torch.get_num_threads(),
            "queries": len(found.queries),
            "positives": sum(map(len, found.positives)),
            "twins": found.paired,
            "mean_score_before": scores,
            **loop.figures(),
            "skipped_queries": found.skipped,
        },
    }
    trainable.save(directory.model_folder(), record)
    directory.finish(record)
    return Trained(directory.folder, record, resumed)


def score_scale(collection: Collection, model: str | Path, options: RetrieverTraining) -> float:
    """Return the mean absolute score of relevant documents before training: the scale that alpha is on."""
    device = device_of(options.device, FOR)
    base, encoder = _starting_model(model, device)
    return _Trainable(base, encoder, shared_set(collection, options), options).positive_scores()


def _starting_model(model: str | Path, device: str) -> tuple[Dense, Encoder]:
    base = Dense(str(model), device=device)
    if not isinstance(base.encoder, Encoder):
        raise UserError(f"{FOR}: {model} is a server's model; only one on this machine can be trained")
    return base, base.encoder


def _require_fit(asked: RetrieverTraining, teacher: Ranker | None, dev: Collection | None) -> None:
    if (asked.mine == "cross") != (teacher is not None):
        raise UserError(
            f"{FOR}: mine=cross needs a teacher (a cross-encoder, as a ranker), and no other scheme takes one"
        )
    if asked.patience is not None and dev is None:
        raise UserError(f"{FOR}: patience needs dev queries to judge each epoch by")
    name = parse_loss(asked.loss)[0]
    given = LOSSES[name]
    if given == SCORES and teacher is None:
        raise UserError(f"{FOR}: {name} learns from a teacher's scores; choose mine=cross with a teacher")
    if (given == PAIRS or name == "TripletLoss") and asked.mine == "in-batch":
        raise UserError(f"{FOR}: {name} learns from negatives of its own; choose a scheme that mines them: bm25 or ann")
    if name == "TripletLoss" and asked.negatives_per_positive != 1:
        raise UserError(f"{FOR}: TripletLoss takes one negative a row, got {asked.negatives_per_positive}")


def parse_loss(text: str) -> tuple[str, dict[str, Any]]:
    """Read ``Name(option=value,…)`` as a loss of `LOSSES` and its options: numbers, booleans or words."""
    try:
        stages = parse_stages(text)
    except UserError:  # which speaks of rankers
        stages = []
    if len(stages) != 1 or stages[0].argument is not None or stages[0].k is not None:
        raise UserError(f"cannot read loss {text!r}: expected Name(option=value,…)")
    if stages[0].name not in LOSSES:
        raise unknown("loss", stages[0].name, LOSSES)
    return stages[0].name, {name: _value(value) for name, value in stages[0].options.items()}


def _value(text: str) -> Any:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


class _Trainable:
    """The encoder, what it learns from, and the loss of a batch."""

    def __init__(self, base: Dense, encoder: Encoder, found: RetrieverSet, asked: RetrieverTraining) -> None:
        self.base, self.encoder, self.found, self.asked = base, encoder, found, asked
        self.low = asked.precision == "bfloat16"
        self.queries = found.queries
        # For inference: without dropout, which costs speed. Gradients flow all the same.
        self.module = encoder.module
        self.module.similarity_fn_name = "cosine" if base.cosine else "dot"
        prompts: dict[Kind, str] = {"query": encoder.prefix("query"), "document": encoder.prefix("document")}
        self.module.prompts = {**(self.module.prompts or {}), **prompts}
        self.longest = self.module.max_seq_length or 1 << 20
        self.trained_length = min(self.longest, max(asked.max_query_tokens, asked.max_document_tokens))

    def prepare(self, directory: TrainingDirectory, teacher: Ranker | None) -> None:
        """Make the loss and the batches."""
        self.name, given = parse_loss(self.asked.loss)
        self.criterion = self._criterion(given)
        miner = Miner(self.found, self.asked, teacher, self._vectors, directory.work)
        most = (self.asked.max_query_tokens, self.asked.max_document_tokens)
        lengths = [character_lengths(t, n) for t, n in zip((self.queries, self.found.texts), most, strict=True)]
        self.batches = RetrieverBatches(self.found, miner, self.asked, (lengths[0], lengths[1]))

    def _criterion(self, given: dict[str, Any]) -> Any:
        losses = need("sentence_transformers.sentence_transformer.losses", extra="neural", for_=FOR)
        try:
            loss = getattr(losses, self.name)(self.module, **given)
        except (TypeError, ValueError) as error:
            raise UserError(f"{FOR}: {self.asked.loss}: {checkpoint.first_line(error)}") from error
        if not self.asked.constrained:
            return loss
        from ranktilt.training.losses import DebiasedLoss

        return DebiasedLoss(self.module, loss, alpha=self.asked.alpha, reference=self.asked.reference)

    def loss(self, batch: RetrieverBatch) -> Any:
        """A batch's loss, by sentence-transformers' own code."""
        torch = need("torch", extra="neural", for_=FOR)
        columns, labels = self._columns(batch)
        features = [self._features(texts, kind) for texts, kind in columns]
        target = None if labels is None else torch.tensor(labels, dtype=torch.float32, device=self.module.device)
        low = torch.autocast(self.module.device.type, dtype=torch.bfloat16, enabled=self.low)
        if self.asked.alpha and self.asked.reference == "paper":
            # A sum over the rows beside a mean: without this it would weigh less in a smaller batch, and in halves.
            self.criterion.alpha = self.asked.alpha * self.asked.batch / len(batch.queries)
        with low, _separate_columns(self.module.device):
            return self.criterion(features, target)

    def _columns(self, batch: RetrieverBatch) -> tuple[list[tuple[list[str], Kind]], Any]:
        """Texts of query, positive, twin where there is a constraint, and negatives; and the labels of the rows."""
        queries, documents, given = batch.queries, batch.documents, LOSSES[self.name]
        labels: Any = batch.scores if given == SCORES else None
        relevant = np.ones(len(queries), dtype=np.bool_)
        if given == PAIRS:
            relevant = np.tile(np.arange(documents.shape[1]) == 0, len(queries))
            labels = relevant.astype(np.float64)
            queries, documents = np.repeat(queries, documents.shape[1]), documents.reshape(-1, 1)
        columns: list[tuple[list[str], Kind]] = [([self.queries[q] for q in queries.tolist()], "query")]
        columns += [([self.found.texts[d] for d in side], "document") for side in documents.T.tolist()]
        if self.asked.constrained:
            columns.insert(2, (self._twins(documents[:, 0], relevant), "document"))
        return columns, labels

    def _twins(self, documents: Ints, relevant: npt.NDArray[np.bool_]) -> list[str]:
        """The text of each relevant document's twin; nothing where there is none."""
        places = self.found.twins[documents]
        has = (relevant & (places != documents)).tolist()
        return [self.found.texts[place] if one else "" for place, one in zip(places.tolist(), has, strict=True)]

    def _cut(self, kind: Kind) -> None:
        most = self.asked.max_query_tokens if kind == "query" else self.asked.max_document_tokens
        self.module.max_seq_length = min(most, self.longest)

    def _features(self, texts: list[str], kind: Kind) -> dict[str, Any]:
        self._cut(kind)
        prompt = self.encoder.prefix(kind)
        if hasattr(self.module, "preprocess"):
            found = self.module.preprocess(texts, prompt=prompt or None, task=kind)
        else:  # sentence-transformers 5
            found = self.module.tokenize([f"{prompt}{text}" for text in texts])
        device = self.module.device
        return {name: value.to(device) if hasattr(value, "to") else value for name, value in found.items()}

    def _encoded(self, texts: list[str], kind: Kind, label: str) -> Vectors:
        """Vectors of texts by the model as it is now."""
        torch = need("torch", extra="neural", for_=FOR)
        self._cut(kind)
        parts = []
        for start in range(0, len(texts), _ENCODED_TEXTS):
            with torch.autocast(self.module.device.type, dtype=torch.bfloat16, enabled=self.low):
                part, prompt = texts[start : start + _ENCODED_TEXTS], self.encoder.prefix(kind)
                parts.append(self.module.encode(part, prompt=prompt, batch_size=64, show_progress_bar=False))
            report(label, start + len(part), len(texts))
        return np.concatenate(parts)

    def _vectors(self) -> tuple[Vectors, Vectors, bool]:
        documents = self.found.texts[: self.found.part.docs.height]
        label = f"{FOR}: encoding for negatives"
        queries = self._encoded(self.found.queries, "query", label)
        return queries, self._encoded(documents, "document", label), self.base.cosine

    def positive_scores(self) -> float:
        """Mean absolute score of relevant documents before training; found once for all trainings on a collection."""
        asked = self.asked
        key = (__name__, self.encoder.fingerprint, asked.seed, asked.max_query_tokens, asked.max_document_tokens)
        return self.found.part.memo(key, self._positive_scores)

    def _positive_scores(self) -> float:
        rng = np.random.default_rng([self.asked.seed, 1 << 31])
        pairs = [(q, int(d)) for q, rows in enumerate(self.found.positives) for d in rows]
        chosen = [pairs[i] for i in rng.permutation(len(pairs))[:_SCORED_ROWS]]
        label = f"{FOR}: scoring relevant documents"
        queries = self._encoded([self.found.queries[q] for q, _ in chosen], "query", label)
        documents = self._encoded([self.found.texts[d] for _, d in chosen], "document", label)
        if self.base.cosine:
            queries, documents = (v / np.linalg.norm(v, axis=1, keepdims=True) for v in (queries, documents))
        return float(np.abs((queries * documents).sum(axis=1)).mean())

    def evaluation(self, dev: Collection) -> Any:
        """What judges the model after an epoch."""
        from ranktilt.training.evaluator import SourceBiasEvaluator

        source = self.found.part.sources[0]
        judge = SourceBiasEvaluator(dev, name="dev", source=source, text=self.asked.text, write_csv=False)

        def evaluate(step: int) -> tuple[float, dict[str, float]]:
            self.module.max_seq_length = self.trained_length
            found = {name: round(float(value), 6) for name, value in judge(self.module).items()}
            return found[judge.primary_metric], found

        return evaluate

    def save(self, folder: Path, record: dict[str, Any]) -> None:
        """Write the model as sentence-transformers reads it, cut and prefixed as in training, and a card."""
        self.module.max_seq_length = self.trained_length
        with checkpoint.loading(f"{folder}: cannot be written", for_=FOR):
            try:
                self.module.save(str(folder), create_model_card=False)
                (folder / "README.md").write_text(_card(record), encoding="utf-8")
            except OSError as error:
                raise cannot_write(folder, error) from error


def _separate_columns(device: Any) -> Any:
    """Keep queries from being padded to the length of documents, as sentence-transformers does to merge columns."""
    if device.type != "cpu":
        return nullcontext()
    try:
        merged = need("sentence_transformers.base.losses.merged_forward", extra="neural", for_=FOR)
    except ImportError:  # versions before 6 merge nothing
        return nullcontext()
    return merged.column_merging_disabled()


def _card(record: dict[str, Any]) -> str:
    """What a model card says: made of what, how, and with which constraint."""
    spec, figures = record["spec"], record["figures"]
    constraint = "no debiased constraint"
    if spec["alpha"] > 0:
        constraint = (
            f"the debiased constraint of Dai et al. (KDD 2024), α = {spec['alpha']:g} on the scale of its scores "
            f"(relevant documents: {figures['mean_score_before']:.2f} on average before), against {spec['twin_source']}"
        )
    return f"""---
library_name: sentence-transformers
pipeline_tag: sentence-similarity
base_model: {record["from"]}
---

# A retriever trained by RankTilt {record["ranktilt"]}

From {record["from"]} on {record["collection"]["path"]} (split {record["collection"]["split"]}): {figures["queries"]:,}
queries with {figures["positives"]:,} relevant documents, {figures["steps"]:,} steps of {spec["batch"]} rows,
{spec["loss"]}, negatives: {spec["mine"]}, {constraint}.

`ranktilt audit DIR -r dense:FOLDER` says what it favours; `training.json` holds all options, hashes and figures.
"""
