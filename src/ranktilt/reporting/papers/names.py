"""What the papers call things: rankers, measures, collections, groups of documents."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from ranktilt.errors import UserError
from ranktilt.models.catalogue import model
from ranktilt.rankers.spec import Stage, parse_stages

_LEXICAL = {"tfidf": "TF-IDF", "bm25": "BM25"}
_NEURAL = {
    "dense:ance": "ANCE",
    "dense:tas-b": "TAS-B",
    "dense:contriever": "Contriever",
    "cross-encoder:minilm": "MiniLM",
    "cross-encoder:tinybert": "TinyBERT",
    "monot5:base": "monoT5",
    "monobert:large": "MonoBERT",
}
"""Not BERM: no checkpoint of it is published, and a stand-in keeps its own name."""
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
    "chatgpt-retrievalqa-test (ChatGPT responses)": "Test, ChatGPT responses",
    "chatgpt-retrievalqa-train (human responses)": "Train, human responses",
    "chatgpt-retrievalqa-train (ChatGPT responses)": "Train, ChatGPT responses",
}
_SAVED = re.compile(r'(?:replay:)?"?(?:[^>"]*[/\\\\])?([^/\\\\>"]+?)(?:\.(?:trec|run|txt|tsv))(?:\.gz)?"?')
"""A file of a saved run, which is called what the file is."""
_NAMED = re.compile(r"(?<=.)[-_](?:tmp|temp|temperature)(\d+(?:\.\d+)?)$")


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
    if stage.argument is None and stage.name in _LEXICAL:
        return _LEXICAL[stage.name]
    argument = stage.argument or _DEFAULT.get(stage.name)
    known = model(argument, stage.name) if argument else None
    return _NEURAL.get(known.spec, "") if known else ""


def measure_name(measure: str) -> str:
    """Name a measure as the papers do: ``nDCG@3`` is NDCG@3, ``AP@1`` is MAP@1, ``RR@10`` is MRR@10."""
    return _MEASURE.sub(lambda found: _MEASURES[found[1]], measure, count=1)


def dataset_name(dataset: str) -> str:
    """Name a collection as the papers do; one that they do not have keeps its name."""
    return _DATASETS.get(dataset, dataset)


def generator(source: str) -> tuple[str, str]:
    """Split the name of a source into its model and, where the name ends in one, its temperature."""
    ending = _NAMED.search(source)
    return (source[: ending.start()], temperature(float(ending[1]))) if ending else (source, "")


def temperature(value: float) -> str:
    """Write a temperature as the papers do, with one decimal or as many as it needs; empty where it is unknown."""
    if value != value:
        return ""
    return f"{value:.1f}" if round(value, 1) == value else f"{value:g}"


def of_gpt(model_name: str) -> bool:
    """Whether a text was written by a model of the GPT family, which the papers put into tables of its own."""
    return "gpt" in model_name.casefold()
