"""Make rankers from texts, such as ``bm25@100``, and from objects of other libraries.

A text has *stages*, each a name with options, which rank one after the other. The class of a ranker
is imported when it is used.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass, replace
from importlib.machinery import PathFinder
from inspect import isabstract
from typing import Any

from ranktilt.errors import UserError, shorten, unknown_name
from ranktilt.extensions import ExtensionTable, load_object
from ranktilt.models import catalogue
from ranktilt.rankers.base import Pipeline, Ranker
from ranktilt.spec import OBJECT_NAMES, Stage, parse_stages

RANKERS = {
    "bm25": "ranktilt.rankers.lexical.bm25:BM25",
    "tfidf": "ranktilt.rankers.lexical.bm25:TFIDF",
    "dense": "ranktilt.rankers.dense.retriever:Dense",
    "sparse": "ranktilt.rankers.sparse:Sparse",
    "replay": "ranktilt.rankers.replay:Replay",
    "cross-encoder": "ranktilt.rankers.rerank.cross_encoder:CrossEncoder",
    "monobert": "ranktilt.rankers.rerank.cross_encoder:MonoBERT",
    "monot5": "ranktilt.rankers.rerank.monot5:MonoT5",
    "listwise": "ranktilt.rankers.llm.listwise:Listwise",
    "pairwise": "ranktilt.rankers.llm.pairwise:Pairwise",
    "pointwise": "ranktilt.rankers.llm.pointwise:Pointwise",
    "setwise": "ranktilt.rankers.llm.pairwise:Setwise",
    "fair-rerank": "ranktilt.mitigation.fair_rerank:FairReRank",
    "interleave": "ranktilt.mitigation.interleave:Interleave",
    "offset": "ranktilt.mitigation.offset:Offset",
    "milvus": "ranktilt.rankers.engines.milvus:Milvus",
    "engine": "ranktilt.rankers.engines.function:Engine",
    "causal": "ranktilt.mitigation.causal:Causal",
}
"""RankTilt's rankers, as ``module:class`` by name; papers and other packages add theirs."""

_SENTENCE_TRANSFORMERS_ADAPTERS = {
    "SentenceTransformer": "ranktilt.adapters.sentence_transformers:SentenceTransformerRanker",
    "CrossEncoder": "ranktilt.adapters.cross_encoder:CrossEncoderRanker",
    "SparseEncoder": "ranktilt.adapters.sentence_transformers:SparseEncoderRanker",
}
"""Rankers of sentence-transformers' objects, by the names of their classes."""
_ADAPTERS = {
    ("mteb_model_meta", "search"): "ranktilt.adapters.mteb:MtebRanker",
    ("mteb_model_meta", "encode"): "ranktilt.adapters.mteb:MtebRanker",
    ("transform", "search"): "ranktilt.adapters.pyterrier:PyTerrierRanker",
    ("retrieve",): "ranktilt.adapters.llama_index:LlamaIndexRanker",
    ("invoke",): "ranktilt.adapters.langchain:LangChainRanker",
}
"""Rankers of other libraries' objects, by attributes that the objects have.

Attributes tell the library without importing it.
"""
_FUNCTION_ADAPTER = "ranktilt.adapters.function:FunctionRanker"
"""Ranker of a function."""
_RUN_ENDINGS = (".trec", ".run", ".csv", ".tsv", ".json", ".gz")
"""Endings of the names of run files."""


def ranker(text: Any, **options: Any) -> Ranker:
    """Read a ranker's text, the inverse of its ``repr``, or take an object that ranks.

    Parameters
    ----------
    text : str, Ranker, function, or object of another library
        A text is ``name[:argument][(option=value,…)][@k]``, with stages joined by ``>>``, such as
        ``"bm25(k1=0.9,b=0.4)@100"``; or the name of a model on the hub, which is read as
        ``dense:NAME``. A ranker is returned as it is. An object may be a function
        ``(queries, k) -> answers``, which is called once; a model of sentence-transformers
        (``SentenceTransformer``, ``CrossEncoder``, ``SparseEncoder``) or mteb; a pipeline of
        PyTerrier; or a retriever of LangChain (``invoke``) or LlamaIndex (``retrieve``).
    **options
        Options of the ranker that an object becomes, such as ``k=100``. A text has its options in
        it.

    Returns
    -------
    Ranker
        A ranker whose models, if a text names them, are loaded when it ranks.

    Raises
    ------
    UserError
        If the text does not follow the grammar, or has an unknown ranker, option or value; or if
        the object does not rank.
    """
    if not isinstance(text, str | Ranker):
        return _ranker_of_object(text, options)
    if options:
        raise UserError(
            f"{text!r}: expected options in the text of a ranker, such as bm25(k1=0.9)@100, got "
            f"{', '.join(options)} as keywords"
        )
    return text if isinstance(text, Ranker) else ranker_of_stages(ranker_stages(text))


def ranker_stages(text: str) -> list[Stage]:
    """Parse the text of a ranker into its stages.

    A stage may be only the name of a model on the hub: ``intfloat/e5-base@100`` is read as
    ``dense:intfloat/e5-base@100``. A model of the model table is read as what it was trained for,
    such as ``cross-encoder:NAME``.
    """
    return [_with_model_kind(stage) for stage in parse_stages(text)]


def _with_model_kind(stage: Stage) -> Stage:
    """Return a stage that is only the name of a model with the kind of ranker it is for."""
    is_hub_name = "/" in stage.name and stage.argument is None
    if not is_hub_name or _looks_like_run(stage.name) or stage.name in ranker_names():
        return stage
    model = catalogue.model(stage.name)
    return replace(stage, name=model.kind if model else "dense", argument=stage.name)


def ranker_of_stages(stages: Sequence[Stage]) -> Ranker:
    """Make the ranker that parsed stages describe; several stages make a pipeline."""
    rankers_of_stages = []
    for stage in map(_with_full_name, stages):
        kind = ranker_class(stage.name)
        _check_depth(kind, stage)
        rankers_of_stages.append(kind.from_stage(stage))
    if len(rankers_of_stages) == 1:
        return rankers_of_stages[0]
    return Pipeline(tuple(rankers_of_stages))


def _ranker_of_object(value: Any, options: Mapping[str, Any]) -> Ranker:
    """Make the ranker of an object that another library, or the user, ranks with."""
    path = _adapter(value)
    if path is None:
        hint = "; give its retriever: .as_retriever(…)" if hasattr(value, "as_retriever") else ""
        raise UserError(
            "expected the text of a ranker, a function (queries, k), a model of "
            "sentence-transformers or mteb, a PyTerrier pipeline, or a retriever of LangChain or "
            f"LlamaIndex, got {shorten(value)}{hint}"
        )
    ranker_of_object: Ranker = load_object(path).from_object(value, **options)
    return ranker_of_object


def _adapter(value: Any) -> str | None:
    """Return the class that makes a ranker of an object, as ``module:class``.

    None for an object that does not rank.
    """
    classes = {base.__name__: base.__module__ for base in type(value).__mro__}
    for name, path in _SENTENCE_TRANSFORMERS_ADAPTERS.items():
        if classes.get(name, "").startswith("sentence_transformers."):
            return path
    for attributes, path in _ADAPTERS.items():
        if all(hasattr(value, attribute) for attribute in attributes):
            return path
    # Classes and networks of torch, which have a `state_dict`, can be called too, but do not rank.
    is_function = callable(value) and not isinstance(value, type)
    return _FUNCTION_ADAPTER if is_function and not hasattr(value, "state_dict") else None


def ranker_names() -> list[str]:
    """Return the names of all rankers: RankTilt's, the papers', and those of other packages."""
    return rankers().names()


def foreign_rankers() -> list[tuple[str, str]]:
    """Return name and package of the rankers of other installed packages.

    Such as ``shortest`` and ``my-package 1.0``. Nothing is imported.
    """
    return rankers().foreign()


def ranker_class(name: str) -> type[Ranker]:
    """Return the class of a ranker; `UserError` if no ranker has this name."""
    table = rankers()
    if name not in table:
        raise UserError(f"{unknown_name('ranker', name, table.names())}{_ranker_hint(name)}")
    kind: type[Ranker] = table.load(name)
    return kind


def rankers() -> ExtensionTable:
    """Return the table of rankers."""
    return ExtensionTable(noun="ranker", group="ranktilt.rankers", bundled=RANKERS, fault=_fault)


def _ranker_hint(name: str) -> str:
    """Suggest what to type in place of a name that no ranker has; empty without a suggestion.

    The name may be that of a run, a model, an engine or an object. Nothing is imported.
    """
    if name in OBJECT_NAMES:
        return (
            "; you cannot type an object, but you can use it in Python: "
            f"rt.ranker({OBJECT_NAMES[name]})"
        )
    if _looks_like_run(name):
        return f"; is it a run? replay:{name}"
    if (model := catalogue.model(name)) is not None:
        return f"; is it a model? {model.kind}:{name}"
    if os.path.isdir(name):
        return f"; is it a model? dense:{name}"
    if name in ("http", "https"):
        return "; to query an engine at an address, write a function: engine:MODULE:FUNCTION"
    module = PathFinder.find_spec(name.partition(".")[0], [os.getcwd(), *sys.path])
    # A folder without Python files has a module spec too, but no origin.
    is_module = module is not None and bool(module.origin)
    return f"; is it an engine? engine:{name}:FUNCTION" if is_module else ""


def _looks_like_run(name: str) -> bool:
    """Tell whether a text names a file, or ends like the name of a run file."""
    return os.path.isfile(name) or os.path.splitext(name)[1] in _RUN_ENDINGS


def _fault(loaded: object, name: str) -> str:
    """Say why an object that a package offers is no ranker; empty if it is one.

    Users type rankers as they are printed, so that names must match, and options have defaults.
    """
    if not (isinstance(loaded, type) and issubclass(loaded, Ranker)):
        return "is not a subclass of ranktilt's Ranker"
    if isabstract(loaded):
        return f"does not implement {' and '.join(sorted(loaded.__abstractmethods__))}"
    if not is_dataclass(loaded):
        return "is not a dataclass; put @dataclass(frozen=True) above it"
    class_name = getattr(loaded, "name", None)
    if class_name != name:
        return f"is named {class_name!r}; its name and its entry point's must match"
    options_without_default = []
    for option in fields(loaded):
        has_default = (option.default, option.default_factory) != (MISSING, MISSING)
        if not has_default and option.name != loaded.argument:
            options_without_default.append(option.name)
    if not options_without_default:
        return ""
    options = " and ".join(options_without_default)
    return f"needs a default for {options}, because users may omit options"


def _with_full_name(stage: Stage) -> Stage:
    """Join name and argument if a ranker has such a name, as ``bm25:dai``.

    If there are such rankers, but none with this argument, the stage is refused.
    """
    if stage.argument is None:
        return stage
    full_names = [name for name in ranker_names() if name.startswith(f"{stage.name}:")]
    if not full_names:
        return stage
    full_name = f"{stage.name}:{stage.argument}"
    if full_name not in full_names:
        raise unknown_name("ranker", full_name, [stage.name, *full_names])
    return replace(stage, name=full_name, argument=None)


def _check_depth(kind: type[Ranker], stage: Stage) -> None:
    """Refuse ``@k`` if a ranker has no depth, and a depth below 1."""
    if stage.k is None:
        return
    if stage.k < 1:
        raise UserError(f"{stage.name}: expected a depth of at least 1, got @{stage.k}")
    if "k" not in {option.name for option in fields(kind)}:  # type: ignore[arg-type]
        raise UserError(f"{stage.name} takes no depth, got @{stage.k}")
