"""Null distributions: what an answer would be if labels, or lists, were random.

Groups that are not twins are neutral at the median of random labels and not at 0, and the card
shows the range that 95 % of random labels give. What is drawn depends on the unit:

- `judged_documents`: labels among each query's relevant documents, or both labels of relevant
  twins, exchanged in all queries alike (Relative Δ)
- `pages`: labels of relevant documents as above, and one label in all lists for every other
  document (ΔNDSR)
- `lists`: the labels of each list by itself, or whole lists (Share, ExposureRatio, AWRF …)
- `twins`: both labels of a pair, exchanged in all lists alike (head-to-head, rank gap, score gap)
- `properties`: the values of a property in each list, in random order

The same modules list what each document's label adds to the answer (`Clusters`); the standard error
of the answer is computed from it. Start reading in `base`. Imports: measures, statistics, and of
this room groups, judged rankings and samples. Tests: tests/auditing/test_random_labels.py.
"""
