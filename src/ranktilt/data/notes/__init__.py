"""Notes: what a reader of a result should know, as data; each kind is a record of what is known.

Start with `base.Note`. `inputs` is about collections, labels and judgments, `runs` about rankings,
`groups` about the comparison of groups, `sources` about several sources, `comparisons` about two
results, `run_ranks` about runs that are ordered, `pairwise` about choices, `repeats` about engines
that rank several times, `label_errors` about wrong labels, `citations` and `made_answers` about
answers that cite pages, `texts` about checks and factors, `probes` about what probes find, `judges`
about judges, `training` about studies. The words of each kind are in `reporting/sentences/notes`,
in a file of the same name. May import nothing but `data` and the top level's files. A new kind is a
record here and a function there. Tests: tests/reporting/test_notes.py.
"""
