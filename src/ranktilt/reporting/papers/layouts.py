"""The papers' tables as presets: rows, columns, order, names and how numbers are printed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from ranktilt.auditing.study_sources import split_temperature
from ranktilt.errors import UserError
from ranktilt.models.catalogue import model
from ranktilt.rankers.spec import Stage, parse_stages

_LEXICAL = {"tfidf": "TF-IDF", "tfidf:dai": "TF-IDF", "bm25": "BM25", "bm25:dai": "BM25"}
_NEURAL = {
    "dense:ance": "ANCE",
    "dense:tas-b": "TAS-B",
    "dense:contriever": "Contriever",
    "cross-encoder:minilm": "MiniLM",
    "monot5:base": "monoT5",
    "monobert:large": "MonoBERT",
}
"""Not BERM, of which no checkpoint is published, nor the TinyBERT of Askari et al., whose checkpoint we do not know: a
stand-in keeps its own name."""
_DEFAULT = {"monot5": "base", "monobert": "large"}
_MEASURES = {"nDCG": "NDCG", "AP": "MAP", "RR": "MRR", "R": "Recall"}
_MEASURE = re.compile(r"(nDCG|AP|RR|R)(?=[@(]|$)")
_DATASETS = {
    "scifact": "SciFact",
    "nq320k": "NQ320K",
    "nfcorpus": "NFCorpus",
    "cocktail-nfcorpus": "NFCorpus",
    "trec2022-gender": "TREC 2022 gender",
    "trec2022-location": "TREC 2022 location",
    "trec2021-location": "TREC 2021 location",
    "trec-dl-2019": "TREC DL 2019",
    "trec-dl-2020": "TREC DL 2020",
    "dl19": "TREC DL 2019",
    "msmarco-dev": "MS MARCO dev",
    "chatgpt-retrievalqa-test": "Test set",
    "chatgpt-retrievalqa-test (human responses)": "Test, human responses",
    "chatgpt-retrievalqa-test (chatgpt responses)": "Test, ChatGPT responses",
    "chatgpt-retrievalqa-dev (human responses)": "Validation, human responses",
    "chatgpt-retrievalqa-dev (chatgpt responses)": "Validation, ChatGPT responses",
    "chatgpt-retrievalqa-train (human responses)": "Train, human responses",
    "chatgpt-retrievalqa-train (chatgpt responses)": "Train, ChatGPT responses",
}
_SAVED = re.compile(r'(?:replay:)?"?(?:[^>"]*[/\\\\])?([^/\\\\>"]+?)(?:\.(?:trec|run|txt|tsv))(?:\.gz)?"?')
"""A file of a saved run, which is called what the file is."""


def system_names(runs: Iterable[str]) -> dict[str, str]:
    """Name rankers as the papers do."""
    found = {run: _pipeline(run) for run in runs}
    shared = Counter(found.values())
    return {run: name if shared[name] == 1 else run for run, name in found.items()}


def is_reranked(run: str) -> bool:
    """Whether a ranker re-ranks what another one found."""
    return ">>" in run


def first_stage(run: str) -> str:
    """What a pipeline starts with, as the papers call it; a ranker of one stage is its own."""
    return _pipeline(run.partition(">>")[0].strip())


def _pipeline(text: str) -> str:
    if saved := _SAVED.fullmatch(text):
        return saved[1]
    try:
        names = [_stage(stage) for stage in parse_stages(text)]
    except UserError:  # a run of someone else's is called what its file says
        return text
    return "+".join(name for name in names if name) if all(names) else text


def _stage(stage: Stage) -> str:
    """The papers' name of one stage; empty where they have none."""
    if stage.options:
        return ""
    if str(replace(stage, k=None)) in _LEXICAL:
        return _LEXICAL[str(replace(stage, k=None))]
    argument = stage.argument or _DEFAULT.get(stage.name)
    known = model(argument, stage.name) if argument else None
    return _NEURAL.get(known.spec, "") if known else ""


def measure_name(measure: str) -> str:
    """Name a measure as the papers do: ``nDCG@3`` is NDCG@3, ``AP@1`` is MAP@1, ``RR@10`` is MRR@10."""
    return _MEASURE.sub(lambda found: _MEASURES[found[1]], measure, count=1)


def dataset_name(dataset: str) -> str:
    """Name a collection as the papers do; one that they do not have keeps its name."""
    return _DATASETS.get(dataset.casefold(), dataset)


def generator(source: str) -> tuple[str, str]:
    """Split the name of a source into its model and, where the name ends in one, its temperature."""
    model_name, degree = split_temperature(source)
    return model_name, "" if degree is None else temperature(degree)


def temperature(value: float) -> str:
    """Write a temperature as the papers do, with one decimal or as many as it needs; empty where it is unknown."""
    if value != value:
        return ""
    return f"{value:.1f}" if round(value, 1) == value else f"{value:g}"


def of_gpt(model_name: str) -> bool:
    """Whether a text was written by a model of the GPT family, which the papers put into tables of its own."""
    return "gpt" in model_name.casefold()


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
    """One table of a paper, without its numbers."""

    name: str
    """Such as ``dai-3``."""
    title: str
    """The caption."""
    title_of_groups: str = ""
    """The caption where the groups are not human and LLM; the same by default."""
    rows: tuple[str, ...] = ("system", "target")
    """Keys of a cell, the slowest first."""
    columns: tuple[str, ...] = ("dataset", "measure")
    """One key or two."""
    panels: tuple[str, ...] = ()
    """Keys of the blocks below each other; every key that is nowhere else and has several values joins them."""
    measures: tuple[str, ...] = ()
    """Those of the paper, in its order; others follow."""
    digits: int = 1
    """Decimals."""
    digits_of: Mapping[str, int] = field(default_factory=dict)
    """Decimals of single measures."""
    leading_zero: bool = True
    """Whether 0.5 is printed so, or .5."""
    scale: float = 1.0
    """What a value of 0 to 1 is multiplied by for the print: 100 for percent."""
    derived: str = ""
    """Which cells follow from others: ``relative_delta`` from two means, or a ``ratio`` from two shares."""
    titles: Mapping[str, str] = field(default_factory=dict)
    """Titles of keys, where they are not the usual ones."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """How values are printed, where it is not the usual way."""
    shows: str = ""
    """What a result must hold for this table."""
    command: str = ""
    """What makes such a result."""
    curve: bool = False
    """Whether its rows are the places of a curve, of which print shows a few and CSV all."""

    @property
    def paper(self) -> str:
        """Which table or figure of which paper it is."""
        paper, _, number = self.name.rpartition("-")
        kind = "Figure" if self.name in FIGURES else "Table"
        return f"{kind} {number.removeprefix('fig')} of {_PAPERS[paper]}"

    def title_of(self, key: str) -> str:
        return self.titles.get(key, _TITLES[key])

    def label(self, key: str, value: str) -> str:
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


_PAPERS = {
    "dai": "Dai et al., arXiv 2310.20501 (numbered as before KDD 2024)",
    "wang": "Wang et al., NAACL 2024",
    "askari": "Askari et al., CIKM 2023",
}
_SIX = ("nDCG@1", "nDCG@3", "nDCG@5", "AP@1", "AP@3", "AP@5")
_ALONE = "Effectiveness of each ranker on the human-written and on the LLM-generated documents alone, in percent"
_MIXED = (
    "Effectiveness of each ranker on human-written and LLM-generated documents of one mixed collection, in percent, "
    "and Relative Δ (positive where human-written text ranks higher)"
)
_GROUPS = "Effectiveness of each ranker on groups of documents of one collection, in percent, and Relative Δ"
_AUDIT = "ranktilt audit DIR -r bm25 --json FILE"
_WINDOWS = ((5, 1), (10, 5), (10, 3), (20, 10))
_BY_GENDER = "ranktilt audit DIR -r {} -m P@20 -m ExposureRatio --by gender --protected female --json FILE"


_BOTH = Layout(
    name="dai-3",
    title=_MIXED,
    title_of_groups=_GROUPS,
    measures=_SIX,
    scale=100.0,
    derived="relative_delta",
    shows="a mixed collection ranked as one (an audit or a study)",
    command=_AUDIT,
)
_EACH = replace(
    _BOTH,
    title=_ALONE,
    title_of_groups="",
    derived="",
    shows="each source ranked alone (a validation with rankers)",
    command="ranktilt validate DIR -r bm25 --json FILE",
)
_RERANKERS = replace(
    _BOTH,
    title=f"Re-rankers: {_MIXED[0].lower()}{_MIXED[1:]}",
    rows=("measure", "target"),
    columns=("dataset", "system"),
    titles={"measure": "Metrics"},
    labels={"BM25+MiniLM": "+MiniLM", "BM25+monoT5": "+monoT5"},
    shows="a mixed collection ranked by re-rankers (an audit)",
    command="ranktilt audit DIR -r bm25 -r 'bm25@100>>cross-encoder:minilm' --json FILE",
)
_TEXTS = Layout(
    name="dai-10",
    title="A human-written document and its LLM-generated version, for a query to which both are relevant",
    shows="the texts of a collection (an audit by source, with its collection)",
    command=_AUDIT,
)

_PRESETS = (
    Layout(
        name="dai-1",
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
    replace(_EACH, name="dai-2"),
    _BOTH,
    replace(_BOTH, name="dai-4"),
    replace(_RERANKERS, name="dai-5"),
    replace(_RERANKERS, name="dai-6"),
    replace(_EACH, name="dai-7"),
    replace(_EACH, name="dai-8"),
    replace(_BOTH, name="dai-9", command="ranktilt study DIR -r bm25 --json FILE"),
    _TEXTS,
    replace(_TEXTS, name="dai-11", shows=_TEXTS.shows.replace("a collection", "a second collection")),
    Layout(
        name="wang-1",
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
        shows="documents of several groups ranked by relevance (an audit by group)",
        command=_BY_GENDER.format("bm25"),
    ),
    Layout(
        name="wang-2",
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
        shows="listwise rankings at several window and step sizes (an audit by group)",
        command=_BY_GENDER.format("'bm25@200>>listwise:openai:MODEL(window=10,step=5)'"),
    ),
    Layout(
        name="wang-3",
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
        shows="pairs of documents, one of each group, judged by a language model (a pairwise audit)",
        command="ranktilt pairwise DIR --llm openai:MODEL --by gender --json FILE",
    ),
    Layout(
        name="askari-1",
        title="Number of queries",
        rows=("dataset",),
        columns=("measure",),
        measures=("queries train", "queries validation", "queries test"),
        digits=0,
        titles={"dataset": "Domain"},
        labels={
            "queries train": "Train", "queries validation": "Validation", "queries test": "Test", "all": "All",
            "queries": "Queries", "medicine": "Medicine", "finance": "Finance", "reddit": "Reddit",
            "reddit_eli5": "Reddit", "open_qa": "OpenQA", "wiki_csai": "Wiki (CSAI)",
        },
        shows="judged queries (an audit or a validation)",
        command=_AUDIT,
    ),
)  # fmt: skip


def _askari(number: int, title: str, rows: tuple[str, ...], columns: tuple[str, ...], last: str = "RR@10") -> Layout:
    return Layout(
        name=f"askari-{number}",
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

_SPECTRUM = Layout(
    name="dai-fig7",
    title="Relative singular values of the embeddings: each source's over the reference's of the same index",
    rows=("condition",),
    columns=("target",),
    digits=3,
    titles={"condition": "Index", "target": "Source"},
    labels={"human": "human"},
    shows="a spectrum (an explanation)",
    command="ranktilt explain DIR --probe spectrum --encoder dense:minilm --json FILE",
    curve=True,
)
_SWEPT = Layout(
    name="dai-fig10",
    title="Relative Δ by the coefficient α of the debiased constraint (positive where human-written text ranks higher)",
    rows=("condition",),
    columns=("measure",),
    measures=_SIX,
    titles={"condition": "α"},
    shows="interventions of rising strength (a bench)",
    command="ranktilt train retriever DIR --debias 0 --debias paper --json FILE",
)
_PERPLEXITY = Layout(
    name="dai-fig9",
    title="Log perplexity of the documents of each source",
    rows=("target",),
    columns=("measure",),
    measures=("documents", "mean", "25 %", "median", "75 %"),
    digits=2,
    digits_of={"documents": 0},
    titles={"target": "Source"},
    labels={"documents": "Documents", "mean": "Mean", "median": "Median", "human": "human"},
    shows="perplexities (an explanation)",
    command="ranktilt explain DIR --probe perplexity --json FILE",
)
_BEFORE_AND_AFTER = Layout(
    name="wang-fig4",
    title="Pairwise evaluation before and after fine-tuning: ratio of the protected to the unprotected share",
    rows=("target",),
    columns=("condition",),
    panels=("dataset",),
    measures=("PairwiseRatio",),
    digits=4,
    titles={"target": "Model"},
    labels={
        "PairwiseRatio": "ratio",
        "before": "Before",
        "after": "After",
        "relevant": "Relevant pairs",
        "irrelevant": "Irrelevant pairs",
    },
    shows="choices of two models between the same groups (a comparison of two pairwise audits)",
    command="ranktilt compare AFTER.json BEFORE.json --json FILE",
)
_DRAWN = (
    _SPECTRUM,
    replace(_SPECTRUM, name="dai-fig8", shows="the spectra of several sources (an explanation)"),
    _PERPLEXITY,
    _SWEPT,
    replace(
        _SWEPT,
        name="dai-fig11",
        title="Effectiveness on the human-written documents alone by the coefficient α of the constraint, in percent",
        scale=100.0,
        shows="interventions of rising strength, ranked on human documents alone too (a bench)",
    ),
    replace(
        _PERPLEXITY,
        name="dai-fig14",
        title="Cosine similarity of the rewrites of each source with the texts that they were made of",
        measures=("pairs", *_PERPLEXITY.measures[1:]),
        digits_of={"pairs": 0},
        labels={**_PERPLEXITY.labels, "pairs": "Pairs"},
        shows="vectors of twins (a validation with an encoder)",
        command="ranktilt validate DIR --similarity dense:minilm --json FILE",
    ),
    _BEFORE_AND_AFTER,
)
FIGURES = tuple(one.name for one in _DRAWN)
"""Layouts of figures, which are drawn too."""
LAYOUTS: dict[str, Layout] = {one.name: one for one in (*_PRESETS, *_LATER, *_DRAWN)}
"""Every preset by its name."""
PAPER = "paper"
"""The layout of every table that the results hold."""
