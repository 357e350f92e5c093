"""Null distributions: what an answer would be if labels, or lists, were random.

Groups that are not twins are neutral at the median of random labels and not at 0, and the card
shows the range that 95 % of random labels give. What is drawn depends on the unit:

- `judged_documents`: labels among each query's relevant documents (Relative Δ)
- `pages`: these, and one label in all lists for every other document (ΔNDSR)
- `lists`: the labels of each list by itself, or whole lists (Share, ExposureRatio, AWRF …)
- `twins`: both labels of a pair, exchanged in all lists alike
- `properties`: the values of a property in each list, in random order

The same modules list what each document's label adds to the answer (`Clusters`), from which the
error of the answer follows. Start reading in `base`. Imports: measures, statistics, and of this
room groups, judged rankings and samples. Tests: tests/auditing/test_random_labels.py.
"""
