"""Wang et al., Do Large Language Models Rank Fairly? (NAACL 2024).

Start in `builder`, which is ``data build fair-ranking``: `trec_fair` reads the labelled items, and
`fair_ranking` makes lists of two groups from them. `layouts` has the paper's tables and figures;
`conditions` splits a ranker's name into the ranker and the condition that a table compares.
`preset` has the options of the paper.

May import every room but another paper. A new table is a `Layout` in `layouts.LAYOUTS`; anything
else that the command line should find is a line in ``EXTENSIONS``. Tests: tests/papers/wang.
"""

EXTENSIONS = {
    "ranktilt.builders": {"fair-ranking": "ranktilt.papers.wang.builder:fair_ranking"},
    "ranktilt.layouts": {"wang": "ranktilt.papers.wang.layouts:LAYOUTS"},
    "ranktilt.presets": {"wang": "ranktilt.papers.wang.preset:WANG"},
}
"""What the paper adds to RankTilt, as ``module:object`` by name, for each kind of object."""
