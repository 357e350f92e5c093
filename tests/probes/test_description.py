"""A description is the statistics of a collection with where it is from."""

from pathlib import Path

import polars as pl
import pytest

import ranktilt as rt
from ranktilt.collection import Collection
from ranktilt.probes.text_probes import statistics
from tests.toy import toy


def test_it_holds_the_statistics_and_comes_back_from_its_file(tmp_path: Path) -> None:
    rt.save(toy(), tmp_path / "toy")
    collection = rt.load(tmp_path / "toy")
    described = rt.describe(collection)
    assert described.statistics == statistics(collection)
    assert described.spec["path"] == str(tmp_path / "toy")
    assert rt.Description.load(described.save(tmp_path / "d.json")) == described
    assert described.frame("statistics.sources")["twins"].to_list() == [3, 3]


def test_a_collection_without_documents_is_refused() -> None:
    whole = toy()
    empty = Collection(whole.docs.filter(pl.lit(False)), whole.queries, whole.qrels, {})
    with pytest.raises(rt.UserError, match="holds no document"):
        rt.describe(empty)
