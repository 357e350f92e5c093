"""The options of Dai et al.: ties by id as in trec_eval, rounded means, texts without titles."""

from __future__ import annotations

from ranktilt.presets import Preset

DAI = Preset(
    source="Dai et al., KDD 2024",
    measures=("nDCG@1", "nDCG@3", "nDCG@5", "AP@1", "AP@3", "AP@5"),
    statistics={"ties": "trec_eval", "rounding": "paper"},
    text="text",
    recipes={"bm25": "bm25:dai", "tfidf": "tfidf:dai"},
)
