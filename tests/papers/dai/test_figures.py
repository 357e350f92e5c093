"""Dai et al.'s Figure 13: the texts of all sources in one map."""

from dataclasses import replace

import numpy as np

from ranktilt.explaining.similarity import Map, shared_pairs
from ranktilt.papers.dai.figures import draw_map, texts_drawn
from tests.explaining.checks import toy_check


class Known:
    """Vectors of which some pairs have none."""

    def __init__(self, unknown: set[int]) -> None:
        self.unknown = unknown

    def cosines(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        return np.array([np.nan if row in self.unknown else 1.0 for row in second])


def test_shared_pairs_are_the_texts_with_a_vector_in_every_source() -> None:
    twins = {"a": np.array([[0, 3], [1, 4], [2, 5]]), "b": np.array([[2, 8], [0, 6]])}
    shared = shared_pairs(Known({4}), twins)  # type: ignore[arg-type]
    assert {source: pairs.tolist() for source, pairs in shared.items()} == {
        "a": [[0, 3], [2, 5]],
        "b": [[0, 6], [2, 8]],
    }


def test_map_of_all_sources_is_drawn_where_they_share_the_reference() -> None:
    check = toy_check(("human", "llm", "gpt"))
    texts = [f"d{number}-human" for number in range(3)]

    def laid_out(source: str, x: list[float]) -> Map:
        names = [f"d{number}-{source}" for number in range(3)]
        points = np.array([0.0, 1.0, 2.0, *x])
        ids, sources = (*texts, *names), (*["human"] * 3, *[source] * 3)
        return Map(x=points, y=points, ids=ids, sources=sources, of=3)

    drawn = [
        replace(similarity, map=laid_out(similarity.source, [number, 5.0, 6.0]))
        for number, similarity in enumerate(check.similarity)
    ]
    (figure,) = draw_map(replace(check, similarity=tuple(drawn)))
    assert "2 models" in figure.title
    rows = texts_drawn(replace(check, similarity=tuple(drawn))).rows()
    assert [(name, count) for name, _, count in rows] == [("human", 3), ("llm", 3), ("gpt", 3)]
    chart_map = drawn[1].map
    assert chart_map is not None
    moved = replace(drawn[1], map=replace(chart_map, x=chart_map.x + 1))
    assert draw_map(replace(check, similarity=(drawn[0], moved))) == ()
    assert draw_map(replace(check, similarity=(drawn[0],))) == ()
