"""What every live engine keeps to: the contract of rankers, but for identical texts, which an engine may tell apart."""

from typing import Any

from tests.rankers.contract import Make, RankerContract, copies, found


class LiveContract(RankerContract):
    """The tests; see `RankerContract`."""

    def test_no_two_scores_of_a_query_are_equal(self, make: Make) -> None:
        collection = copies(("human", "llm"))
        for entries in found(make(collection).rank(collection), collection).values():
            scores = [score for _, score in entries]
            assert len(set(scores)) == len(scores)

    def test_a_depth_of_one_keeps_copies_together(self, make: Make) -> None:
        """A depth is a depth: the engine decides between copies."""
        collection = copies(("human", "llm"))
        everything = found(make(collection).rank(collection), collection)
        one = found(make(collection, k=1).rank(collection), collection)
        assert {query: len(entries) for query, entries in one.items()} == dict.fromkeys(one, 1)
        assert one == {query: entries[:1] for query, entries in everything.items()}

    def test_identical_texts_get_identical_scores(self, make: Make) -> None:
        """They may get others, but lie beside each other wherever the engine cannot tell them apart."""
        collection = copies(("human", "llm", "other"))
        for entries in found(make(collection).rank(collection), collection).values():
            texts = [collection.docs["text"][row] for row, _ in entries]
            assert all(len(set(texts[n : n + 3])) == 1 for n in range(0, len(texts), 3))

    def test_what_sources_and_ids_are_called_does_not_matter(self, make: Make, **_: Any) -> None:
        """Which texts are found, and in which order, does not depend on names; which copy comes first may."""
        orders = []
        for sources, ids in ((("human", "llm"), "{text}-{source}"), (("z", "a"), "x{source}x{text}")):
            collection = copies(sources, ids=ids)
            entries = found(make(collection).rank(collection), collection)
            orders.append({query: [collection.docs["text"][row] for row, _ in e] for query, e in entries.items()})
        assert orders[0] == orders[1]
