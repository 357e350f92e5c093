"""Read the stored calls of an LLM ranker again, to tell the model's part from the parser's.

Start with `replay_log.replay_log`, which splits the published run of a log into its parts.
`rankings` makes the orders of a log, `runs` makes runs of them: the input order, the model's order,
the published one and the strict one. `tasks` compares the runs, and `result` is the result.
"""
