"""Systems under human grades and under a judge's.

Start with `results`, which compares values per query; `systems` has means, orders and pairs that
change places. `groups` finds systems that belong together, `family_preference` whether a judge
favours a family. `corrected` repairs a judge's numbers with a human sample. `judge_scores` starts
from published values, which `evaluation_files` reads.
"""
