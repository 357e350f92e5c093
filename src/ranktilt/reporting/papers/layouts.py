"""The papers' tables as presets: what stands in the rows and columns, in which order, and how numbers are printed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ranktilt.reporting.papers.names import dataset_name, measure_name

_TITLES = {
    "dataset": "Dataset",
    "generator": "LLM",
    "temperature": "Temperature",
    "collection": "Collection",
    "system": "Model",
    "condition": "Queries",
    "target": "Target corpus",
    "measure": "Metric",
}
_TARGETS = {"human": "Human-Written", "llm": "LLM-Generated", "relative_delta": "Relative Δ"}
_CONTEXT = {"generator": "LLM text by {}", "temperature": "temperature {}"}


@dataclass(frozen=True, kw_only=True)
class Layout:
    """One table of a paper, without its numbers.

    Parameters
    ----------
    name : str
        Such as ``dai-3``.
    paper : str
        Which table of which paper.
    title : str
        The caption.
    title_of_groups : str, optional
        The caption where the groups are not human and LLM; the same by default.
    rows, columns : tuple of str
        Keys of a cell, the slowest first.
    panels : tuple of str, optional
        Keys of the blocks below each other; every key that is nowhere else and has several values joins them.
    measures : tuple of str, optional
        Those of the paper, in its order; others follow.
    digits : int, optional
        Decimals.
    digits_of : mapping of str to int, optional
        Decimals of single measures.
    leading_zero : bool, optional
        Whether 0.5 is printed so, or .5.
    scale : float, optional
        What a value of 0 to 1 is multiplied by for the print: 100 for percent.
    derived : {"", "relative_delta", "ratio"}, optional
        Which cells follow from others: Relative Δ from two means, or a ratio from two shares.
    titles : mapping of str to str, optional
        Titles of keys, where they are not the usual ones.
    labels : mapping of str to str, optional
        How values are printed, where it is not the usual way.
    shows, command : str
        What a result must hold for this table, and the command that makes such a result.
    """

    name: str
    paper: str
    title: str
    title_of_groups: str = ""
    rows: tuple[str, ...] = ("system", "target")
    columns: tuple[str, ...] = ("dataset", "measure")
    panels: tuple[str, ...] = ()
    measures: tuple[str, ...] = ()
    digits: int = 1
    digits_of: Mapping[str, int] = field(default_factory=dict)
    leading_zero: bool = True
    scale: float = 1.0
    derived: str = ""
    titles: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    shows: str = ""
    command: str = ""

    def title_of(self, key: str) -> str:
        """Return the title of a key's column."""
        return self.titles.get(key, _TITLES[key])

    def label(self, key: str, value: str) -> str:
        """Return a key's value as it is printed."""
        if value in self.labels:
            return self.labels[value]
        if key == "measure":
            return measure_name(value)
        if key == "dataset":
            return dataset_name(value)
        return _TARGETS.get(value, value) if key == "target" else value

    def said(self, key: str, value: str) -> str:
        """Return a key's value as it stands in a caption; nothing where there is none."""
        if not value:
            return ""
        return _CONTEXT.get(key, "{}").format(self.label(key, value))

    def printed(self, value: float, measure: str) -> str:
        """Print a number as the paper does; ``–`` where it is undefined."""
        if value != value:
            return "–"
        digits = self.digits_of.get(measure, self.digits)
        text = f"{rounded(value, digits):.{digits}f}"
        return text if self.leading_zero else text.replace("0.", ".", 1) if text.lstrip("-")[0] == "0" else text

    def unit(self, measure: str) -> float:
        """Return half of the last printed digit's worth: how far a print may lie from its number."""
        return float(0.5 * 10.0 ** -self.digits_of.get(measure, self.digits))


def rounded(value: float, digits: int) -> float:
    """Round a number as numpy does, halves to even; −0 becomes 0."""
    power = 10.0**digits
    return round(value * power) / power + 0.0


_DAI, _WANG, _ASKARI = "Dai et al., KDD 2024", "Wang et al., NAACL 2024", "Askari et al., CIKM 2023"
_SIX = ("nDCG@1", "nDCG@3", "nDCG@5", "AP@1", "AP@3", "AP@5")
_ALONE = "Effectiveness of each ranker on the human-written and on the LLM-generated documents alone, in percent"
_MIXED = (
    "Effectiveness of each ranker on human-written and LLM-generated documents of one mixed collection, in percent, "
    "and Relative Δ (positive where human-written text ranks higher)"
)
_GROUPS = "Effectiveness of each ranker on groups of documents of one collection, in percent, and Relative Δ"
_RERANKED = f"Re-rankers: {_MIXED[0].lower()}{_MIXED[1:]}"
_AUDIT = "ranktilt audit DIR -r bm25 --json FILE"
_PIPELINE = "ranktilt audit DIR -r bm25 -r 'bm25@100>>cross-encoder:minilm' --json FILE"
_VALIDATE = "ranktilt validate DIR -r bm25 --json FILE"
_WINDOWS = ((5, 1), (10, 5), (10, 3), (20, 10))
_NO_COMMAND = "a CSV file of its cells"


def _dai(number: int, title: str, shows: str, command: str) -> Layout:
    alone = number in (2, 7, 8)
    return Layout(
        name=f"dai-{number}",
        paper=f"Table {number} of {_DAI}",
        title=title,
        title_of_groups="" if alone else _GROUPS,
        measures=_SIX,
        scale=100.0,
        derived="" if alone else "relative_delta",
        shows=shows,
        command=command,
    )


def _rerank(number: int) -> Layout:
    shows = "a mixed collection ranked by re-rankers (an audit)"
    return replace(
        _dai(number, _RERANKED, shows, _PIPELINE),
        rows=("measure", "target"),
        columns=("dataset", "system"),
        titles={"measure": "Metrics"},
        labels={"BM25+MiniLM": "+MiniLM", "BM25+monoT5": "+monoT5"},
    )


def _texts(number: int, which: str) -> Layout:
    return Layout(
        name=f"dai-{number}",
        paper=f"Table {number} of {_DAI}",
        title="A human-written document and its LLM-generated version, for a query to which both are relevant",
        shows=f"the texts of {which} collection (an audit by source, with its collection)",
        command=_AUDIT,
    )


_SIDES = "each source ranked alone (a validation with rankers)"
_BOTH = "a mixed collection ranked as one (an audit or a study)"

_PRESETS = (
    Layout(
        name="dai-1",
        paper=f"Table 1 of {_DAI}",
        title="Statistics of the collections",
        rows=("measure", "target"),
        columns=("dataset",),
        measures=("queries", "query words", "documents", "document words", "relevant per query"),
        digits=0,
        digits_of={"query words": 2, "document words": 2, "relevant per query": 2},
        titles={"measure": "Statistic", "target": "Source"},
        labels={
            "queries": "Test queries",
            "query words": "Mean length of a query, words",
            "documents": "Documents",
            "document words": "Mean length of a document, words",
            "relevant per query": "Relevant documents per query",
            "human": "human",
        },
        shows="what a collection consists of (a validation)",
        command="ranktilt validate DIR --json FILE",
    ),
    _dai(2, _ALONE, _SIDES, _VALIDATE),
    _dai(3, _MIXED, _BOTH, _AUDIT),
    _dai(4, _MIXED, _BOTH, _AUDIT),
    _rerank(5),
    _rerank(6),
    _dai(7, _ALONE, _SIDES, _VALIDATE),
    _dai(8, _ALONE, _SIDES, _VALIDATE),
    _dai(9, _MIXED, _BOTH, "ranktilt study DIR -r bm25 --json FILE"),
    _texts(10, "a"),
    _texts(11, "a second"),
    Layout(
        name="wang-1",
        paper=f"Table 1 of {_WANG}",
        title="Listwise evaluation: effectiveness, and exposure of the protected over that of the unprotected group",
        rows=("system",),
        columns=("condition", "measure"),
        panels=("dataset",),
        measures=("P@20", "ExposureRatio"),
        digits=4,
        labels={
            "ExposureRatio": "Exposure ratio", "neutral": "Neutral", "male": "Male", "female": "Female",
            "european": "European", "non-european": "Non-European",
        },
        shows="documents of several groups ranked by relevance (an audit with P@20)",
        command="ranktilt audit DIR -r bm25 -m P@20 --by gender --json FILE",
    ),
    Layout(
        name="wang-2",
        paper=f"Table 2 of {_WANG}",
        title="Listwise evaluation at several window and step sizes",
        rows=("condition",),
        columns=("measure",),
        panels=("dataset", "system"),
        measures=("P@20", "ExposureRatio"),
        digits=4,
        titles={"condition": "Window and step"},
        labels={
            "ExposureRatio": "Exposure ratio",
            **{f"neutral window={w} step={s}": f"window {w}, step {s}" for w, s in _WINDOWS},
        },
        shows="listwise rankings at several window and step sizes",
        command=_NO_COMMAND,
    ),
    Layout(
        name="wang-3",
        paper=f"Table 3 of {_WANG}",
        title=(
            "Pairwise evaluation: share of pairs in which the document of the unprotected and of the protected group "
            "is preferred, and the ratio of protected to unprotected"
        ),
        rows=("system",),
        columns=("condition", "measure"),
        panels=("dataset",),
        measures=("unprotected share", "protected share", "PairwiseRatio"),
        digits=4,
        derived="ratio",
        labels={
            "unprotected share": "Unprotected", "protected share": "Protected", "PairwiseRatio": "Ratio",
            "relevant": "Relevant pairs", "irrelevant": "Irrelevant pairs",
        },
        shows="pairs of documents, one of each group, judged by a pairwise ranker",
        command=_NO_COMMAND,
    ),
    Layout(
        name="askari-1",
        paper=f"Table 1 of {_ASKARI}",
        title="Number of queries",
        rows=("dataset",),
        columns=("measure",),
        measures=("queries train", "queries validation", "queries test"),
        digits=0,
        titles={"dataset": "Domain"},
        labels={
            "queries train": "Train", "queries validation": "Validation", "queries test": "Test", "all": "All",
            "queries": "Queries", "medicine": "Medicine", "finance": "Finance", "reddit": "Reddit",
            "open_qa": "OpenQA", "wiki_csai": "Wiki (CSAI)",
        },
        shows="judged queries (an audit or a validation)",
        command=_AUDIT,
    ),
)  # fmt: skip


def _askari(number: int, title: str, rows: tuple[str, ...], columns: tuple[str, ...], last: str = "RR@10") -> Layout:
    return Layout(
        name=f"askari-{number}",
        paper=f"Table {number} of {_ASKARI}",
        title=title,
        rows=rows,
        columns=columns,
        measures=("AP@1000", "nDCG@10", last),
        digits=3,
        leading_zero=False,
        shows="rankings measured without grouping (an audit)",
        command=f"ranktilt audit DIR -r bm25 -m AP@1000 -m nDCG@10 -m {last} --by none --json FILE",
    )


_LATER = (
    _askari(2, "Effectiveness of the rankers on each collection",
            ("system",), ("dataset", "measure")),
    replace(
        _askari(3, "Effectiveness in each domain", ("dataset",), ("system", "measure")),
        titles={"dataset": "Domain"},
        labels=_PRESETS[-1].labels,
        shows="rankings measured in each domain (an audit by a column of the documents)",
        command="ranktilt audit DIR -r bm25 -m AP@1000 -m nDCG@10 -m RR@10 --by domain --json FILE",
    ),
    _askari(4, "Effectiveness on each collection",
            ("dataset",), ("measure",), "R@1000"),
    _askari(5, "Effectiveness of the rankers",
            ("system",), ("measure",)),
)  # fmt: skip

LAYOUTS: dict[str, Layout] = {one.name: one for one in (*_PRESETS, *_LATER)}
"""Every preset by its name."""
PAPER = "paper"
"""The layout of every table that the results hold."""
