"""The options of Wang et al.: rankers read titles alone, and windows of 5 passages move by 1."""

from __future__ import annotations

from ranktilt.presets import Preset

WANG = Preset(
    source="Wang et al., NAACL 2024",
    measures=("P@20", "ExposureRatio"),
    options={
        "listwise": {"text": "title", "prompt": "neutral", "window": "5", "step": "1"},
        "pairwise": {"text": "title", "prompt": "pairwise-neutral"},
    },
)
