"""The options of Askari et al., to measure and to train cross-encoders: paper and notebook.

With a weight decay of 0, AdamW is the paper's Adam. The notebook trains for 5 epochs, with 1,000
triples for each positive, of which every fifth has the positive; so the positive is seen 1,000
times, which is 1,000 of our epochs. docs/redo/askari.md compares all options with ours, line by
line.
"""

from __future__ import annotations

from typing import Any

from ranktilt.presets import Preset

_TRIPLES: dict[str, Any] = {
    "batch": 32,
    "loss": "binary",
    "negatives": "random:1000",
    "negatives_per_positive": 4,
    "positives": "all",
    "positives_per_query": None,
}
"""Options of training that the paper and the notebook agree on.

A *triple* is a query, a document that answers it (the *positive*) and one that does not (a
*negative*).
"""
_MEASURES = ("AP@1000", "nDCG@10", "RR@10")
"""Measures that the paper prints."""
_STATISTICS = {"test": "t"}
"""Test that the paper uses."""

ASKARI = Preset(
    source="Askari et al., CIKM 2023",
    measures=_MEASURES,
    statistics=_STATISTICS,
    training={
        **_TRIPLES,
        "rate": 7e-6,
        "max_query_tokens": 30,
        "max_document_tokens": 200,
        "weight_decay": 0.0,
    },
)
ASKARI_NOTEBOOK = Preset(
    source="the notebook of Askari et al., CIKM 2023",
    measures=_MEASURES,
    statistics=_STATISTICS,
    training={
        **_TRIPLES,
        "rate": 2e-5,
        "max_query_tokens": 70,
        "max_document_tokens": 350,
        "weight_decay": 0.01,
        "warmup_steps": 5000,
        "dropout": True,
        "epochs": 1000,
    },
)
