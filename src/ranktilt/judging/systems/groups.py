"""Systems that belong together: families, clusters of repeats, and likely repeats.

A family is all systems that are built on the models of one maker. A cluster is several runs of one
system, such as repeats with another random seed. Repeats err alike, so that five of them would
wrongly count as five independent systems of a family. So a cluster counts as one system with the
mean of its members.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path
from typing import Literal

import numpy as np
from scipy.sparse import csgraph

from ranktilt.data.files import decode_text, read_bytes
from ranktilt.data.notes.judges import ClusterJoined, LikelyRepeats
from ranktilt.data.runs.run import Run, file_stem
from ranktilt.errors import DataError, UserError, counted, join_words
from ranktilt.judging.systems.systems import SystemValues

REPEAT_CORRELATION = 0.99
"""Correlation of values per query above which two systems are likely repeats of one."""
NAMESAKE_CORRELATION = 0.95
"""The same for systems whose names differ only in a number: ``gpt-run1`` and ``gpt-run2``."""
_COLUMNS = ("run", "family", "cluster")
"""Columns of a file of systems."""
RepeatReason = Literal["correlation", "tag", "names"]
"""Sign that two systems are repeats of one."""
_NUMBER = re.compile(r"\d+")
"""A number in a name."""


@dataclass(frozen=True, kw_only=True)
class SystemGroups:
    """Families and clusters of systems."""

    families: Mapping[str, str] = field(default_factory=dict)
    """Family of each system; empty if nothing is asked about families."""
    clusters: Mapping[str, str] = field(default_factory=dict)
    """Cluster of each repeat; other systems are in none."""

    def family_of_systems(self) -> dict[str, str]:
        """Return the family of each system, where a cluster is one system with its own name."""
        return {self.clusters.get(run, run): family for run, family in self.families.items()}


def read_systems(path: str | Path) -> SystemGroups:
    """Read the family and the cluster of each run from a file with two or three columns.

    Parameters
    ----------
    path : str or Path
        Lines of ``run``, ``family`` and, where a run is one of several repeats, ``cluster``, with
        tabs, commas or blanks between them. A first line with these names may leave out ``family``.

    Returns
    -------
    SystemGroups
        The families, and the clusters.

    Raises
    ------
    DataError
        If a line has too few or too many fields, repeats a run with another family or cluster, or a
        cluster has two families.
    """
    path = Path(path)
    lines = decode_text(path, read_bytes(path)).splitlines()
    rows = _Rows(path=path)
    columns: tuple[str, ...] = ()  # unknown until the first line that is not blank
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        fields = _fields(line)
        if not columns:
            header = tuple(name.lower() for name in fields)
            if _is_header(header):
                columns = header
                continue
            columns = _COLUMNS
        rows.add(number, fields, columns)
    if not rows.families and not rows.clusters:
        raise DataError(path, "expected runs and their families, got none")
    return SystemGroups(families=rows.families, clusters=rows.clusters)


def _fields(line: str) -> list[str]:
    """Split a line at its tabs, or else its commas, or else its blanks."""
    if "\t" in line:
        return [value.strip() for value in line.split("\t")]
    if "," in line:
        return [value.strip() for value in next(csv.reader([line], skipinitialspace=True))]
    return line.split()


def _is_header(names: Sequence[str]) -> bool:
    """Return whether a line names the columns."""
    return len(names) > 1 and "run" in names and set(names) <= set(_COLUMNS)


@dataclass(frozen=True, kw_only=True)
class _Rows:
    """What was read so far from a file of systems."""

    path: Path
    """Path of the file."""
    families: dict[str, str] = field(default_factory=dict)
    """Family of each run."""
    clusters: dict[str, str] = field(default_factory=dict)
    """Cluster of each run."""
    family_of_cluster: dict[str, str] = field(default_factory=dict)
    """Family of each cluster."""

    def add(self, line: int, fields: Sequence[str], columns: Sequence[str]) -> None:
        """Add a line with its number in the file; refuse one that does not fit.

        `fields` are the texts between separators, and `columns` the names of the columns.
        """
        row = self._row(line, fields, columns)
        run, family, cluster = row["run"], row.get("family", ""), row.get("cluster", "")
        if run in self.families.keys() | self.clusters.keys():
            self._require_repetition(line, run, family, cluster)
        if "family" in row:
            self.families[run] = family
        if not cluster:
            return
        self.clusters[run] = cluster
        first_family = self.family_of_cluster.setdefault(cluster, family)
        if family != first_family:
            self._refuse(
                line,
                f"cluster {cluster!r} has families {first_family!r} and {family!r}: "
                "repeats of one system have one family",
            )

    def _row(self, line: int, fields: Sequence[str], columns: Sequence[str]) -> dict[str, str]:
        """Return the fields of a line by column; only a cluster may be empty or left out."""
        optional = sum(name == "cluster" for name in columns)
        if not len(columns) - optional <= len(fields) <= len(columns):
            self._refuse(
                line, f"{_expected_columns(columns)}, got {counted(len(fields), 'field', 'fields')}"
            )
        row = dict(zip(columns, fields, strict=False))
        for name in columns:
            if name != "cluster" and not row[name]:
                self._refuse(line, f"{_expected_columns(columns)}, and the {name} is empty")
        return row

    def _require_repetition(self, line: int, run: str, family: str, cluster: str) -> None:
        """Refuse a second line of a run that says something else than its first."""
        if family != self.families.get(run, ""):
            self._refuse(line, f"a second family ({family}) for run {run!r}")
        if cluster != self.clusters.get(run, ""):
            self._refuse(line, f"a second cluster ({cluster}) for run {run!r}")

    def _refuse(self, line: int, message: str) -> None:
        """Raise an error that names a line of the file."""
        raise DataError(self.path, message, line=line)


def _expected_columns(columns: Sequence[str]) -> str:
    """Return the begin of an error message, which lists the expected columns."""
    return f"expected {join_words(list(columns))} (tabs, commas or blanks between)"


def join_clusters(values: SystemValues, clusters: Mapping[str, str]) -> SystemValues:
    """Return the values with each cluster as one system, the mean of its members.

    `UserError` where a cluster has the name of a run outside of it.
    """
    system_of_run = tuple(clusters.get(run, run) for run in values.runs)
    systems = tuple(dict.fromkeys(system_of_run))
    if len(systems) == len(system_of_run):  # clusters of one run each only get another name
        return replace(values, runs=system_of_run)
    for run in values.runs:
        if run not in clusters and run in clusters.values():
            raise UserError(
                f"cluster {run!r} is also the name of a run outside it: rename the cluster in "
                "--systems"
            )
    # A row of weights for each system: equal shares of its members, 0 for all other runs.
    is_member = np.array(systems)[:, None] == np.array(system_of_run)[None, :]
    weights = is_member / is_member.sum(axis=1, keepdims=True)
    return replace(
        values,
        runs=systems,
        human=weights @ values.human,
        judged=weights @ values.judged,
        rescaled_human=weights @ values.rescaled_human,
        further_judged=weights @ values.further_judged,
    )


def cluster_notes(runs: Sequence[str], clusters: Mapping[str, str]) -> list[ClusterJoined]:
    """Note which of the runs count as one system.

    `UserError` if there are clusters, but none of them has any of the runs.
    """
    members: dict[str, list[str]] = {}
    for run in runs:
        if run in clusters:
            members.setdefault(clusters[run], []).append(run)
    if clusters and not members:
        first = next(iter(clusters))
        raise UserError(f"--systems: no run of a cluster is among the runs (first: {first!r})")
    return [
        ClusterJoined(cluster=cluster, runs=len(repeats))
        for cluster, repeats in members.items()
        if len(repeats) > 1
    ]


def run_tags(runs: Sequence[Run]) -> dict[str, str]:
    """Return the tag of each run by its file; runs without a tag are left out.

    A tag is the name of the system in the last column of a run file. A run is named by its tag, or
    else by its file. A tag that all runs share names the program that wrote them, and not the
    system; then the result is empty.
    """
    tags = {}
    for run in runs:
        file = run.spec.get("file")
        has_tag = file is not None and run.name != file_stem(file)
        if has_tag:
            tags[str(file)] = run.name
    is_shared_by_all = len(tags) == len(runs) and len(set(tags.values())) == 1
    return {} if is_shared_by_all else tags


def repeat_notes(values: SystemValues, tag_of: Mapping[str, str]) -> Iterator[LikelyRepeats]:
    """Note systems that are likely repeats of each other, in groups.

    `tag_of` holds, by name of run, the name of the system in its run file, if it has one. Two
    systems are likely repeats if values per query correlate above .99, if tags are the same, or if
    names differ only in a number and values correlate above .95. Repeats of one system are
    repeats of each other, so groups are the connected components of these pairs.
    """
    count = len(values.runs)
    correlations = np.full((count, count), np.nan)
    # With two queries every correlation is 1 or −1.
    if values.has_intervals and count > 1:
        with np.errstate(invalid="ignore", divide="ignore"):
            correlations = np.atleast_2d(np.corrcoef(values.human))
    is_repeat = np.zeros((count, count), dtype=bool)
    reasons: dict[int, RepeatReason] = {}
    for first, second in combinations(range(count), 2):
        pair = values.runs[first], values.runs[second]
        reason = _repeat_reason(pair, float(correlations[first, second]), tag_of)
        if reason is not None:
            is_repeat[first, second] = True
            reasons.setdefault(first, reason)
    # `reasons` has the first reason of each group's first member, which the note gives.
    group_count, group_of = csgraph.connected_components(is_repeat, directed=False)
    for group in range(group_count):
        members = np.flatnonzero(group_of == group).tolist()
        if len(members) > 1:
            systems = tuple(values.runs[member] for member in members)
            yield _likely_repeats(systems, reasons[members[0]], tag_of)


def _repeat_reason(
    names: tuple[str, str], correlation: float, tag_of: Mapping[str, str]
) -> RepeatReason | None:
    """Return the sign that two systems are repeats of one, or None if there is none."""
    first, second = names
    if correlation > REPEAT_CORRELATION:
        return "correlation"
    tag = tag_of.get(first, "")
    if tag and tag == tag_of.get(second):
        return "tag"
    # NaN, where the correlation is unknown, is above neither limit.
    is_namesake = first != second and _NUMBER.sub("#", first) == _NUMBER.sub("#", second)
    return "names" if is_namesake and correlation > NAMESAKE_CORRELATION else None


def _likely_repeats(
    systems: tuple[str, ...], reason: RepeatReason, tag_of: Mapping[str, str]
) -> LikelyRepeats:
    """Return the note on likely repeats, with the limit or the tag that shows them."""
    correlation = {"correlation": REPEAT_CORRELATION, "names": NAMESAKE_CORRELATION}.get(reason, 0)
    tag = tag_of[systems[0]] if reason == "tag" else ""
    return LikelyRepeats(systems=systems, reason=reason, correlation=correlation, tag=tag)
