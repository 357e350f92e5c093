"""What a run holds, taken apart for comparison."""

from ranktilt import Run


def entries(run: Run) -> dict[str, list[tuple[str, float]]]:
    """Return documents and scores of each query, best first."""
    found: dict[str, list[tuple[str, float]]] = {query: [] for query in run.queries}
    for query, document, _, score in run.frame().iter_rows():
        found[query].append((document, score))
    return found


def scores(run: Run) -> dict[str, dict[str, float]]:
    """Return each query's scores by document."""
    return {query: dict(found) for query, found in entries(run).items()}


def ids(run: Run) -> dict[str, list[str]]:
    """Return each query's documents, best first."""
    return {query: [document for document, _ in found] for query, found in entries(run).items()}
