"""Load a collection: a folder, found out how it lies, or what a library keeps under a name."""

from __future__ import annotations

from pathlib import Path

from ranktilt.collection import Collection
from ranktilt.datasets.assemble import judged, only_judged, read_documents, read_rows, unjudged
from ranktilt.datasets.layouts import find_layout
from ranktilt.datasets.named import DOCS, NO_QRELS, Wanted, read_name
from ranktilt.errors import UserError, unknown
from ranktilt.io.qrels import read_qrels

__all__ = ["NO_QRELS", "load"]


def load(
    path: str | Path, *, split: str | None = None, qrels: str | Path | None = None, ignore_unknown: bool = False,
    docs: str = "all", revision: str | None = None,
) -> Collection:  # fmt: skip
    """Load a collection from a folder, or by the name under which a library keeps it.

    Parameters
    ----------
    path : str or Path
        A BEIR folder (``corpus.jsonl``; fields ``source`` and ``origin`` are read where given), a
        Cocktail folder (``corpus/<source>.jsonl``), or the layout of Dai et al. (``corpus-human.jsonl``,
        ``<temperature>/corpus-<llm>.jsonl``, source ``<llm>_<temperature>``), each with ``queries.jsonl``
        and ``qrels/<split>.tsv``; every file plain or ``.gz``. Where files share ``_id``s, these are
        twins: ids become ``<_id>-<source>``, origins ``<_id>-human``, and a judgment of a bare ``_id``
        holds for every version. Or ``hub:OWNER/NAME[@REVISION]``, a dataset of the Hugging Face hub in the
        layout of Cocktail, BEIR or MTEB; or ``irds:ID``, a collection of ir_datasets.
    split : str, optional
        Which judgments; ``"test"`` by default, or the only split there is. In ir_datasets an id names its own.
    qrels : str or Path, optional
        A file of judgments in place of the collection's own, or ``"none"`` for none.
    ignore_unknown : bool, optional
        Keep judgments of documents or queries that are not in the collection instead of refusing them.
        They count in results without grouping, and nowhere else.
    docs : {"all", "judged"}, optional
        ``"judged"`` keeps the judged documents and their versions only. Measures at a cutoff then say
        little about search in the whole, for what was never judged cannot compete.
    revision : str, optional
        A branch, tag or commit of the hub, in place of ``@REVISION``.

    Returns
    -------
    Collection
        With ``spec`` naming the files it was read from, and for the hub the commit.

    Raises
    ------
    DataError
        Naming file and line of what is wrong.
    UserError
        If both a split and a file of judgments are named, or a named collection cannot be had.
    MissingExtra
        If the library that keeps a named collection is not installed.
    """
    if split is not None and qrels is not None:
        raise UserError("name a split or a file of judgments, not both")
    if docs not in DOCS:
        raise unknown("choice of documents", docs, DOCS)
    wanted = Wanted(split=split, qrels=qrels, ignore_unknown=ignore_unknown, docs=docs)
    name = read_name(path, revision=revision)
    if name is not None and name.kind == "hub":
        from ranktilt.datasets.hub import load_hub

        collection = load_hub(name, wanted)
    elif name is not None:
        from ranktilt.datasets.irds import load_irds

        return load_irds(name, wanted)  # keeps the judged documents only while it reads
    else:
        collection = _folder(Path(path), wanted)
    return only_judged(collection) if docs == "judged" else collection


def _folder(path: Path, wanted: Wanted) -> Collection:
    layout = find_layout(path)
    documents = read_documents(layout.corpora)
    queries = read_rows(layout.queries)
    files = [str(f) for f in (*(f for _, f in layout.corpora), layout.queries)]
    if wanted.qrels is not None and str(wanted.qrels) == NO_QRELS:
        spec = {"path": str(path), "qrels": NO_QRELS, "layout": layout.name, "files": files}
        return unjudged(documents[0], queries, spec)
    given = wanted.qrels
    name, file = (str(given), Path(given)) if given is not None else layout.qrels(wanted.split)
    spec = {"path": str(path), "split": name, "layout": layout.name, "files": [*files, str(file)]}
    return judged(documents, queries, read_qrels(file), file, spec=spec, ignore_unknown=wanted.ignore_unknown)
