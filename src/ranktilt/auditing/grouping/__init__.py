"""Group a collection's documents, and choose the pairs of groups to compare.

Start in `pairs.grouped_pairs`, which an audit calls: `labels` makes a group of each label of a
column (`grouping`), `number_bins` bins of numbers and of lengths, `properties` the two ends of a
column of numbers; `twins` finds documents of two groups that share an origin. All return
`auditing.groups.Groups`. How label files and their values are read is in
`data/labels/label_file.py` and `data/text/label_values.py`, the names of sides such as
``non-Europe`` in `data/labels/group_names.py`. Tests: tests/auditing/test_groups.py.
"""
