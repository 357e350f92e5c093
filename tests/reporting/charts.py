"""A figure's specification, looked into."""

from typing import Any

Rows = list[dict[str, Any]]


def rows(drawing: dict[str, Any], mark: str, place: int = 0) -> Rows:
    """The rows of so many-th layer of a mark; none where there is no such layer."""
    layers = [one for one in drawing["layer"] if one["mark"] == mark or one["mark"]["type"] == mark]
    found: Rows = layers[place]["data"]["values"] if layers[place:] or place < 0 < len(layers) else []
    return found


def points(drawing: dict[str, Any]) -> Rows:
    """What is marked, with its interval."""
    return rows(drawing, "point")


def by_name(drawing: dict[str, Any], mark: str = "line") -> dict[str, list[float]]:
    """The heights of each series."""
    found = dict[str, list[float]]()
    for row in rows(drawing, mark):
        found.setdefault(row["name"], []).append(row["y"])
    return found


def domain(drawing: dict[str, Any], channel: str) -> list[float]:
    """From where to where an axis goes."""
    found: list[float] = next(
        one["encoding"][channel]["scale"]["domain"] for one in drawing["layer"] if channel in one["encoding"]
    )
    return found
