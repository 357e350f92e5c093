"""A validation: what the two sides share, and whether either is easier to search."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from ranktilt.auditing.effects import Equivalence, Outcome
from ranktilt.errors import counted, listed
from ranktilt.probes.overlap import terms_sentence
from ranktilt.probes.similarity import Similarity, vectors_sentence
from ranktilt.probes.validation import Validation, effectiveness_sentences
from ranktilt.reporting.document import PAGE, TEXT, Block, Document, Lines, Section, Sentence
from ranktilt.reporting.views.check import check_table, sentences
from ranktilt.reporting.views.check import legend as check_legend
from ranktilt.reporting.views.provenance import folder, provenance
from ranktilt.reporting.views.validate_sections import OUTCOMES, validation_sections
from ranktilt.reporting.views.validate_text import legend, numbers_table, text_tables

_UNRELATED = 0.95
_KEPT = 0.95
_WORDS: dict[Outcome, tuple[str, str]] = {
    "equivalent": ("is equivalent on both sides", "are equivalent on both sides"),
    "different within the margin": ("differs within the margin", "differ within the margin"),
    "different": ("differs", "differ"),
    "inconclusive": ("is inconclusive", "are inconclusive"),
    "not tested": ("is not tested", "are not tested"),
}
"""Of one ranker, and of several."""
_NAMED = 4


def view(validation: Validation) -> Document:
    """Return what is said of a validation."""
    name = folder(validation.spec)
    title = f"Validation of {name}" if name else "Validation"
    check = validation.check
    sections = [*validation_sections(validation), provenance(validation.spec, validation.notes)]
    blocks: list[Block] = list(text_tables(validation))
    if check is not None:
        said = (*sentences(check), *(Sentence(text, emphasis="quiet") for text in check_legend(check)))
        table = replace(check_table(check), caption="Check", titled=True, above=1, only=TEXT)
        blocks += [table, Lines(said)]
    return Document(
        title=title,
        kind=title if name else "Validation of a collection",
        headline=headline(validation),
        sections=(Section("text", "", (), tuple(blocks)), *sections),
        sentences=(
            *_verdicts(validation),
            *(Sentence(sentence, emphasis="strong", only=TEXT) for sentence in validation.sentences()),
        ),
        legend=tuple(legend(validation)),
        notes=validation.notes,
        method=_METHOD,
        data=numbers_table(validation),
    )


_METHOD = (
    "Words are runs of letters between blanks, of the text without its title; terms are the different lower-cased "
    "words. Means leave out what is undefined, and the counts say how much that is.",
    "Equivalence: each ranker ranks each side alone, on the pairs that both sides hold. The two values of a query are "
    "subtracted, and TOST asks whether the mean difference is surely smaller than the margin. A difference that is not "
    "significant is not yet equivalence: with few queries nothing is significant.",
    f"“Close in meaning” is said where at least {100 * _KEPT:.0f} % of the twins are more alike than "
    f"{100 * _UNRELATED:.0f} % of unrelated pairs, by the cosine similarity of the model named there.",
    "The tables and figures are those of Dai et al., Neural Retrievers are Biased Towards LLM-Generated Content, "
    "KDD 2024: Tables 1 and 2, Figures 3, 4 and 5.",
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
        names = [_label(row, validation) for row in _primary(validation) if row.outcome == outcome]
        if names:
            parts.append(f"{_listed(names)} {words[len(names) > 1]}")
    said = "; ".join(filter(None, parts))
    return f"{said or f'No pair of {_listed(validation.sources)} and {validation.reference} could be compared'}."


def _texts(validation: Validation) -> str:
    kept = [one.overlap.mean for one in validation.overlaps if one.overlap.count]
    near = [share for share in map(_near, validation.similarities) if share == share]
    parts = []
    if kept:
        low, high = (f"{100 * value:.0f}" for value in (min(kept), max(kept)))
        parts.append(f"keep {low if low == high else f'{low} to {high}'} % of the words")
    if near and min(near) >= _KEPT:
        parts.append("stay close in meaning")
    elif near:
        parts.append("do not all stay close in meaning")
    return f"The rewrites {' and '.join(parts)}" if parts else ""


def _near(similarity: Similarity) -> float:
    """Share of the twins that are more alike than nearly all unrelated pairs."""
    if not similarity.baseline.count or not similarity.cosine.count:
        return float("nan")
    return similarity.cosine.above(float(np.quantile(similarity.baseline.defined, _UNRELATED)))


def _primary(validation: Validation) -> list[Equivalence]:
    first = validation.effectiveness[0].measure if validation.effectiveness else ""
    return [row for row in validation.effectiveness if row.measure == first]


def _listed(names: Sequence[str]) -> str:
    if len(names) > _NAMED:
        return f"{', '.join(names[:_NAMED])} and {len(names) - _NAMED} more"
    return listed(names)


def _label(row: Equivalence, validation: Validation) -> str:
    return f"{row.run} ({row.source})" if len(validation.sources) > 1 else row.run


def _verdicts(validation: Validation) -> Iterator[Sentence]:
    """The check, words and meaning a source, and the rankers of each outcome on the primary measure."""
    check, reference = validation.check, validation.reference
    if check is not None:
        yield Sentence(
            check.sentence, "bad" if not check.fair else "unsure" if check.of("warning") else "good", only=PAGE
        )
    for terms in validation.overlaps:
        yield Sentence(_of(terms.source, terms_sentence(terms, reference), validation), only=PAGE)
    for similar in validation.similarities:
        near = _near(similar) >= _KEPT
        said = _of(similar.source, vectors_sentence(similar, reference), validation)
        yield Sentence(said, "good" if near else "unsure", only=PAGE)
    for source in validation.sources:
        for outcome, tone in OUTCOMES.items():
            rows = [row for row in _primary(validation) if (row.source, row.outcome) == (source, outcome)]
            for sentence in effectiveness_sentences(rows):
                yield Sentence(_of(source, sentence, validation), tone, only=PAGE)


def _of(source: str, sentence: str, validation: Validation) -> str:
    if len(validation.sources) > 1:
        return f"{source}: {sentence}."
    known = sentence.startswith(tuple(row.run for row in validation.effectiveness))
    return f"{sentence if known else sentence[:1].upper() + sentence[1:]}."
