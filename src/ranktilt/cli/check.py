"""``ranktilt check``: whether a collection makes a fair comparison."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from ranktilt.cli import options
from ranktilt.cli.output import PageOutput, collection_files
from ranktilt.datasets.check_limits import CheckLimits
from ranktilt.errors import UserError
from ranktilt.option import Option

UNFAIR, NOTHING_COMPARED = 1, 3
"""Exit codes where a fault voids the comparison, and where there are no two sides."""
_RANKER = "bm25"


@dataclass(frozen=True)
class CheckQuestions(options.OptionGroup):
    """What is looked at beyond texts and judgments."""

    panel = "Question"

    ranker: Annotated[
        list[str] | None,
        Option(
            "Rankers to run on each side alone: is either easier to search?", "SPEC", short="-r"
        ),
    ] = None
    measure: Annotated[
        list[str] | None,
        Option(
            "A measure of effectiveness (default: nDCG@10), and of the audits of --instrument.",
            "MEASURE",
            short="-m",
        ),
    ] = None
    equivalence: Annotated[
        float, Option("Largest difference in effectiveness that does not matter, 0 to 1.")
    ] = 0.02
    similarity: Annotated[
        str | None,
        Option("Encoder that compares meanings and draws a map, such as dense:minilm.", "SPEC"),
    ] = None
    instrument: Annotated[
        bool,
        Option(
            "Also toss coins for the sources: how often does an audit of the rankers (-r; default: bm25) name a side?"
        ),
    ] = False
    seed: Annotated[int, Option("Random seed.", min=0)] = 0

    def require_used(self, search: options.SearchOptions) -> None:
        """Refuse options that nothing reads."""
        if not self.instrument and not self.ranker and (self.measure or self.has_equivalence):
            option = "--measure" if self.measure else "--equivalence"
            raise UserError(
                f"{option} is about effectiveness: name a ranker with -r, such as -r bm25"
            )
        has_model = self.instrument or self.ranker or self.similarity is not None
        if search.changed() and not has_model:
            raise UserError(
                f"{search.changed()[0]} is about rankers and encoders: name one with -r or --similarity"
            )

    @property
    def has_equivalence(self) -> bool:
        """Whether a difference that does not matter was named."""
        return "--equivalence" in self.changed()

    def keywords(self, search: options.SearchOptions) -> dict[str, Any]:
        """Return what the library's `check` is asked."""
        specs = self.ranker or ([_RANKER] if self.instrument else [])
        encoder = None
        if self.similarity is not None:
            encoder = search.rankers([self.similarity])[0]
        return {
            "rankers": search.rankers(specs),
            "measures": self.measure,
            "equivalence": self.equivalence,
            "similarity": encoder,
            "instrument": self.instrument,
            "seed": self.seed,
        }


@options.verb("check DIR", "check DIR -r bm25 --instrument", "check DIR -r bm25 -o check.html")
def check(
    folder: options.AnyCollection,
    *,
    reference: options.Reference = None,
    split: options.Split = None,
    limits: Annotated[dict[str, Any], options.FieldsOf(CheckLimits, panel="Question")],
    questions: CheckQuestions,
    search: options.SearchOptions,
    output: PageOutput,
) -> int:
    """Check whether a collection makes a fair comparison: exit 0 if so, 1 if it is void, 3 without two sides.

    Shows what each source holds, how its texts differ from their twins, and what is at fault. With
    -r also whether a ranker finds either side easier to search; with --similarity how near twins lie
    in meaning; with --instrument whether an audit of a ranker is right here: a coin decides for each
    document and its twin who wrote which, 200 times, and a side should be named in 5 % of these
    audits at most.
    """
    from ranktilt.probes.check import check as check_collection

    questions.require_used(search)
    output.check(*collection_files(folder))
    keywords = questions.keywords(search)
    collection = options.load_texts(folder, split)
    result = check_collection(
        collection, reference=reference, limits=CheckLimits(**limits), **keywords
    )
    output.deliver(result)
    if not result.is_compared:
        return NOTHING_COMPARED
    return 0 if result.fair else UNFAIR
