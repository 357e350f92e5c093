"""The debiased constraint on any ranking loss of sentence-transformers.

The *constraint* is a penalty for scoring a language model's rewrite above its human original; the
two are *twins*. A *bi-encoder* turns query and document into a vector each, and their similarity is
the score; a *cross-encoder* reads both together, and its last layer gives the score, the *logit*.
Only the attribute `ranktilt.training.DebiasedLoss` and trainings import this
module, so that torch is loaded when a loss is made.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from math import inf
from typing import Any

from ranktilt.errors import UserError, unknown_name
from ranktilt.optional import need

_FOR = "DebiasedLoss"
"""Name of the feature that needs the library, for messages."""
VARIANTS = ("paper", "code")
"""Forms of the constraint: as in the paper, or as in the authors' code."""

torch: Any = need("torch", extra="neural", for_=_FOR)


class DebiasedLoss(torch.nn.Module):  # type: ignore[misc]  # torch is optional: no types
    """A ranking loss plus a penalty where an LLM's rewrite outscores its human original.

    The total is L_rank + α · Σ max(0, r̂(q, d_G) − r̂(q, d_H)) (Dai et al., KDD 2024, eq. 1–2).
    L_rank is the wrapped loss, which does not see the rewrites. The sum is over the rows of a
    batch; q is a row's query, d_H its human document, d_G the LLM-written twin of that document,
    and r̂ the model's score. A small α levels a ranker that favours rewrites; a larger one makes it
    favour human text.

    ``SentenceTransformerTrainer`` and ``CrossEncoderTrainer`` take it as they take any loss of
    sentence-transformers.

    Parameters
    ----------
    model : SentenceTransformer or CrossEncoder
        The model that is trained.
    loss : torch.nn.Module
        Any loss of sentence-transformers that learns from a query, a relevant document and
        optionally negatives. If it can be computed from embeddings, as most can, each text is
        encoded once for both terms of the sum. Otherwise texts are encoded a second time for the
        constraint.
    alpha : float
        Weight α of the constraint, at least 0. It is on the scale of the model's scores: the
        similarity of a bi-encoder (``similarity_fn_name``), or the logit of a cross-encoder. The
        paper's values of 1e-4 to 1e-2 are for ANCE, whose dot products are in the hundreds; they
        are small for a cosine. The terms of a batch are summed, so the constraint weighs more in
        larger batches.
    variant : {"paper", "code"}, optional
        ``"paper"`` is the formula above. ``"code"`` is what the authors released, for bi-encoders:
        the cross-entropy of the human document, plus that of its twin, each against all other
        documents of the batch, plus α times the mean of the terms above. All use the scores as the
        wrapped loss scales them. That loss must be ``MultipleNegativesRankingLoss`` or its cached
        form, and only its scale and similarity are used.

    Raises
    ------
    UserError
        If `alpha` or `variant` is out of range, or `loss` holds another model.

    Notes
    -----
    Columns are known by their order, not by their names:

    ==================================================== ================================
    Columns                                              Labels
    ==================================================== ================================
    query, human document, its LLM twin                  as the wrapped loss needs them
    query, human document, its LLM twin, negative, …     as the wrapped loss needs them
    ==================================================== ================================

    A row without a twin has an empty text in the third column (or None, for cross-encoders), and
    counts in the wrapped loss only. If labels say that a row's document is not relevant, leave its
    twin empty, because the constraint is about relevant documents.
    """

    def __init__(self, model: Any, loss: Any, *, alpha: float, variant: str = "paper") -> None:
        super().__init__()
        library = need("sentence_transformers", extra="neural", for_=_FOR)
        if not isinstance(alpha, int | float) or not 0 <= alpha < inf:
            raise UserError(f"{_FOR}: expected an alpha of at least 0, got {alpha}")
        if variant not in VARIANTS:
            raise unknown_name(f"variant of {_FOR}", variant, VARIANTS)
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
        # A trainer may replace `model` by a wrapper that lacks these attributes.
        if not self._reads_pairs:
            self._similarity = model.similarity_pairwise
            self._preprocess = model.preprocess
            self._prompts = tuple({"", *(model.prompts or {}).values()})

    def forward(self, inputs: Iterable[Any], labels: Any = None, **options: Any) -> Any:
        """Return the loss of a batch.

        Parameters
        ----------
        inputs : iterable
            Columns of features (tokens) for a bi-encoder, or of texts for a cross-encoder.
        labels : Tensor, optional
            Labels of the rows, if the wrapped loss needs them.
        **options
            Further arguments of the wrapped loss, and of a cross-encoder's preprocessing.
        """
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
        """Tell which rows have a twin: whether the text of the third column is not empty.

        The trainer has already turned texts into tokens, and may have put a prompt before each
        text. So the text is empty if the tokens are those of an empty text after one of the
        prompts. If the columns are not tokens, every row counts as one with a twin.
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
        """Return the constraint, weighted by α, from vectors of query, human document and twin."""
        query, human, llm = vectors[:3]
        human_scores = self._similarity(query, human)
        llm_scores = self._similarity(query, llm)
        return self.alpha * _penalties(human_scores, llm_scores, has_twin).sum()

    def _cached_loss(self, columns: list[Any], labels: Any, has_twin: Any) -> Any:
        """Return the ranking loss plus the constraint by gradient caching.

        A cached loss encodes a large batch in mini-batches, computes the loss and its gradient from
        all vectors, and encodes again to carry the gradient on to the weights. A copy of the loss
        does this for the twins too: its `calculate_loss` adds the constraint.
        """
        cached_loss, calculate_rank_loss = copy(self.loss), self.loss.calculate_loss

        def calculate_loss(
            mini_batches: list[Any], labels: Any = None, *, with_backward: bool = False
        ) -> Any:
            vectors = [torch.cat(column) for column in mini_batches]
            if self.variant == "code":
                # The released code replaces the wrapped loss.
                rank_loss, constraint = 0.0, self._softmax_loss(vectors, has_twin)
            else:
                ranked = _without_twins(mini_batches)
                rank_loss = calculate_rank_loss(ranked, labels, with_backward=with_backward)
                constraint = self._constraint(vectors, has_twin)
            if with_backward:
                constraint.backward()
                constraint = constraint.detach()
            return rank_loss + constraint

        cached_loss.calculate_loss = calculate_loss
        return cached_loss.forward_cached(columns, labels)

    def _softmax_loss(self, vectors: Sequence[Any], has_twin: Any) -> Any:
        """Return the loss that Dai et al. released as code, ``variant="code"``.

        Scores are matrices with a row for each query and a column for each row's document, so that
        a query's own document is on the diagonal. A query chooses its human document among all
        documents but its twin, and its twin among all but its human document.
        """
        query, *documents = vectors
        human, llm, *negatives = (
            self.loss.similarity_fct(query, document) * self.loss.scale for document in documents
        )
        is_own = torch.eye(len(human), dtype=torch.bool, device=human.device)
        own_columns = torch.arange(len(human), device=human.device)
        has_twin = has_twin.to(human.device).expand(len(human))
        # A score of −∞ takes a document out of a choice; here, the columns of missing twins.
        llm = llm.masked_fill(~has_twin, -inf)
        human_choice = [human, llm.masked_fill(is_own, -inf), *negatives]
        total = _cross_entropy(human_choice, own_columns)
        if not has_twin.any():
            return total
        twin_choice = [llm, human.masked_fill(is_own, -inf), *negatives]
        total = total + _cross_entropy(
            [scores[has_twin] for scores in twin_choice], own_columns[has_twin]
        )
        penalties = _penalties(human.diagonal(), llm.diagonal(), has_twin)
        return total + self.alpha * penalties.sum() / has_twin.sum()

    def _pair_loss(
        self, columns: list[Any], ranked: list[Any], labels: Any, options: dict[str, Any]
    ) -> Any:
        """Return the ranking loss plus the constraint of a cross-encoder.

        `columns` are all columns of texts, `ranked` those without the twins.
        """
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
    """Cross-entropy of choosing the relevant document among the negatives of its row.

    ``MultipleNegativesRankingLoss`` of sentence-transformers also uses the documents of the other
    rows in the batch. A re-ranker never has to reject these, because BM25 did not retrieve them for
    the query.

    Parameters
    ----------
    model : CrossEncoder
        The model that is trained.
    """

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, inputs: Sequence[Sequence[str]], labels: Any = None, **options: Any) -> Any:
        """Return the loss of a batch: columns of query, relevant document, and negatives.

        The loss takes `labels` as all losses do, but does not use them: the relevant document comes
        first.
        """
        queries, *documents = inputs
        pairs = list[tuple[str, str]]()
        for column in documents:
            pairs.extend(zip(queries, column, strict=True))
        scores = _pair_logits(self.model, pairs, options).view(len(documents), -1).T
        first_column = torch.zeros(len(queries), dtype=torch.long, device=scores.device)
        return _cross_entropy([scores], first_column)


def _pair_logits(model: Any, pairs: Sequence[tuple[str, str]], options: dict[str, Any]) -> Any:
    """Return a cross-encoder's logit for each pair; `options` are those of its preprocessing."""
    device = next(model.parameters()).device
    features = {
        name: value.to(device) if hasattr(value, "to") else value
        for name, value in model.preprocess(pairs, **options).items()
    }
    return model(features)["scores"].view(-1)


def _without_twins(columns: Sequence[Any]) -> list[Any]:
    """Return the columns that the wrapped loss learns from: all but the third, the twins."""
    return [*columns[:2], *columns[3:]]


def _penalties(human: Any, llm: Any, has_twin: Any) -> Any:
    """Return how far each twin scores above its human document; 0 if below, or without a twin."""
    return torch.relu(llm - human).masked_fill(~has_twin.to(human.device), 0)


def _cross_entropy(scores: list[Any], right_columns: Any) -> Any:
    """Return the mean cross-entropy of the softmax over each row of scores.

    `scores` are matrices that are put side by side; `right_columns` is the index of the right
    column in each row.
    """
    return torch.nn.functional.cross_entropy(torch.cat(scores, dim=1), right_columns)


def _token_rows(features: Any) -> list[list[int]]:
    """Return each row's tokens, without padding."""
    ids, mask = features["input_ids"].cpu(), features["attention_mask"].bool().cpu()
    return [row[is_token].tolist() for row, is_token in zip(ids, mask, strict=True)]
