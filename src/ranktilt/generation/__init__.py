"""Collections that language models write: rewrites, answers to queries, versions by design.

Start in `rewrite`, `answer` or `versions`, each with its own map. They share `settings` (the
options of a user), `prompts` and `templates`, `batched_requests` (ask until accepted), `checks` of
answers, `estimate` of tokens and price, `pooling` (the documents that are worth a rewrite),
`generated` (the result), and `output_folder`, `manifest` and `datacard_sections`, which write it.
Words of this room, which its files use without explaining them again:

- task: a text to put into a prompt, of a document to rewrite or a query to answer
- check: what an answer must pass; a *flag* is the name of a fault that a check found
- round: one request for each text. Texts with a flagged answer are asked for again in the next
  round, up to the number of *attempts*; one without a good answer is *rejected*, and left out
- source: who wrote a document. A new source is named after the model and the temperature
- origin: the document that others were made from; it and its rewrite are twins
- spec: how a collection was made, as data that its folder keeps

May import llm, rankers and below. A new prompt is a file that a user names; a new factor is a
function in `versions`. Tests: tests/generation.
"""
