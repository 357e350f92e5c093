"""``ranktilt tools calibrate``: the instrument is tested before its readings."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ranktilt.cli import options
from ranktilt.cli.output import Output, collection_files
from ranktilt.option import Option

FAILED = 1


@options.verb("tools calibrate", "tools calibrate DIR -r dense:minilm")
def calibrate(
    folder: Annotated[
        Path | None,
        typer.Argument(metavar="[DIR]", help="A collection: BEIR, Cocktail or the papers' layout (default: bundled)."),
    ] = None,
    *,
    ranker: options.Rankers = None,
    measure: options.Measures = None,
    depth: Annotated[list[int] | None, Option("Depth of the rankings; several may be given.", "K")] = None,
    sample: Annotated[int, Option("Maximum pairs of documents, 2 or more; half as many queries.", "N")] = 500,
    split: options.Split = None,
    seed: options.Seed = 0,
    neural: options.RankerOptions,
    output: Output,
) -> int:
    """Test the instrument where the right answer is known: exit 0 if all is as expected, 1 if not."""
    from ranktilt.auditing.calibration.calibrate import DEPTHS
    from ranktilt.auditing.calibration.calibrate import calibrate as run_calibration

    output.check(*collection_files(folder))
    rankers = neural.rankers(ranker or ["tfidf", "bm25"])
    if folder is None:
        from ranktilt.datasets.bundled.reader import bundled

        collection = bundled()
    else:
        from ranktilt.datasets.load import load

        collection = load(folder, split=split, ignore_unknown=True)
    result = run_calibration(collection, rankers, measure or None, depths=depth or DEPTHS, sample=sample, seed=seed)
    output.deliver(result)
    return 0 if result.passed else FAILED
