"""A known tilt: scores at full depth, to which δ can be added before they are cut."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ranktilt.auditing.calibration.synthetic_twins import first_source
from ranktilt.collection import Collection
from ranktilt.rankers.base import cut
from ranktilt.run import Run, collection_rows

Floats = npt.NDArray[np.float64]

STEPS = (-100.0, -3.0, -1.0, -0.3, -0.1, 0.0, 0.1, 0.3, 1.0, 3.0, 100.0)
"""Known tilts, in standard deviations of a query's scores (median over queries)."""
_TOUCH = 1e-7


class Vectors:
    """A ranker's scores at full depth, to which a tilt can be added before they are cut.

    Parameters
    ----------
    collection : Collection
        What was ranked.
    run : Run
        As deep as the ranker goes.
    seed : int
        Of what makes scores distinct.
    """

    def __init__(self, collection: Collection, run: Run, seed: int) -> None:
        self.collection, self.queries = collection, run.queries
        rows = collection_rows(run, collection)[run.docs]
        bounds = zip(run.offsets[:-1], run.offsets[1:], strict=True)
        self.scores = [(rows[low:high], run.scores[low:high]) for low, high in bounds]
        spreads = [s.std() for _, s in self.scores if len(s) > 1 and s.std() > 0]
        self.unit = float(np.median(spreads)) if spreads else 1.0
        self.first = (collection.docs["source"] == first_source(collection)).to_numpy()
        rng = np.random.default_rng([seed, 4])
        self.noise = [_TOUCH * self.unit * rng.permutation(len(s)) / max(len(s), 1) for _, s in self.scores]

    def tilted(self, step: float, depth: int | None) -> Run:
        """Return the run with δ on the first side.

        Parameters
        ----------
        step : float
            δ, in standard deviations of a query's scores (median over queries).
        depth : int or None
            Where to cut; scores are made distinct before, by less than any δ, because a cut through a tie at a
            measure's own cutoff keeps whichever its hash chooses.

        Returns
        -------
        Run
            Named by δ.
        """
        found = (
            (rows, scores + step * self.unit * self.first[rows] + (noise if depth else 0.0))
            for (rows, scores), noise in zip(self.scores, self.noise, strict=True)
        )
        parts = cut(found, self.collection.tie_keys(), depth)
        return Run(self.queries, *parts, self.collection.ids, {"ranker": f"δ = {step:+g} sd"})
