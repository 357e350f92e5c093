"""Group a collection's documents, and choose the pairs of groups to compare.

Start in `pairs.grouped_pairs`, which an audit calls; `pairs` also finds the twins of two groups,
which are versions of one document. `labels` makes a group of each label of a column, and
`number_bins` makes bins of numbers and of lengths, or divides a column of numbers at its mean; both
return `auditing.groups.Groups`. How label files and their values are read is in
`data/labels/label_file.py` and `data/text/label_values.py`, the names of sides such as
``non-Europe`` in `data/labels/group_names.py`. May import `data` and `auditing.groups`. Tests:
tests/auditing/test_groups.py, tests/auditing/test_property_audit.py.
"""
