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
"""What the library is needed for."""
VARIANTS = ("paper", "code")
"""Forms of the constraint: as in the paper, or as in the authors' code."""

torch: Any = need("torch", extra="neural", for_=_FOR)


class DebiasedLoss(torch.nn.Module):  # type: ignore[misc]  # torch is optional: no types
    """A ranking loss plus a penalty where an LLM's rewrite outscores its human original.

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
                f"{_FOR}: {type(loss).__name__} trains another model; "
                "build it with the model given here"
            )
        self._reads_pairs = isinstance(model, library.CrossEncoder)
        is_softmax_over_batch = type(loss).__name__.endswith("MultipleNegativesRankingLoss")
        if variant == "code" and (self._reads_pairs or not is_softmax_over_batch):
            raise UserError(
                f"{_FOR}: variant='code' is a softmax over the batch: expected "
                f"MultipleNegativesRankingLoss of a bi-encoder, got {type(loss).__name__}"
            )
        self.model = model
        self.loss = loss
        self.alpha = alpha
        self.variant = variant
        # A trainer may put a wrapper in the place of `model` that has none of these.
        if not self._reads_pairs:
            self._similarity = model.similarity_pairwise
            self._preprocess = model.preprocess
            self._prompts = tuple({"", *(model.prompts or {}).values()})

    def forward(self, inputs: Iterable[Any], labels: Any = None, **options: Any) -> Any:
        """Return the loss of a batch: columns of features, or of texts for a cross-encoder."""
        columns = list(inputs)
        if len(columns) < 3:
            raise UserError(
                f"{_FOR}: expected columns query, human document, its LLM twin (and negatives), "
                f"got {len(columns)}"
            )
        query, human, llm, *negatives = columns
        ranked = [query, human, *negatives]
        if self.variant == "paper" and not self.alpha:
            return self.loss(ranked, labels, **options)
        if self._reads_pairs:
            return self._pair_loss(columns, ranked, labels, options)
        has_twin = self._twin_mask(llm)
        if hasattr(self.loss, "forward_cached") and self.loss.uses_gradient_cache:
            return self._cached_loss(columns, labels, has_twin)
        if self.variant == "code":
            return self._softmax_loss(self._encode(columns), has_twin)
        if hasattr(self.loss, "compute_loss_from_embeddings"):
            # The ranking loss and the constraint share one encoding of each text.
            vectors = self._encode(columns)
            rank_loss = self.loss.compute_loss_from_embeddings(_without_twins(vectors), labels)
        else:
            rank_loss = self.loss(ranked, labels)
            vectors = self._encode([query, human, llm])
        return rank_loss + self._constraint(vectors, has_twin)

    def _encode(self, columns: Sequence[Any]) -> list[Any]:
        """Return the vectors of each column."""
        return [self.model(features)["sentence_embedding"] for features in columns]

    def _twin_mask(self, features: Any) -> Any:
        """Mark the rows whose third column is not an empty text.

        The trainer has already turned texts into tokens, and may have put a prompt before each
        text. A row has no twin if its tokens are those of an empty text after one of the prompts.
        If the columns are not tokens, every row counts as one with a twin.
        """
        ids, mask = features.get("input_ids"), features.get("attention_mask")
        if ids is None or mask is None or ids.ndim != 2:
            return torch.ones((), dtype=torch.bool)
        empty_texts = []
        for prompt in self._prompts:
            empty = self._preprocess([""], prompt=prompt or None, task=features.get("task"))
            empty_texts.append(_token_rows(empty)[0])
        has_twin = [tokens not in empty_texts for tokens in _token_rows(features)]
        return torch.tensor(has_twin, device=ids.device)

    def _constraint(self, vectors: Sequence[Any], has_twin: Any) -> Any:
        """Return α · Σ max(0, r̂(q, d_G) − r̂(q, d_H)) of vectors of query, human text and twin.

        r̂ is the model's similarity of query q and document d, G is the LLM and H the human author.
        """
        query, human, llm = vectors[:3]
        human_scores = self._similarity(query, human)
        llm_scores = self._similarity(query, llm)
        return self.alpha * _hinges(human_scores, llm_scores, has_twin).sum()

    def _cached_loss(self, columns: list[Any], labels: Any, has_twin: Any) -> Any:
        """Return the ranking loss plus the constraint by gradient caching.

        A cached loss encodes a large batch in mini-batches, computes the loss and its gradient from
        all vectors, and encodes again to carry the gradient on to the weights. Here it does so for
        the twins as well: the copy's `calculate_loss` adds the constraint.
        """
        cached, calculate_rank_loss = copy(self.loss), self.loss.calculate_loss

        def calculate_loss(
            mini_batches: list[Any], labels: Any = None, *, with_backward: bool = False
        ) -> Any:
            vectors = [torch.cat(column) for column in mini_batches]
            if self.variant == "code":
                rank_loss, constraint = 0.0, self._softmax_loss(vectors, has_twin)
            else:
                ranked = _without_twins(mini_batches)
                rank_loss = calculate_rank_loss(ranked, labels, with_backward=with_backward)
                constraint = self._constraint(vectors, has_twin)
            if with_backward:
                constraint.backward()
                constraint = constraint.detach()
            return rank_loss + constraint

        cached.calculate_loss = calculate_loss
        return cached.forward_cached(columns, labels)

    def _softmax_loss(self, vectors: Sequence[Any], has_twin: Any) -> Any:
        """Return the loss that Dai et al. released as code, ``variant="code"``.

        Each part is a matrix of scores with a row for each query and a column for each row's
        document, so that a query's own document is on the diagonal. A query chooses its human
        document among all documents but its twin, and its twin among all but its human document.
        """
        query, *documents = vectors
        human, llm, *negatives = (
            self.loss.similarity_fct(query, document) * self.loss.scale for document in documents
        )
        same_row = torch.eye(len(human), dtype=torch.bool, device=human.device)
        target = torch.arange(len(human), device=human.device)
        has_twin = has_twin.to(human.device).expand(len(human))
        llm = llm.masked_fill(~has_twin, -inf)
        total = _cross_entropy([human, llm.masked_fill(same_row, -inf), *negatives], target)
        if not has_twin.any():
            return total
        choices = [llm, human.masked_fill(same_row, -inf), *negatives]
        total = total + _cross_entropy([scores[has_twin] for scores in choices], target[has_twin])
        hinges = _hinges(human.diagonal(), llm.diagonal(), has_twin)
        return total + self.alpha * hinges.sum() / has_twin.sum()

    def _pair_loss(
        self, columns: list[Any], ranked: list[Any], labels: Any, options: dict[str, Any]
    ) -> Any:
        """Return the ranking loss plus the constraint of a cross-encoder, which takes texts."""
        queries, human_texts, llm_texts = columns[:3]
        if not all(isinstance(text, str) for text in human_texts):
            raise UserError(
                f"{_FOR}: expected one human document in a row, got {type(human_texts[0]).__name__}"
            )
        rank_loss = self.loss(ranked, labels, **options)
        human_pairs, llm_pairs = list[tuple[str, str]](), list[tuple[str, str]]()
        for query, human, llm in zip(queries, human_texts, llm_texts, strict=True):
            if llm:
                human_pairs.append((query, human))
                llm_pairs.append((query, llm))
        if not llm_pairs:
            return rank_loss
        # One pass for both, so that the model reads the pairs in one batch.
        logits = _pair_logits(self.model, [*human_pairs, *llm_pairs], options)
        human_scores, llm_scores = logits.view(2, -1)
        return rank_loss + self.alpha * torch.relu(llm_scores - human_scores).sum()

    def get_config_dict(self) -> dict[str, Any]:
        """Return the loss's entries in a model card."""
        return {"loss": type(self.loss).__name__, "alpha": self.alpha, "variant": self.variant}


class ChoiceLoss(torch.nn.Module):  # type: ignore[misc]  # torch is optional: no types
    """Cross-entropy of choosing the relevant document among its own negatives.

    The library's ``MultipleNegativesRankingLoss`` also takes the negatives of the batch's other
    queries. A re-ranker sees only what BM25 found for the query, and these it did not find.
    """

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, inputs: Sequence[Sequence[str]], labels: Any = None, **options: Any) -> Any:
        """Return the loss of columns of query, relevant document, and negatives."""
        queries, *documents = inputs
        pairs = list[tuple[str, str]]()
        for column in documents:
            pairs.extend(zip(queries, column, strict=True))
        scores = _pair_logits(self.model, pairs, options).view(len(documents), -1).T
        relevant = torch.zeros(len(queries), dtype=torch.long, device=scores.device)
        return _cross_entropy([scores], relevant)


def _pair_logits(model: Any, pairs: Sequence[tuple[str, str]], options: dict[str, Any]) -> Any:
    """Return a cross-encoder's logit of each pair."""
    device = next(model.parameters()).device
    features = {
        name: value.to(device) if hasattr(value, "to") else value
        for name, value in model.preprocess(pairs, **options).items()
    }
    return model(features)["scores"].view(-1)


def _without_twins(columns: Sequence[Any]) -> list[Any]:
    """Return the columns that the wrapped loss learns from: all but the third."""
    return [*columns[:2], *columns[3:]]


def _hinges(human: Any, llm: Any, has_twin: Any) -> Any:
    """Return max(0, r̂(q, d_G) − r̂(q, d_H)) of each row; 0 without a twin."""
    return torch.relu(llm - human).masked_fill(~has_twin.to(human.device), 0)


def _cross_entropy(scores: list[Any], target: Any) -> Any:
    """Return the cross-entropy of the softmax over each row of scores.

    `scores` are the columns in several parts; `target` is the right column of each row.
    """
    return torch.nn.functional.cross_entropy(torch.cat(scores, dim=1), target)


def _token_rows(features: Any) -> list[list[int]]:
    """Return each row's tokens, without padding."""
    ids, mask = features["input_ids"].cpu(), features["attention_mask"].bool().cpu()
    return [row[is_token].tolist() for row, is_token in zip(ids, mask, strict=True)]
