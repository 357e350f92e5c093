"""What did the model rank, and what did the parser? The stored calls of an LLM ranker, read again.

Start with `replay_log.replay_log`, which splits what the published run of a log shows. `runs` makes
the runs of a log of the orders in `rankings`: the input order, the model's, the published and the
strict one. `tasks` compares them, and `result` is what comes out.
"""
