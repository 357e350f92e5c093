"""Labels that err: answers corrected for known error rates, and how much error would matter.

A *label* says which group a document belongs to, such as a detector's guess who wrote it. A *rate*
is how often documents of a group get a wrong label.

`model.label_model` turns what a user knows (`data/labels/label_errors.py`) into rates for each part
of the documents; `correct.correct_labels` computes answers from labels that count what their rates
say, and widens intervals by the error of the rates; `sensitivity` says what errors would explain a
finding away, `checks` what cannot be corrected, `saved` corrects an audit from its file, and
`changes` the difference of two. The mathematics is in `statistics/label_errors.py`, the words in
`reporting/sentences/notes/label_errors.py`. Only differences of sums of labels can be corrected
(`GroupEstimand.label_coefficients`). Tests: tests/auditing/test_label_errors.py.
"""
