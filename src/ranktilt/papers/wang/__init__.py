"""Wang et al., Do Large Language Models Rank Fairly? (NAACL 2024)."""

EXTENSIONS = {
    "ranktilt.builders": {"fair-ranking": "ranktilt.papers.wang.builder:fair_ranking"},
    "ranktilt.layouts": {"wang": "ranktilt.papers.wang.layouts:LAYOUTS"},
    "ranktilt.presets": {"wang": "ranktilt.papers.wang.preset:WANG"},
}
