"""Text to object: which rankers there are, looked up by name and imported when asked for."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import entry_points

from ranktilt.errors import UserError, unknown
from ranktilt.rankers.base import Pipeline, Ranker
from ranktilt.rankers.stage import parse_stages

RANKERS = {
    "bm25": "ranktilt.rankers.lexical:BM25",
    "tfidf": "ranktilt.rankers.lexical:TFIDF",
    "dense": "ranktilt.rankers.dense:Dense",
    "replay": "ranktilt.rankers.replay:Replay",
}
ENTRY_POINTS = "ranktilt.rankers"


def ranker(text: str | Ranker) -> Ranker:
    """Read a ranker's text; the inverse of its ``repr``.

    Parameters
    ----------
    text : str or Ranker
        ``name[:argument][(option=value,…)][@k]``, stages joined by ``>>``, such as ``"bm25(k1=0.9,b=0.4)@100"``.
        A ranker comes back as it is.

    Returns
    -------
    Ranker
        Ready to rank; models are loaded when it does.

    Raises
    ------
    UserError
        If the text does not follow the grammar, or names an unknown ranker, option or value.
    """
    if isinstance(text, Ranker):
        return text
    stages = [ranker_class(stage.name).from_stage(stage) for stage in parse_stages(text)]
    return stages[0] if len(stages) == 1 else Pipeline(tuple(stages))


def ranker_names() -> list[str]:
    """Return the names of all rankers: ours, and those of installed packages (entry points ``ranktilt.rankers``)."""
    return [*RANKERS, *sorted({e.name for e in entry_points(group=ENTRY_POINTS)} - set(RANKERS))]


def ranker_class(name: str) -> type[Ranker]:
    """Return the class of a ranker by name; `UserError` with the nearest name where there is none."""
    if name in RANKERS:
        module, _, attribute = RANKERS[name].partition(":")
        found = getattr(import_module(module), attribute)
    else:
        foreign = [e for e in entry_points(group=ENTRY_POINTS) if e.name == name]
        if not foreign:
            raise unknown("ranker", name, ranker_names())
        found = foreign[0].load()
    if not (isinstance(found, type) and issubclass(found, Ranker)):
        raise UserError(f"ranker {name!r} is no subclass of ranktilt's Ranker")
    return found
