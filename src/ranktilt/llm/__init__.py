"""Language models: prompts in, answers out, with limits, retries and a journal.

Start in `base` (`LLM`, `Prompt`, `Reply`) and `spec` (the text of a model). `openai` asks a model
behind a server, `batches` sends requests as files, and `transformers` runs a local folder.
`journal` keeps every answer that was paid for, `estimate` says beforehand what it will cost, and
`prompts` fills in slots. `untrusted`, `responses` and `cleaning` trust nothing that a server sends.

Nothing here knows about ranking. May import models, data and parallel. To add a kind of model,
write a class and name it in `base.KINDS`. Tests: tests/llm.
"""
