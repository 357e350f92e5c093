"""Text to object: rankers by name, imported when they are used."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass, replace
from importlib.machinery import PathFinder
from inspect import isabstract
from typing import Any

from ranktilt.errors import UserError, shorten, unknown
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
"""RankTilt's rankers, as ``module:class``; those of papers and other packages are added to them."""

_SENTENCE_TRANSFORMERS = {
    "SentenceTransformer": "ranktilt.adapters.sentence_transformers:SentenceTransformerRanker",
    "CrossEncoder": "ranktilt.adapters.cross_encoder:CrossEncoderRanker",
    "SparseEncoder": "ranktilt.adapters.sentence_transformers:SparseEncoderRanker",
}
"""Ranker of an object, by the name of its class in sentence-transformers."""
_ADAPTERS = {
    ("mteb_model_meta", "search"): "ranktilt.adapters.mteb:MtebRanker",
    ("mteb_model_meta", "encode"): "ranktilt.adapters.mteb:MtebRanker",
    ("transform", "search"): "ranktilt.adapters.pyterrier:PyTerrierRanker",
    ("retrieve",): "ranktilt.adapters.llama_index:LlamaIndexRanker",
    ("invoke",): "ranktilt.adapters.langchain:LangChainRanker",
}
"""Rankers of other libraries' objects, by the attributes of the objects, so nothing is imported."""
_FUNCTION = "ranktilt.adapters.function:FunctionRanker"
"""Ranker of a function."""
_RUN_ENDINGS = (".trec", ".run", ".csv", ".tsv", ".json", ".gz")
"""Endings of files of runs."""


def ranker(text: Any, **options: Any) -> Ranker:
    """Read a ranker's text, the inverse of its ``repr``, or take an object that ranks.

    Parameters
    ----------
    text : str, Ranker, function, or object of another library
        ``name[:argument][(option=value,…)][@k]``, stages joined by ``>>``, such as
        ``"bm25(k1=0.9,b=0.4)@100"``, or a model's hub name, which is taken as ``dense:NAME``. A
        ranker comes back as it is. Objects: a function ``(queries, k) -> answers``, which is called
        once; models of sentence-transformers (``SentenceTransformer``, ``CrossEncoder``,
        ``SparseEncoder``) and mteb; pipelines of PyTerrier; retrievers of LangChain (``invoke``)
        and LlamaIndex (``retrieve``).
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
        If the text does not follow the grammar, or names an unknown ranker, option or value; if
        the object ranks nothing.
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
    """Parse the text of a ranker; a model's hub name alone is the model of a dense retriever.

    ``intfloat/e5-base@100`` reads as ``dense:intfloat/e5-base@100``. A model of the model table is
    taken as what it was trained for, such as ``cross-encoder:NAME``.
    """
    return [_with_kind_of_model(stage) for stage in parse_stages(text)]


def _with_kind_of_model(stage: Stage) -> Stage:
    """Put the kind of a known model before its name on the hub."""
    is_hub_name = "/" in stage.name and stage.argument is None
    if not is_hub_name or _looks_like_run(stage.name) or stage.name in ranker_names():
        return stage
    known = catalogue.model(stage.name)
    return replace(stage, name=known.kind if known else "dense", argument=stage.name)


def ranker_of_stages(stages: Sequence[Stage]) -> Ranker:
    """Make the ranker that parsed stages describe, a pipeline where there are several."""
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
    for name, path in _SENTENCE_TRANSFORMERS.items():
        if classes.get(name, "").startswith("sentence_transformers."):
            return path
    for methods, path in _ADAPTERS.items():
        if all(hasattr(value, method) for method in methods):
            return path
    # A bare network and a class can be called too, and rank nothing.
    is_function = callable(value) and not isinstance(value, type)
    return _FUNCTION if is_function and not hasattr(value, "state_dict") else None


def ranker_names() -> list[str]:
    """Return the names of all rankers: ours, the papers', and those of installed packages."""
    return rankers().names()


def foreign_rankers() -> list[tuple[str, str]]:
    """Return name and package of the rankers that installed packages bring.

    Such as ``shortest`` and ``my-package 1.0``. Nothing is imported.
    """
    return rankers().foreign()


def ranker_class(name: str) -> type[Ranker]:
    """Return the class of a ranker; `UserError` if there is none of this name."""
    table = rankers()
    if name not in table:
        raise UserError(f"{unknown('ranker', name, table.names())}{_engine_hint(name)}")
    kind: type[Ranker] = table.load(name)
    return kind


def rankers() -> ExtensionTable:
    """Return the table of rankers."""
    return ExtensionTable("ranker", "ranktilt.rankers", RANKERS, _fault)


def _engine_hint(name: str) -> str:
    """Suggest how to type a run, a model, an engine or an object that is no ranker's name.

    Nothing is imported.
    """
    if name in OBJECT_NAMES:
        return (
            "; you cannot type an object, but you can use it in Python: "
            f"rt.ranker({OBJECT_NAMES[name]})"
        )
    if _looks_like_run(name):
        return f"; is it a run? replay:{name}"
    if (known := catalogue.model(name)) is not None:
        return f"; is it a model? {known.kind}:{name}"
    if os.path.isdir(name):
        return f"; is it a model? dense:{name}"
    if name in ("http", "https"):
        return "; to query an engine at an address, write a function: engine:MODULE:FUNCTION"
    module = PathFinder.find_spec(name.partition(".")[0], [os.getcwd(), *sys.path])
    return (
        f"; is it an engine? engine:{name}:FUNCTION" if module is not None and module.origin else ""
    )


def _looks_like_run(name: str) -> bool:
    """Tell whether a text names a file, or ends like the name of a run."""
    return os.path.isfile(name) or os.path.splitext(name)[1] in _RUN_ENDINGS


def _fault(loaded: object, name: str) -> str:
    """Say why a package's object is no ranker that users can type as it prints; empty if it is."""
    if not (isinstance(loaded, type) and issubclass(loaded, Ranker)):
        return "is not a subclass of ranktilt's Ranker"
    if isabstract(loaded):
        return f"does not implement {' and '.join(sorted(loaded.__abstractmethods__))}"
    if not is_dataclass(loaded):
        return "is not a dataclass; put @dataclass(frozen=True) above it"
    class_name = getattr(loaded, "name", None)
    if class_name != name:
        return f"is named {class_name!r}; its name and its entry point's must match"
    required = []
    for option in fields(loaded):
        has_default = (option.default, option.default_factory) != (MISSING, MISSING)
        if not has_default and option.name != loaded.argument:
            required.append(option.name)
    if not required:
        return ""
    return f"needs a default for {' and '.join(required)}, because users may omit options"


def _with_full_name(stage: Stage) -> Stage:
    """Join name and argument if a ranker has such a name, as ``bm25:dai``.

    Another argument of such a ranker is refused.
    """
    if stage.argument is None:
        return stage
    alike = [name for name in ranker_names() if name.startswith(f"{stage.name}:")]
    if not alike:
        return stage
    full_name = f"{stage.name}:{stage.argument}"
    if full_name not in alike:
        raise unknown("ranker", full_name, [stage.name, *alike])
    return replace(stage, name=full_name, argument=None)


def _check_depth(kind: type[Ranker], stage: Stage) -> None:
    """Refuse ``@k`` if a ranker has no depth, and a depth below 1."""
    if stage.k is None:
        return
    if stage.k < 1:
        raise UserError(f"{stage.name}: expected a depth of at least 1, got @{stage.k}")
    if "k" not in {option.name for option in fields(kind)}:  # type: ignore[arg-type]
        raise UserError(f"{stage.name} takes no depth, got @{stage.k}")
