"""Read the stored calls of an LLM ranker again, to tell the model's part from the parser's.

A *log* holds the calls of one run: prompts that show passages, and the model's answers. The
*published* run is the ranking that published code made from the answers. Start with
`replay_log.replay_log`, which splits the measures of this run into parts, as differences of runs.
`rankings` makes the orders of a log, and `runs` makes four runs from them: the input order, the
model's order, the published order, and a strict order. `result` is the result; how answers are read
is in `rankers/llm/answers.py`. May import `rankers` and all below it. Tests:
tests/auditing/test_replay_log.py, tests/auditing/test_replayed_rankings.py.
"""
