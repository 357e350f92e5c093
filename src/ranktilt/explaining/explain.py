"""Why a ranker may favour a source: what probes find in its texts, in one result."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import polars as pl

from ranktilt._version import __version__
from ranktilt.auditing.groups import grouping
from ranktilt.data.artifact import Coded, Result
from ranktilt.data.collection import Collection
from ranktilt.data.label_remarks import warn_of_labels
from ranktilt.data.notes.base import Note
from ranktilt.data.notes.groups import DocumentsUnlabelled
from ranktilt.data.notes.probes import GapAttributed
from ranktilt.data.notes.texts import (
    ProbeLeftOut,
    ProbeNeedsEncoder,
    SourceWithoutTwins,
    TwinsIdentical,
)
from ranktilt.data.run import Run
from ranktilt.data.stated_sources import with_stated_sources
from ranktilt.errors import UserError, refuse_twice
from ranktilt.explaining.attribution import attribute as attribute_gaps
from ranktilt.explaining.base import (
    Probe,
    ProbeResult,
    TextProbe,
    others,
    reference_of,
    twin_rows,
    twin_sources,
)
from ranktilt.explaining.vectors import require_encoder
from ranktilt.extensions import ExtensionTable
from ranktilt.progress import report
from ranktilt.rankers.base import Ranker
from ranktilt.spec import parse_stages

PROBES = {
    "words": "ranktilt.explaining.text_probes:WordsProbe",
    "overlap": "ranktilt.explaining.text_probes:OverlapProbe",
    "similarity": "ranktilt.explaining.similarity:SimilarityProbe",
    "type-token": "ranktilt.explaining.text_probes:TypeTokenProbe",
    "specificity": "ranktilt.explaining.text_probes:SpecificityProbe",
    "query-words": "ranktilt.explaining.text_probes:QueryWordsProbe",
    "sentences": "ranktilt.explaining.text_probes:SentenceLengthProbe",
    "readability": "ranktilt.explaining.text_probes:ReadabilityProbe",
    "perplexity": "ranktilt.explaining.perplexity:PerplexityProbe",
    "spectrum": "ranktilt.explaining.spectrum:SpectrumProbe",
    "truncation": "ranktilt.explaining.text_probes:TruncationProbe",
}


@dataclass(frozen=True, eq=False)
class Explanation(
    Result,
    format="ranktilt-explanation",
    version=1,
    noun="an explanation",
    command="ranktilt explain",
):
    """What `explain` found; immutable.

    Parameters
    ----------
    spec : mapping
        How it was made: collection, ranker, versions.
    reference : str
        The source that the others are compared with.
    sources : tuple of str
        The others.
    results : tuple of ProbeResult
        A result for each probe, in the order of the call.
    notes : tuple of Note
        What was left out, and why.
    """

    spec: Mapping[str, Any]
    reference: str
    sources: tuple[str, ...]
    results: tuple[ProbeResult, ...]
    notes: tuple[Coded[Note], ...] = ()

    @property
    def attributed(self) -> tuple[GapAttributed, ...]:
        """The gaps of runs that are attributed to properties of texts, source by source."""
        tables = chain.from_iterable(result.tables for result in self.results)
        findings = chain.from_iterable(table.findings for table in tables)
        return tuple(finding for finding in findings if isinstance(finding, GapAttributed))

    @property
    def runs(self) -> tuple[str, ...]:
        """Names of the runs whose gaps are attributed, in the order in which they were given."""
        return tuple(dict.fromkeys(gap.run for gap in self.attributed))


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
    """Look at the texts of a collection with probes: what differs between twins, and by how much.

    Parameters
    ----------
    collection : Collection
        With two sources or more, whose documents are twins by ``origin``.
    probes : sequence of str or Probe, optional
        Names such as ``"overlap"``, ``"perplexity:FOLDER(every=0)"`` or ``"spectrum(values=64)"``,
        those of installed packages, or probes themselves. By default all of RankTilt's own that can
        run; none where `attribute` asks for something else.
    ranker : Ranker, optional
        Whose view is asked for; ``similarity``, ``spectrum`` and ``truncation`` need one with an
        encoder, such as ``ranker("dense:minilm")``.
    reference : str, optional
        The source that the others are compared with: ``"human"`` where there is one, or else the
        first.
    by : str, optional
        Column whose groups are compared, such as ``"gender"``, where documents of one origin are
        twins.
    lm : sequence of str, optional
        Language models, folders or names on the hub, by which ``perplexity`` is measured in place
        of trigrams.
    attribute : sequence of Ranker or Run, optional
        Whose gaps between twins are attributed to the properties that `probes` measure, or to those
        that need no model.

    Returns
    -------
    Explanation
        A `ProbeResult` for each probe: rows with a ``source``, Hedges' g on twins with its 95 %
        interval, figures as data, and a sentence. That twins differ in a property does not show
        that a ranker goes by it.

    Raises
    ------
    UserError
        If a probe is unknown or named twice, cannot use the ranker, or the reference is no source;
        if no other source has twins.
    """
    sourceless = collection.sourceless if by == "source" else 0
    if by != "source":
        collection = _grouped(collection, by)
    elif collection.sources:
        collection = with_stated_sources(collection)
    first = reference_of(collection, reference, to="explain")
    if not twin_sources(collection, first):
        raise UserError(
            f"nothing to explain: no other source has twins of {first} "
            "(documents with the same origin); "
            "which properties go with a ranker's gap without twins: --attribution -r RANKER"
        )
    is_default = probes is None and not attribute
    chosen = [probe(name) for name in _with_models(PROBES if is_default else probes or (), lm)]
    notes = list[Note]()
    if is_default and ranker is None:
        for chosen_probe in chosen:
            if chosen_probe.needs_encoder:
                notes.append(ProbeNeedsEncoder(probe=chosen_probe.name))
        chosen = [chosen_probe for chosen_probe in chosen if not chosen_probe.needs_encoder]
    _check(chosen, ranker, attribute)
    results = []
    for number, chosen_probe in enumerate(chosen):
        report("probing texts", number, len(chosen))
        try:
            results.append(chosen_probe(collection, ranker, reference=first))
        except UserError as error:
            is_of_named_model = bool(lm) and chosen_probe.name.startswith("perplexity")
            if not is_default or is_of_named_model:
                raise
            notes.append(ProbeLeftOut(probe=chosen_probe.name, error=str(error)))
    report("probing texts", len(chosen), len(chosen))
    if attribute:
        properties = [
            chosen_probe for chosen_probe in chosen if isinstance(chosen_probe, TextProbe)
        ]
        results.append(
            attribute_gaps(
                collection, attribute, properties or None, ranker=ranker, reference=first
            )
        )
    notes += _notes(collection, first)
    if sourceless:
        notes.append(DocumentsUnlabelled(by="source", documents=sourceless))
    return Explanation(
        spec=_spec(collection, chosen, ranker, by=by, attribute=attribute),
        reference=first,
        sources=tuple(others(collection, first)),
        results=tuple(results),
        notes=tuple(notes),
    )


def _with_models(
    names: Iterable[str | Probe[Any]], models: Sequence[str]
) -> Iterator[str | Probe[Any]]:
    """Put a probe of each language model in the place of ``perplexity``, where models are named."""
    for name in names:
        if name == "perplexity" and models:
            for model in models:
                yield f'perplexity:"{model}"'
        else:
            yield name


def _check(
    probes: Sequence[Probe[Any]], ranker: Ranker | None, attribute: Sequence[Ranker | Run]
) -> None:
    """Refuse, before any text is read, what cannot rank or measure."""
    for scorer in attribute:
        if isinstance(scorer, Ranker):
            scorer.check()
    for chosen_probe in probes:
        chosen_probe.check()
        if chosen_probe.needs_encoder:
            require_encoder(ranker, chosen_probe.name)
    refuse_twice([chosen_probe.name for chosen_probe in probes], "probe")


def _spec(
    collection: Collection,
    probes: Sequence[Probe[Any]],
    ranker: Ranker | None,
    *,
    by: str,
    attribute: Sequence[Ranker | Run],
) -> dict[str, Any]:
    """Return how an explanation was made; collection and runs as in the spec of an audit."""
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


def _grouped(collection: Collection, by: str) -> Collection:
    """Put the groups of another column in the place of the sources.

    Documents of no group are left out.
    """
    groups = grouping(collection, by)
    warn_of_labels(groups.remarks)
    docs = collection.docs.with_columns(
        source=pl.Series([groups.names[code] for code in groups.code])
    )
    return Collection(
        docs.filter(groups.code >= 0), collection.queries, collection.qrels, collection.spec
    )


def _notes(collection: Collection, reference: str) -> Iterator[Note]:
    """Note sources without twins, and how many twins have the same text."""
    texts = collection.docs["text"]
    for name in others(collection, reference):
        rows = twin_rows(collection, reference, name)
        if not len(rows[0]):
            yield SourceWithoutTwins(source=name, reference=reference)
        same = int((texts.gather(rows[0]) == texts.gather(rows[1])).sum())
        if same:
            yield TwinsIdentical(source=name, reference=reference, twins=same)


def probe_classes() -> dict[str, str]:
    """Return where the class of each probe is defined, by name: ours, and installed packages'."""
    return probe_table().paths()


def probe_table() -> ExtensionTable:
    """Return the table of probes: ours, and those of installed packages (``ranktilt.probes``)."""
    return ExtensionTable("probe", "ranktilt.probes", PROBES, _fault)


def _fault(loaded: object, name: str) -> str:
    is_probe = isinstance(loaded, type) and issubclass(loaded, Probe)
    return "" if is_probe else "is no subclass of ranktilt's Probe"


def probe(name: str | Probe[Any]) -> Probe[Any]:
    """Return the probe of a name: one of ours, or one that a package announces.

    A probe comes back as it is.
    """
    if isinstance(name, Probe):
        return name
    try:
        stages = parse_stages(name)
    except UserError:
        stages = []
    if len(stages) != 1 or stages[0].k is not None:
        raise UserError(f"probe {name!r}: expected name[:argument][(option=value,…)]")
    (stage,) = stages
    kind: type[Probe[Any]] = probe_table().load(stage.name)
    argument = [] if stage.argument is None else [stage.argument]
    options = {
        key: int(value) if re.fullmatch(r"-?\d+", value) else value
        for key, value in stage.options.items()
    }
    try:
        return kind(*argument, **options)
    except TypeError as error:
        raise UserError(f"probe {stage}: {error}") from error
