"""Group a collection's documents, and choose the pairs of groups to compare.

Start in `pairs.grouped_pairs`, which an audit calls. `labels` makes a group of each label of a
column. `number_bins` makes bins of numbers and of lengths, and divides a column of numbers at its
mean. All return `auditing.groups.Groups`. `pairs` also finds twins: two versions of one document in
two groups. How label files and their values are read is in
`data/labels/label_file.py` and `data/text/label_values.py`, the names of sides such as
``non-Europe`` in `data/labels/group_names.py`. Tests: tests/auditing/test_groups.py.
"""
