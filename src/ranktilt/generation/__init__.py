"""Collections that language models write: rewrites, answers to queries, versions by design.

Start in `rewrite`, `answer` or `versions`, each with its own map. They share `settings` (what a
user chooses), `prompts`, `batched_requests` (ask until accepted), `checks` of answers, `estimate`
of tokens and price, `pooling` of what to rewrite, and what is written beside the documents
(`manifest`, `datacard_sections`). May import llm, rankers and below. A new prompt is a file that a
user names; a new factor stands in `versions`. Tests: tests/generation.
"""
