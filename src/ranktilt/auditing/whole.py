"""What an audit's file must hold before anything is made of it: each value of its kind, and all of one piece."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any, get_type_hints

from ranktilt.auditing.confounds import NAMES as CONFOUNDS
from ranktilt.auditing.confounds import Confound
from ranktilt.auditing.effects import Effect
from ranktilt.auditing.groups import ALL
from ranktilt.errors import shorten
from ranktilt.io.artifact import typed
from ranktilt.measures.contrast import ROUNDINGS
from ranktilt.statistics.correction import CORRECTIONS

MISSING = ("zero", "exclude")
TIES = ("expected", "trec_eval")
TESTS = ("permutation", "t")
CHOICES = {"missing": MISSING, "ties": TIES, "rounding": ROUNDINGS, "test": TESTS, "correction": CORRECTIONS}
FEWEST = 100
"""Resamples of an audit."""
_DEEPEST = 20
"""Mixes of mixes."""
_TEXTS = ("path", "split", "labels", "qrels", "revision", "layout", "docs", "by")
_BESIDE = {
    "ties": ("pairs", "wins", "losses", "ties"), "absent": ("pairs",), "raw": ("pairs",),
    "whole": ("pairs", "whole", "whole_wins", "whole_losses"),
}  # fmt: skip
_MOST = 2**63
_ROW = {name: kind for name, kind in get_type_hints(Effect).items() if name not in ("estimand", "parts")}
TABLE = {**_ROW, "measure": str, "mean_a": float, "mean_b": float}
CARD = {**_ROW, "kind": str, "name": str, "estimand": str, "level": float}
_PARTS = ("runs", "measures", "groups", "queries", "spec", "values", "tilts", "pair_counts", "notes")


def require_whole(content: Mapping[str, Any]) -> None:
    """Refuse the content of an audit's file that no audit could have written.

    Parameters
    ----------
    content : mapping
        What the file holds.

    Raises
    ------
    KeyError, TypeError, ValueError
        If a part is missing, of another kind than it must be, or speaks of a run, measure, group or query that the
        audit does not have.
    """
    missing = next((name for name in _PARTS if name not in content), None)
    if missing is not None:
        raise KeyError(missing)
    for name in ("runs", "measures", "groups", "queries", "notes"):
        typed(content[name], tuple[str, ...], name)
    for name in ("runs", "measures", "groups", "queries"):
        _once(content[name], name)
    if content["groups"][:1] != [ALL]:
        raise ValueError(f"groups: expected {ALL!r} first, got {shorten(content['groups'])}")
    _require_spec(content["spec"])
    _require_tilts(content)
    _require_counts(content)
    for run, repeats in typed(content.get("repeated", {}), dict, "repeated").items():
        _among({"run": run}, content)
        if not set(typed(repeats, dict, "repeated")) <= set(content["queries"]) >= set(map(str, repeats.values())):
            raise ValueError("repeated: expected queries of the audit")
    for row in _listed(content.get("card", []), "card"):
        _fields(row, CARD)
        _require_extra(typed(row["extra"], dict, "extra"))
        _among(row, content)
    for row in _listed(content.get("confounds", []), "confounds"):
        _fields(row, get_type_hints(Confound))
        if row["name"] not in CONFOUNDS:
            raise ValueError(f"confounds: unknown {shorten(row['name'])}")
        _among({name: row[name] for name in ("a", "b")}, content)
    for row in _listed(content.get("controls", []), "controls"):
        _among(typed(row, dict, "a control"), content)
        for one in row["tilts"]:
            table_row(one)


def _require_extra(extra: Mapping[str, Any]) -> None:
    """Numbers behind an answer, and each with the counts that are told beside it."""
    for name, value in extra.items():
        typed(value, float, name)
        for count in _BESIDE.get(name, ()):
            if type(extra.get(count)) not in (int, float) or not abs(extra[count]) < _MOST:
                raise ValueError(f"extra: expected {count} beside {name}, got {shorten(extra.get(count))}")


def files_of_runs(specs: Iterable[Any]) -> list[str]:
    """List the files that runs were read from, those of their candidates too.

    Parameters
    ----------
    specs : iterable of mapping
        What made each run.

    Returns
    -------
    list of str
        Each file once.
    """
    found = dict[str, None]()
    for spec in specs:
        while isinstance(spec, Mapping):
            if "file" in spec:
                found[str(spec["file"])] = None
            spec = spec.get("candidates")
    return list(found)


def _listed(found: Any, name: str) -> list[Any]:
    if not isinstance(found, list):
        raise TypeError(f"{name}: expected a list, got {shorten(found)}")
    return found


def _once(names: Sequence[str], what: str) -> None:
    if len(set(names)) < len(names):
        raise ValueError(f"{what}: expected each name once")


def _fields(row: Any, hints: Mapping[str, Any]) -> None:
    """Each field that a row has, of its type; fields that lack are found as the row is made into its kind."""
    for name, value in typed(row, dict, "row").items():
        if name in hints:
            typed(value, hints[name], name)


def table_row(row: Any) -> None:
    """Refuse a row of Relative Δ with a field of another type than it must be."""
    _fields(row, TABLE)


def _among(row: Mapping[str, Any], content: Mapping[str, Any]) -> None:
    """Whether a row speaks of what the audit has."""
    for name, known in (("run", "runs"), ("measure", "measures"), ("a", "groups"), ("b", "groups")):
        if row.get(name) is not None and row[name] not in content[known]:
            raise ValueError(f"{name}: {shorten(row[name])} is not among the audit's {known}")


def _require_tilts(content: Mapping[str, Any]) -> None:
    """One Relative Δ for each run, pair and measure."""
    for row in _listed(content["tilts"], "tilts"):
        table_row(row)
        _among(row, content)
    found = [(row["a"], row["b"], row["run"], row["measure"]) for row in content["tilts"]]
    pairs = dict.fromkeys((a, b) for a, b, _, _ in found)
    expected = {(*pair, *rest) for pair, *rest in product(pairs, content["runs"], content["measures"])}
    if len(found) != len(expected) or set(found) != expected:
        raise ValueError("tilts: expected one for each run, measure and pair of groups")


def _require_counts(content: Mapping[str, Any]) -> None:
    """Counts of twins: for each run and pair that is counted, every query once, in order."""
    counts = typed(content["pair_counts"], dict, "pair_counts")
    columns = {name: column for name, column in counts.items() if isinstance(column, list)}
    if len(columns) < len(counts) or len(set(map(len, columns.values()))) > 1:
        raise ValueError("pair_counts: expected columns of one length")
    number = len(content["queries"])
    for name, column in columns.items():
        kinds = {"relevant": bool, "run": str, "a": str, "b": str, "query": str}
        if set(map(type, column)) - {kinds.get(name, int)}:
            raise TypeError(f"pair_counts: {name}: expected {kinds.get(name, int).__name__} in each row")
    rows = list(zip(*(columns[name] for name in ("run", "a", "b", "relevant")), strict=True))
    for start in range(0, len(rows), number or 1):
        block = slice(start, start + number)
        if set(rows[block]) != {rows[start]} or columns["query"][block] != content["queries"]:
            raise ValueError("pair_counts: expected each of the audit's queries once for each run and pair")
        run, a, b, _ = rows[start]
        _among({"run": run, "a": a, "b": b}, content)
    pairs = {row[1:] for row in rows}
    if len(set(rows)) * number != len(rows) or len(set(rows)) != len(pairs) * len(content["runs"]):
        raise ValueError("pair_counts: expected each run and pair once")


def _require_spec(spec: Any) -> None:
    typed(spec, dict, "spec")
    if spec["by"] is not None:
        typed(spec["by"], str, "by")
    for name, valid in CHOICES.items():
        if spec[name] not in valid:
            raise ValueError(f"{name}: expected one of {', '.join(valid)}; got {shorten(spec[name])}")
    for name, least in (("resamples", FEWEST), ("seed", 0)):
        if typed(spec[name], int, name) < least:
            raise ValueError(f"{name}: expected at least {least}, got {spec[name]}")
    if "level" in spec and not typed(spec["level"], float, "level") >= 0:
        raise ValueError(f"level: expected at least 0, got {shorten(spec['level'])}")
    _require_collection(spec.get("collection", {}))
    for run in _listed(spec.get("runs", []), "runs"):
        for name in ("ranker", "file", "score_order"):
            typed(typed(run, dict, "a run").get(name, ""), str, name)
    for entry in _listed(spec.get("inputs", []), "inputs"):
        for name in ("path", "sha256"):
            typed(typed(entry, dict, "an input")[name], str, name)


def _require_collection(spec: Any, depth: int = 0) -> None:
    typed(spec, dict, "collection")
    if depth > _DEEPEST:
        raise ValueError(f"collection: expected mixes at most {_DEEPEST} deep")
    for name in _TEXTS:
        if spec.get(name) is not None:
            typed(spec[name], str, name)
    for part in _listed(spec.get("mix", []), "mix"):
        _require_collection(part, depth + 1)
