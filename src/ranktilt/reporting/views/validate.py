"""A validation: what the two sides share, whether either is easier to search, and whether the comparison is fair."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ranktilt.auditing.effects import Equivalence, Outcome
from ranktilt.errors import counted, join_words
from ranktilt.probes.similarity import Similarity
from ranktilt.probes.validation import Validation
from ranktilt.reporting.document import Document, Sentence
from ranktilt.reporting.figures.validation import OUTCOMES, alpha_of
from ranktilt.reporting.tones import Tone
from ranktilt.reporting.views.provenance import folder, provenance
from ranktilt.reporting.views.validate_sections import validation_sections

_UNRELATED = 0.95
_NEAR = 0.95
_MOST_NAMED = 4
_WORDS: dict[Outcome, tuple[str, str]] = {
    "equivalent": ("is equivalent on both sides", "are equivalent on both sides"),
    "different within the margin": ("differs within the margin", "differ within the margin"),
    "different": ("differs", "differ"),
    "inconclusive": ("is inconclusive", "are inconclusive"),
    "not tested": ("is not tested", "are not tested"),
}
"""Of one ranker, and of several."""
_METHOD = (
    "Words are runs of letters between blanks, of the text without its title; terms are the different lower-cased "
    "words. Means leave out what is undefined, and the counts say how much that is.",
    "Equivalence: each ranker ranks each side alone, on the pairs that both sides hold. The two values of a query are "
    "subtracted, and TOST asks whether the mean difference is surely smaller than the margin. A difference that is not "
    "significant is not yet equivalence: with few queries nothing is significant.",
    f"“Close in meaning” is said where at least {100 * _NEAR:.0f} % of the twins are more alike than "
    f"{100 * _UNRELATED:.0f} % of unrelated pairs, by the cosine similarity of the model named there.",
    "The tables and figures are those of Dai et al., Neural Retrievers are Biased Towards LLM-Generated Content, "
    "KDD 2024: Tables 1 and 2, Figures 3, 4 and 5.",
)


def view(validation: Validation) -> Document:
    """Return what is said of a validation."""
    name = folder(validation.spec)
    title = f"Validation of {name}" if name else "Validation"
    return Document(
        title=title,
        kind=title if name else "Validation of a collection",
        headline=headline(validation),
        sections=(*validation_sections(validation), provenance(validation.spec, validation.notes)),
        sentences=tuple(_sentences(validation)),
        legend=tuple(legend(validation)),
        notes=validation.notes,
        method=_METHOD,
    )


def headline(validation: Validation) -> str:
    """Say in one sentence what a validation found: words kept, closeness in meaning, the outcome of each ranker."""
    if not validation.sources:
        documents = sum(row.documents for row in validation.statistics.sources)
        return f"One source, {validation.reference}, with {counted(documents, 'document', 'documents')}: no twins."
    if validation.check is not None and not validation.check.fair:
        return validation.check.sentence
    parts = [_texts(validation)]
    for outcome, words in _WORDS.items():
        found = [row for row in validation.effectiveness if row.outcome == outcome and _primary(row, validation)]
        names = [f"{row.run} ({row.source})" if len(validation.sources) > 1 else row.run for row in found]
        if names:
            parts.append(f"{_first(names)} {words[len(names) > 1]}")
    said = "; ".join(filter(None, parts))
    return f"{said or f'No pair of {_first(validation.sources)} and {validation.reference} could be compared'}."


def _texts(validation: Validation) -> str:
    kept = [one.overlap.mean for one in validation.overlaps if one.overlap.count]
    near = [share for share in map(_near, validation.similarities) if share == share]
    parts = []
    if kept:
        low, high = (f"{100 * value:.0f}" for value in (min(kept), max(kept)))
        parts.append(f"keep {low if low == high else f'{low} to {high}'} % of the words")
    if near:
        parts.append("stay close in meaning" if min(near) >= _NEAR else "do not all stay close in meaning")
    return f"The rewrites {' and '.join(parts)}" if parts else ""


def _near(similarity: Similarity) -> float:
    """Share of the twins that are more alike than nearly all unrelated pairs."""
    if not similarity.baseline.count or not similarity.cosine.count:
        return float("nan")
    return similarity.cosine.above(float(np.quantile(similarity.baseline.defined, _UNRELATED)))


def _primary(row: Equivalence, validation: Validation) -> bool:
    return row.measure == validation.effectiveness[0].measure


def _first(names: Sequence[str]) -> str:
    if len(names) > _MOST_NAMED:
        return f"{', '.join(names[:_MOST_NAMED])} and {len(names) - _MOST_NAMED} more"
    return join_words(names)


def _sentences(validation: Validation) -> Iterator[Sentence]:
    """The check first; then what the primary measure shows of each ranker."""
    check = validation.check
    if check is not None:
        tone: Tone = "bad" if not check.fair else "warning" if check.of("warning") else "good"
        yield Sentence(check.sentence, tone, "strong")
    for row in validation.effectiveness:
        if _primary(row, validation):
            name = f"{row.run} ({row.source})" if len(validation.sources) > 1 else row.run
            yield Sentence(f"{name}: {row.statement}.", OUTCOMES[row.outcome], "strong")


def legend(validation: Validation) -> list[str]:
    """Say how the tables are read, in a few lines."""
    first = validation.reference
    lines = [
        "Words: whitespace words of a text without its title, the mean. Queries: with a relevant document of the "
        "source; relevant each: their mean number."
    ]
    if validation.overlaps:
        lines.append(
            f"Terms: distinct lower-cased words. Jaccard: those of both texts over those of either; overlap: the share "
            f"of {first}'s that the rewrite kept."
        )
    if validation.similarities:
        lines.append(
            f"Twins: a text of {first} and its rewrite; other pairs: a text of {first} and the rewrite of another one, "
            "at random."
        )
    if validation.effectiveness:
        lines += _tests(validation.effectiveness, validation)
    return lines


def _tests(rows: Sequence[Equivalence], validation: Validation) -> list[str]:
    alpha = alpha_of(validation)
    tests = counted(sum(not np.isnan(row.p) for row in rows), "test", "tests")
    return [
        f"Difference: {validation.reference} − rewrite, over queries with a relevant document on both sides; 95 % "
        f"interval of Student's t. p different: paired t test (Holm over {tests}).",
        f"p equivalent: two one-sided paired t tests against ±{rows[0].margin:g}, uncorrected: below {alpha:g} the "
        "difference is smaller than that. Shown from: the smallest margin that would have been shown.",
        "Inconclusive is not equivalent: there, these queries show neither a difference nor that there is none.",
    ]
