"""Systems (rankers whose runs are evaluated) under human grades and under a judge's.

Start with `results`, which compares values per query; `evaluated_runs` holds the runs and measures
to compare. `systems` has means, orders and pairs that change places. `groups` finds systems that
belong together, `family_preference` whether a judge favours a family. `powered_estimates` combines
a judge's values with a few human labels. `judge_scores` starts from published values, which
`evaluation_files` reads.
"""
