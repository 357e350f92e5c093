"""Why a ranker may favour a source: what probes find in its texts, in one result.

A *source* is the author of documents, or a group of another column that is compared in its place.
The *reference* is the source that others are compared with. *Twins* are two documents of the same
origin by different sources. A *probe* is a question about texts, such as "which are longer?", and
an object that answers it. Hedges' g is a difference of means, in standard deviations. An *encoder*
is the part of some rankers that turns texts into vectors. To *attribute* the gap of a ranker (how
much higher it scores one of two twins) is to say which properties of the texts go with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from ranktilt._version import __version__
from ranktilt.auditing.grouping.labels import grouping
from ranktilt.data.collection import Collection
from ranktilt.data.labels.group_names import group_name
from ranktilt.data.labels.label_remarks import warn_of_labels
from ranktilt.data.labels.stated_sources import with_stated_sources
from ranktilt.data.notes.base import Note
from ranktilt.data.notes.groups import DocumentsUnlabelled
from ranktilt.data.notes.texts import (
    ProbeLeftOut,
    ProbeNeedsEncoder,
    SourceWithoutTwins,
    TwinsIdentical,
)
from ranktilt.data.runs.run import Run
from ranktilt.errors import UserError, refuse_twice
from ranktilt.explaining.attribution import attribute as attribute_gaps
from ranktilt.explaining.base import (
    Probe,
    ProbeResult,
    TextProbe,
    other_sources,
    reference_of,
    twin_rows,
    twin_sources,
)
from ranktilt.explaining.explanation import Explanation
from ranktilt.explaining.probe_table import PROBES, probe
from ranktilt.explaining.vectors import require_encoder
from ranktilt.progress import report
from ranktilt.rankers.base import Ranker


def explain(
    collection: Collection,
    probes: Sequence[str | Probe[Any]] | None = None,
    ranker: Ranker | None = None,
    *,
    reference: str | None = None,
    by: str = "source",
    lm: Sequence[str] = (),
    attribute: Sequence[Ranker | Run] = (),
) -> Explanation:
    """Measure how the texts of twins differ, with probes.

    Parameters
    ----------
    collection : Collection
        With two sources or more, whose documents are twins by ``origin``.
    probes : sequence of str or Probe, optional
        Names such as ``"overlap"``, ``"perplexity:FOLDER(every=0)"`` or ``"spectrum(values=64)"``,
        names of probes in installed packages, or probes themselves. By default all of RankTilt's
        own probes that can run; none if you give `attribute`.
    ranker : Ranker, optional
        Ranker whose encoder the probes ``similarity``, ``spectrum`` and ``truncation`` examine,
        such as ``ranker("dense:minilm")``.
    reference : str, optional
        The source that the others are compared with: ``"human"`` if there is such a source, else
        the first.
    by : str, optional
        Column whose groups are compared in place of sources, such as ``"gender"``.
    lm : sequence of str, optional
        Language models (folders or hub names) that measure ``perplexity`` instead of trigrams.
    attribute : sequence of Ranker or Run, optional
        Rankers whose gaps between twins are attributed to the properties that `probes` measure, or
        to those that need no model.

    Returns
    -------
    Explanation
        A `ProbeResult` for each probe: rows with a ``source``, Hedges' g on twins with its 95 %
        interval, figures as data, and a sentence. A difference between twins does not show that a
        ranker uses it.

    Raises
    ------
    UserError
        If a probe is unknown or named twice, cannot use the ranker, or the reference is not a
        source; if no other source has twins.
    """
    compared = _compared_texts(collection, by)
    reference_name = None if reference is None else group_name(by, reference)
    reference_source = reference_of(compared, reference_name, to="explain")
    if not twin_sources(compared, reference_source):
        raise UserError(
            f"nothing to explain: no other source has twins of {reference_source} "
            "(documents with the same origin); to relate a ranker's gap to properties without "
            "twins: --attribution -r RANKER"
        )
    if probes is None and not attribute:
        selection = _default_probes(lm, has_encoder=ranker is not None)
    else:
        selection = _ProbeSelection(probes=tuple(map(probe, _with_models(probes or (), lm))))
    _require_usable(selection.probes, ranker, attribute)
    results = list[ProbeResult]()
    failures = list[ProbeLeftOut]()
    for answer in _answers(selection, compared, ranker, reference=reference_source):
        if isinstance(answer, ProbeLeftOut):
            failures.append(answer)
        else:
            results.append(answer)
    if attribute:
        attribution = attribute_gaps(
            compared,
            attribute,
            selection.properties or None,  # None: the properties that need no model
            ranker=ranker,
            reference=reference_source,
        )
        results.append(attribution)
    return Explanation(
        spec=_spec(compared, selection.probes, ranker, by=by, attribute=attribute),
        reference=reference_source,
        sources=tuple(other_sources(compared, reference_source)),
        results=tuple(results),
        notes=(
            *selection.notes,
            *failures,
            *_twin_notes(compared, reference_source),
            *_unlabelled_notes(collection, by),
        ),
    )


@dataclass(frozen=True, kw_only=True)
class _ProbeSelection:
    """The probes to run, and which of them may fail."""

    probes: tuple[Probe[Any], ...]
    """The probes, in the order in which they run."""
    optional_names: frozenset[str] = frozenset()
    """Names of probes that are left out if they fail; if another probe fails, the call fails."""
    notes: tuple[ProbeNeedsEncoder, ...] = ()
    """Notes on probes that were left out because there is no encoder."""

    @property
    def properties(self) -> list[TextProbe]:
        """The probes that measure a property of every text."""
        return [chosen_probe for chosen_probe in self.probes if isinstance(chosen_probe, TextProbe)]


def _default_probes(models: Sequence[str], *, has_encoder: bool) -> _ProbeSelection:
    """Select all of RankTilt's own probes, those with an encoder only if there is one.

    The user did not name the probes, so a probe that fails is left out later. The exception is
    perplexity by language models that the user named.
    """
    probes = [probe(name) for name in _with_models(PROBES, models)]
    notes = list[ProbeNeedsEncoder]()
    if not has_encoder:
        encoder_probes = [chosen_probe for chosen_probe in probes if chosen_probe.needs_encoder]
        notes = [ProbeNeedsEncoder(probe=chosen_probe.name) for chosen_probe in encoder_probes]
        probes = [chosen_probe for chosen_probe in probes if not chosen_probe.needs_encoder]
    names = frozenset(chosen_probe.name for chosen_probe in probes)
    if models:
        names = frozenset(name for name in names if not name.startswith("perplexity"))
    return _ProbeSelection(probes=tuple(probes), optional_names=names, notes=tuple(notes))


def _with_models(
    names: Iterable[str | Probe[Any]], models: Sequence[str]
) -> Iterator[str | Probe[Any]]:
    """Yield the names of probes, with a ``perplexity`` for each of the language models.

    Without models, ``perplexity`` stays as it is, and measures with trigrams.
    """
    for name in names:
        if name == "perplexity" and models:
            for model in models:
                yield f'perplexity:"{model}"'
        else:
            yield name


def _require_usable(
    probes: Sequence[Probe[Any]], ranker: Ranker | None, attribute: Sequence[Ranker | Run]
) -> None:
    """Refuse rankers and probes that cannot work, before any text is read."""
    for scorer in attribute:
        if isinstance(scorer, Ranker):
            scorer.check()
    for chosen_probe in probes:
        chosen_probe.check()
        if chosen_probe.needs_encoder:
            require_encoder(ranker, chosen_probe.name)
    refuse_twice([chosen_probe.name for chosen_probe in probes], "probe")


def _answers(
    selection: _ProbeSelection, collection: Collection, ranker: Ranker | None, *, reference: str
) -> Iterator[ProbeResult | ProbeLeftOut]:
    """Yield the result of each probe, or a note on an optional probe that fails."""
    probes = selection.probes
    for number, chosen_probe in enumerate(probes):
        report("probing texts", number, len(probes))
        try:
            yield chosen_probe(collection, ranker, reference=reference)
        except UserError as error:
            if chosen_probe.name not in selection.optional_names:
                raise
            yield ProbeLeftOut(probe=chosen_probe.name, error=str(error))
    report("probing texts", len(probes), len(probes))


def _spec(
    collection: Collection,
    probes: Sequence[Probe[Any]],
    ranker: Ranker | None,
    *,
    by: str,
    attribute: Sequence[Ranker | Run],
) -> dict[str, Any]:
    """Return how an explanation was made, as JSON; collection and runs as in an audit's spec."""
    runs = [
        dict(scorer.spec) if isinstance(scorer, Run) else {"ranker": repr(scorer)}
        for scorer in attribute
    ]
    return {
        "collection": {key: value for key, value in collection.spec.items() if key != "files"},
        "by": by,
        "probes": [chosen_probe.name for chosen_probe in probes],
        "ranker": None if ranker is None else repr(ranker),
        "runs": runs,
        "ranktilt": __version__,
    }


def _compared_texts(collection: Collection, by: str) -> Collection:
    """Return the documents with a group in the column `by`, and this group as their source."""
    if by != "source":
        return _with_groups_as_sources(collection, by)
    return with_stated_sources(collection) if collection.sources else collection


def _with_groups_as_sources(collection: Collection, by: str) -> Collection:
    """Put the groups of another column in the place of the sources.

    Documents without a group are left out.
    """
    groups = grouping(collection, by)
    warn_of_labels(groups.remarks)
    docs = collection.docs.with_columns(
        source=pl.Series([groups.names[code] for code in groups.code])
    )
    return Collection(
        docs.filter(groups.code >= 0), collection.queries, collection.qrels, collection.spec
    )


def _twin_notes(collection: Collection, reference: str) -> Iterator[Note]:
    """Yield notes on sources without twins, and on twins with the same text."""
    texts = collection.docs["text"]
    for name in other_sources(collection, reference):
        reference_rows, source_rows = twin_rows(collection, reference, name)
        if not len(reference_rows):
            yield SourceWithoutTwins(source=name, reference=reference)
        identical = int((texts.gather(reference_rows) == texts.gather(source_rows)).sum())
        if identical:
            yield TwinsIdentical(source=name, reference=reference, twins=identical)


def _unlabelled_notes(collection: Collection, by: str) -> Iterator[Note]:
    """Yield a note if some documents are not compared because they have no source."""
    if by == "source" and collection.sourceless:
        yield DocumentsUnlabelled(by="source", documents=collection.sourceless)
