"""Askari et al., A Test Collection of Synthetic Documents for Training Rankers (CIKM 2023)."""

EXTENSIONS = {
    "ranktilt.builders": {"retrieval-qa": "ranktilt.papers.askari.builder:retrieval_qa"},
    "ranktilt.layouts": {"askari": "ranktilt.papers.askari.layouts:LAYOUTS"},
    "ranktilt.presets": {
        "askari": "ranktilt.papers.askari.preset:ASKARI",
        "askari-notebook": "ranktilt.papers.askari.preset:ASKARI_NOTEBOOK",
    },
}
