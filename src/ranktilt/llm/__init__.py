"""Language models: prompts in, answers out, with limits, retries and a journal.

Start in `base` (`LLM`, `Prompt`, `Reply`) and `spec` (the text of a model); `openai` is a model
behind a server, `batches` its batches, `transformers` a local folder. `journal` keeps every answer
that was paid for, `untrusted` and `cleaning` take nothing a server says on trust. Nothing here
knows of ranking. May import models, data and parallel. A new kind is a class and a line in
`base.KINDS`. Tests: tests/llm.
"""
