"""Train a cross-encoder on a collection's own judgments.

The loop is our own, where sentence-transformers has a trainer, for three reasons. That one writes a checkpoint file by
file into the folder it would later resume from, so a kill in between leaves one that cannot be loaded. It must be told
the number of steps, not the time there is. And it needs two more packages. Here a step is a function of seed and step
number, a checkpoint is one file that is replaced as a whole, and torch and transformers are enough.
"""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from ranktilt._version import __version__
from ranktilt.collection import Collection
from ranktilt.models.checkpoint import fingerprint
from ranktilt.optional import need
from ranktilt.training.batches import Batch, Batches
from ranktilt.training.directory import TrainingDirectory
from ranktilt.training.loop import TrainingLoop, device_of
from ranktilt.training.model import FOR, TrainableModel, find_base_model
from ranktilt.training.options import RerankerTraining, Trained
from ranktilt.training.training_set import Ints, TrainingSet, origin_of, training_set

_PACKAGES = ("torch", "transformers", "tokenizers")


def train_cross_encoder(
    collection: Collection, model: str | Path, folder: str | Path, *, options: RerankerTraining | None = None
) -> Trained:
    """Fine-tune an encoder into a cross-encoder that re-ranks BM25's documents, on a collection's judgments.

    Each group of one relevant document and its negatives is a choice among them: the loss is the cross-entropy of the
    softmax over their scores, or with ``loss="binary"`` that of each pair by itself. AdamW. A training that was
    interrupted, however, goes on from its last checkpoint, and ends with the weights it would have had.

    Parameters
    ----------
    collection : Collection
        Loaded with the judgments to learn from: ``load(DIR, split="train")``.
    model : str or Path
        The encoder: a folder, ``minilm``, or a hub name.
    folder : str or Path
        Where the model goes: new, or with an unfinished training of the same options, which is continued.
    options : RerankerTraining, optional
        How.

    Returns
    -------
    Trained
        `folder` holds weights, configuration, tokenizer and ``training.json``.

    Raises
    ------
    UserError
        Before any work: where there is nothing to learn from, the encoder cannot be used, or the folder holds something
        else. Later: if the loss stops being a number, or the disk is full.

    Examples
    --------
    >>> import ranktilt as rt
    >>> from ranktilt.training.cross_encoder import train_cross_encoder
    >>> from ranktilt.training.options import RerankerTraining
    >>> train = rt.load("DIR", split="train")  # doctest: +SKIP
    >>> train_cross_encoder(train, "minilm", "model", options=RerankerTraining(minutes=20))  # doctest: +SKIP
    """
    began, options = time.monotonic(), options or RerankerTraining()
    torch = need("torch", extra="neural", for_=FOR)
    need("transformers", extra="neural", for_=FOR)
    directory = TrainingDirectory(Path(folder))
    device = device_of(options.device, FOR)
    packages = {name: version(name) for name in _PACKAGES}
    hardware = {"body": fingerprint(find_base_model(str(model))), "device": device.partition(":")[0]}
    spec = {"kind": "cross-encoder", **options.spec(), **hardware, "packages": packages}
    directory.require_same(spec)
    found = training_set(collection, options)
    spec["data"] = _digest(found)
    directory.require_same(spec)
    if directory.record is not None:
        directory.clear()
        return Trained(directory.folder, directory.record, directory.record["figures"]["steps"])
    with torch.random.fork_rng(devices=[]):
        trainable = TrainableModel.load(str(model), device, options.seed, dropout=options.dropout)
        groups = _Groups.of(found, trainable, options)
    loop = TrainingLoop(
        groups.model.model, groups.batches, groups.loss, lambda batch: batch.documents.size, options.rate, FOR,
        warmup=options.warmup_steps, weight_decay=options.weight_decay,
        dropout_seed=options.seed if options.dropout else None,
    )  # fmt: skip
    steps = options.steps or (None if options.minutes else options.epochs * groups.batches.per_epoch)
    resumed = loop.complete(directory, spec, replace(options, steps=steps), began)
    record = {
        "spec": spec,
        "ranktilt": __version__,
        "from": str(model),
        "collection": origin_of(collection),
        "figures": {
            "threads": torch.get_num_threads(),
            "queries": len(found.queries),
            "positives": sum(len(q.positives) for q in found.queries),
            **loop.figures(),
            "skipped_queries": found.skipped,
            "skipped_positives": found.skipped_positives,
        },
    }
    groups.model.save(directory.model_folder(), groups.limit)
    directory.finish(record)
    return Trained(directory.folder, record, resumed)


@dataclass(frozen=True, eq=False)
class _Groups:
    """Texts as they are learned from, and the loss of a batch of them."""

    model: TrainableModel
    queries: list[str]
    documents: list[str]
    batches: Batches
    limit: int
    low: bool
    twins: Ints
    alpha: float
    """Weight of the constraint on each positive of a whole batch."""
    whole: int
    binary: bool

    @classmethod
    def of(cls, found: TrainingSet, model: TrainableModel, options: RerankerTraining) -> _Groups:
        limit = model.limit(options.max_query_tokens, options.max_document_tokens)
        label = f"{FOR}: reading"
        queries, query_tokens = model.cut(
            [q.query for q in found.queries], options.max_query_tokens, f"{label} queries"
        )
        documents, document_tokens = model.cut(found.documents, options.max_document_tokens, f"{label} documents")
        batches = Batches(found, query_tokens, document_tokens, options)
        weight = (found.twins, options.alpha, options.rows, options.loss == "binary")
        return cls(model, queries, documents, batches, limit, options.precision == "bfloat16", *weight)

    def loss(self, batch: Batch) -> Any:
        """The cross-entropy of choosing each group's positive, and the debiased constraint on its twin."""
        torch = need("torch", extra="neural", for_=FOR)
        groups, size = batch.documents.shape
        queries = [self.queries[q] for q in batch.queries for _ in range(size)]
        documents = [self.documents[d] for d in batch.documents.ravel()]
        twins = self.twins[batch.documents[:, 0]]
        paired = (twins != batch.documents[:, 0]) & (self.alpha > 0)
        queries += [self.queries[q] for q in batch.queries[paired]]
        documents += [self.documents[d] for d in twins[paired]]
        features = self.model.features(queries, documents, self.limit)
        with torch.autocast(self.model.model.device.type, dtype=torch.bfloat16, enabled=self.low):
            every = self.model.model(**features).logits.float().view(-1)
        scores = every[: groups * size].view(groups, size)
        relevant = torch.from_numpy(batch.relevant).to(scores)
        if self.binary:
            loss = torch.nn.functional.binary_cross_entropy_with_logits(scores, relevant)
        else:
            loss = torch.nn.functional.cross_entropy(scores, relevant)
        if not paired.any():
            return loss
        above = every[groups * size :] - scores[torch.from_numpy(paired).to(scores.device), 0]
        return loss + self.alpha * self.whole / groups * torch.relu(above).sum()


def _digest(found: TrainingSet) -> str:
    """Hash of all that is learned from."""
    whole = hashlib.blake2b(digest_size=16)
    for text in (*(q.query for q in found.queries), *found.documents):
        data = text.encode()
        whole.update(len(data).to_bytes(8, "little") + data)
    for query in found.queries:
        for rows in (query.positives, *query.negatives):
            whole.update(len(rows).to_bytes(8, "little") + rows.astype("<i8").tobytes())
    if (found.twins != np.arange(len(found.twins))).any():
        whole.update(found.twins.astype("<i8").tobytes())
    return whole.hexdigest()
