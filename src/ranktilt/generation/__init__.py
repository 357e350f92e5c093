"""Collections that language models write: rewrites, answers to queries, versions by design.

Start in `rewrite`, `answer` or `versions`, each with its own map. They share `settings` (the
options of a user), `prompts` and `templates`, `batched_requests` (ask until accepted), `checks` of
answers, `estimate` of tokens and price, `pooling` (the documents that are worth a rewrite),
`generated` (the result), and `output_folder`, `manifest` and `datacard_sections`, which write it.
May import llm, rankers and below. A new prompt is a file that a user names; a new factor is a
function in `versions`. Tests: tests/generation.
"""
