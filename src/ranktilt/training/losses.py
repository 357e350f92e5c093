"""The debiased constraint on any ranking loss of sentence-transformers.

Only `ranktilt.training.DebiasedLoss` imports this module, so that torch is loaded when a loss is
made.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from math import inf
from typing import Any

from ranktilt.errors import UserError, unknown
from ranktilt.optional import need

_FOR = "DebiasedLoss"
VARIANTS = ("paper", "code")

torch: Any = need("torch", extra="neural", for_=_FOR)


class DebiasedLoss(torch.nn.Module):  # type: ignore[misc]  # torch is optional: no types
    """A ranking loss, and what it costs that an LLM's rewrite outscores the human document that it was made from.

    The total is L_rank + α · Σ max(0, r̂(q, d_G) − r̂(q, d_H)): the wrapped loss, which does not
    see the rewrites, and a hinge for each row whose LLM-written twin d_G scores above its human
    document d_H (Dai et al., KDD 2024, eq. 1–2). A small α levels a ranker that favours rewrites; a
    larger one turns it towards human text.

    It is a loss like any other of sentence-transformers: ``SentenceTransformerTrainer`` and
    ``CrossEncoderTrainer`` take it unchanged.

    Parameters
    ----------
    model : SentenceTransformer or CrossEncoder
        The model that is trained.
    loss : torch.nn.Module
        Any loss of sentence-transformers that learns from a query, a relevant document and,
        perhaps, further ones. Where it takes embeddings (most do; so do the cached ones, in
        mini-batches) each text is encoded once for both terms; otherwise the constraint has a
        forward pass of its own.
    alpha : float
        Weight of the constraint, at least 0, on the scale of the scores that it compares: the
        model's own similarity (``similarity_fn_name``; a cosine lies between −1 and 1, ANCE's dot
        products are in the hundreds, so that the paper's values of 1e-4 to 1e-2 are small for a
        cosine), or a cross-encoder's logit, before any activation. The hinges of a batch are
        summed, so the constraint weighs more in larger batches.
    variant : {"paper", "code"}, optional
        ``"paper"`` is the formula above. ``"code"`` is what the authors released, for bi-encoders:
        the cross-entropy of the human document and that of its twin, each against both sources'
        other documents in the batch, plus α times the mean hinge, all on scores as the wrapped loss
        scales them. The wrapped loss must be ``MultipleNegativesRankingLoss`` or its cached form,
        of which only scale and similarity are used.

    Raises
    ------
    UserError
        If `alpha` or `variant` is out of range, or `loss` holds another model.

    Notes
    -----
    The order of the columns counts, not their names; labels are those of the wrapped loss:

    ==================================================== ================================
    Columns                                              Labels
    ==================================================== ================================
    query, human document, its LLM twin                  as the wrapped loss needs them
    query, human document, its LLM twin, negative, …     as the wrapped loss needs them
    ==================================================== ================================

    A row without a twin has an empty text (of cross-encoders also None) in the third column; it
    takes part in the ranking loss only. Where labels say that a row's document is not relevant,
    leave its twin empty: the constraint is about relevant documents.
    """

    def __init__(self, model: Any, loss: Any, *, alpha: float, variant: str = "paper") -> None:
        super().__init__()
        library = need("sentence_transformers", extra="neural", for_=_FOR)
        if not isinstance(alpha, int | float) or not 0 <= alpha < inf:
            raise UserError(f"{_FOR}: expected an alpha of at least 0, got {alpha}")
        if variant not in VARIANTS:
            raise unknown(f"variant of {_FOR}", variant, VARIANTS)
        if getattr(loss, "model", model) is not model:
            raise UserError(
                f"{_FOR}: {type(loss).__name__} trains another model; build it with the model given here"
            )
        self._reads_pairs = isinstance(model, library.CrossEncoder)
        usable = not self._reads_pairs and type(loss).__name__.endswith(
            "MultipleNegativesRankingLoss"
        )
        if variant == "code" and not usable:
            raise UserError(
                f"{_FOR}: variant='code' is a softmax over the batch: expected MultipleNegativesRankingLoss of a "
                f"bi-encoder, got {type(loss).__name__}"
            )
        self.model, self.loss = model, loss
        self.alpha, self.variant = alpha, variant
        # A trainer may put a wrapper in the place of `model` that has none of these.
        if not self._reads_pairs:
            self._similarity = model.similarity_pairwise
            self._preprocess = model.preprocess
            self._prompts = tuple({"", *(model.prompts or {}).values()})

    def forward(self, inputs: Iterable[Any], labels: Any = None, **options: Any) -> Any:
        """Return the loss of a batch, given by columns: features of a bi-encoder, texts of a cross-encoder."""
        columns = list(inputs)
        if len(columns) < 3:
            raise UserError(
                f"{_FOR}: expected columns query, human document, its LLM twin (and negatives), got {len(columns)}"
            )
        ranked = [*columns[:2], *columns[3:]]
        if self.variant == "paper" and not self.alpha:
            return self.loss(ranked, labels, **options)
        if self._reads_pairs:
            return self._pair_loss(columns, ranked, labels, options)
        twins = self._twin_mask(columns[2])
        if hasattr(self.loss, "forward_cached") and self.loss.uses_gradient_cache:
            return self._cached_loss(columns, labels, twins)
        if self.variant == "code" or hasattr(self.loss, "compute_loss_from_embeddings"):
            vectors = [self.model(one)["sentence_embedding"] for one in columns]
            if self.variant == "code":
                return self._softmax_loss(vectors, twins)
            rank_loss = self.loss.compute_loss_from_embeddings([*vectors[:2], *vectors[3:]], labels)
            return rank_loss + self._constraint(vectors, twins)
        rank_loss = self.loss(ranked, labels)
        return rank_loss + self._constraint(
            [self.model(one)["sentence_embedding"] for one in columns[:3]], twins
        )

    def _twin_mask(self, features: Any) -> Any:
        """Which rows have a twin: those whose tokens are not those of an empty text, with or without a prompt."""
        ids, mask = features.get("input_ids"), features.get("attention_mask")
        if ids is None or mask is None or ids.ndim != 2:
            return torch.ones((), dtype=torch.bool)
        task = features.get("task")
        empty = [
            _token_rows(self._preprocess([""], prompt=one or None, task=task))[0]
            for one in self._prompts
        ]
        return torch.tensor([row not in empty for row in _token_rows(features)], device=ids.device)

    def _constraint(self, vectors: Sequence[Any], twins: Any) -> Any:
        """α · Σ max(0, r̂(q, d_G) − r̂(q, d_H)) of vectors of queries, human documents and twins."""
        query, human, llm = vectors[:3]
        return (
            self.alpha
            * _hinges(self._similarity(query, human), self._similarity(query, llm), twins).sum()
        )

    def _cached_loss(self, columns: list[Any], labels: Any, twins: Any) -> Any:
        """Both terms by gradient caching: the wrapped loss hands over all vectors, and takes gradients of all back."""
        cached, inner = copy(self.loss), self.loss.calculate_loss

        def calculate_loss(
            parts: list[Any], labels: Any = None, *, with_backward: bool = False
        ) -> Any:
            vectors = [torch.cat(part) for part in parts]
            if self.variant == "code":
                rank_loss, added = 0.0, self._softmax_loss(vectors, twins)
            else:
                rank_loss = inner([*parts[:2], *parts[3:]], labels, with_backward=with_backward)
                added = self._constraint(vectors, twins)
            if with_backward:
                added.backward()
                added = added.detach()
            return rank_loss + added

        cached.calculate_loss = calculate_loss
        return cached.forward_cached(columns, labels)

    def _softmax_loss(self, vectors: Sequence[Any], twins: Any) -> Any:
        """The authors' released loss: scores of all queries with all human documents, twins, and negatives."""
        query, *documents = vectors
        human, llm, *negatives = (
            self.loss.similarity_fct(query, one) * self.loss.scale for one in documents
        )
        own = torch.eye(len(human), dtype=torch.bool, device=human.device)
        row = torch.arange(len(human), device=human.device)
        twins = twins.to(human.device).expand(len(human))
        llm = llm.masked_fill(~twins, -inf)
        total = _cross_entropy([human, llm.masked_fill(own, -inf), *negatives], row)
        if not twins.any():
            return total
        total = total + _cross_entropy(
            [one[twins] for one in (llm, human.masked_fill(own, -inf), *negatives)], row[twins]
        )
        hinges = _hinges(human.diagonal(), llm.diagonal(), twins)
        return total + self.alpha * hinges.sum() / twins.sum()

    def _pair_loss(
        self, columns: list[Any], ranked: list[Any], labels: Any, options: dict[str, Any]
    ) -> Any:
        """Both terms of a cross-encoder, whose losses take texts."""
        query, human, llm = columns[:3]
        if not all(isinstance(text, str) for text in human):
            raise UserError(
                f"{_FOR}: expected one human document in a row, got {type(human[0]).__name__}"
            )
        rank_loss = self.loss(ranked, labels, **options)
        rows = [
            (asked, one, other)
            for asked, one, other in zip(query, human, llm, strict=True)
            if other
        ]
        if not rows:
            return rank_loss
        pairs = [(asked, one) for asked, one, _ in rows] + [
            (asked, other) for asked, _, other in rows
        ]
        found = _pair_logits(self.model, pairs, options).view(2, -1)
        return rank_loss + self.alpha * torch.relu(found[1] - found[0]).sum()

    def get_config_dict(self) -> dict[str, Any]:
        """Return what a model card says of the loss."""
        return {"loss": type(self.loss).__name__, "alpha": self.alpha, "variant": self.variant}


class ChoiceLoss(torch.nn.Module):  # type: ignore[misc]  # torch is optional: no types
    """A cross-encoder's cross-entropy of choosing the relevant document among its own negatives.

    The library's ``MultipleNegativesRankingLoss`` adds negatives of other queries, which BM25 never
    found for this one.
    """

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, inputs: Sequence[Sequence[str]], labels: Any = None, **options: Any) -> Any:
        """Return the loss of columns of query, relevant document, and negatives."""
        queries, *documents = inputs
        pairs = [pair for column in documents for pair in zip(queries, column, strict=True)]
        scores = _pair_logits(self.model, pairs, options).view(len(documents), -1).T
        return _cross_entropy(
            [scores], torch.zeros(len(queries), dtype=torch.long, device=scores.device)
        )


def _pair_logits(model: Any, pairs: Sequence[tuple[str, str]], options: dict[str, Any]) -> Any:
    features, device = model.preprocess(pairs, **options), next(model.parameters()).device
    features = {
        name: one.to(device) if hasattr(one, "to") else one for name, one in features.items()
    }
    return model(features)["scores"].view(-1)


def _hinges(human: Any, llm: Any, twins: Any) -> Any:
    """max(0, r̂(q, d_G) − r̂(q, d_H)) of each row; 0 without a twin."""
    return torch.relu(llm - human).masked_fill(~twins.to(human.device), 0)


def _cross_entropy(scores: list[Any], right: Any) -> Any:
    return torch.nn.functional.cross_entropy(torch.cat(scores, dim=1), right)


def _token_rows(features: Any) -> list[list[int]]:
    """Each row's tokens, without padding."""
    ids, mask = features["input_ids"].cpu(), features["attention_mask"].bool().cpu()
    return [row[read].tolist() for row, read in zip(ids, mask, strict=True)]
