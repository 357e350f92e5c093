"""Lists in which a side has more of some properties, and a known part of the gap goes with each."""

from __future__ import annotations

from functools import cache

import numpy as np
import polars as pl

from ranktilt.data.collection import Collection
from ranktilt.data.runs.run import Run
from ranktilt.explaining.properties.gaps import explain_gaps
from ranktilt.explaining.properties.result import ExplainedGaps

MORE_WORDS, PER_WORD, REMAINING = 30.0, 0.02, 0.3
"""How many words more pages of shops have, what each adds, and what shops add at equal words."""
QUERIES, DOCUMENTS, DEPTH = 60, 400, 40


@cache
def shop_documents() -> pl.DataFrame:
    """Pages of shops, which are longer, and of forums; prices differ, and no ranker reads them."""
    rng = np.random.default_rng(0)
    is_shop = rng.random(DOCUMENTS) < 0.5
    words = 120 + MORE_WORDS * is_shop + 20 * rng.standard_normal(DOCUMENTS)
    return pl.DataFrame(
        {
            "id": [f"d{number}" for number in range(DOCUMENTS)],
            "kind": ["shop" if shop else "forum" for shop in is_shop],
            "words": np.round(words),
            "price": np.round(50 + 30 * is_shop + 10 * rng.standard_normal(DOCUMENTS), 2),
            "url": [f"https://example.org/{number}" for number in range(DOCUMENTS)],
        }
    )


@cache
def shop_collection() -> Collection:
    """The pages without texts, and queries."""
    docs = shop_documents().with_columns(text=pl.lit(""))
    queries = pl.DataFrame({"id": [f"q{n}" for n in range(QUERIES)], "text": ""})
    qrels = pl.DataFrame(schema={"query_id": pl.String, "doc_id": pl.String, "grade": pl.Int32})
    return Collection(docs, queries, qrels, {"labels": "pages.csv"})


@cache
def shop_run(name: str = "engine", *, tilt: float = 1.0, seed: int = 1) -> Run:
    """Rank drawn pages by words, side and chance."""
    docs = shop_documents()
    rng = np.random.default_rng(seed)
    words, is_shop = docs["words"].to_numpy(), (docs["kind"] == "shop").to_numpy()
    rows = []
    for query in range(QUERIES):
        drawn = rng.choice(DOCUMENTS, DEPTH, replace=False)
        scores = tilt * (PER_WORD * words[drawn] + REMAINING * is_shop[drawn])
        scores += rng.standard_normal(DEPTH)
        rows.append(
            pl.DataFrame(
                {"query_id": f"q{query}", "doc_id": docs["id"].gather(drawn), "score": scores}
            )
        )
    run = Run.from_frame(pl.concat(rows))
    return Run(run.queries, run.offsets, run.docs, run.scores, run.ids, {"name": name})


@cache
def shop_gaps() -> ExplainedGaps:
    """A ranker with a gap, and one without."""
    runs = [shop_run("blind", tilt=0.0, seed=2), shop_run()]
    return explain_gaps(shop_collection(), runs, by="kind", pairs=[("shop", "forum")], draws=2_000)
