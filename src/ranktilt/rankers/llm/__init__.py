"""Rankers that ask a language model which of a few passages come first.

Start in `base.LLMRanker`, which shows the passages of a query in prompts and asks about them. The
rankers are `listwise` (order some passages), `pairwise` (also setwise: choose the best of a few)
and `pointwise` (one passage at a time); each says which passages to ask about next. `answers` reads
and counts what comes back, `passage_text` writes a passage on one line, and `prompts` has the
wordings. `stored_calls` ranks by the calls of another program, from its log.

May import llm, data and the other rankers. A new ranker is a subclass of `LLMRanker`, named in
`ranktilt.registry`; a new prompt is a file in `prompts`. Tests: tests/rankers/llm.
"""
