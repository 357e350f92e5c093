"""Language models: prompts in, answers out, with limits, retries and a journal.

Start in `base` (`LLM`, `Prompt`, `Reply`) and `spec` (the text of a model). `openai` asks a model
behind a server, `batches` sends requests as files, and `transformers` runs a local folder.
`journal` keeps every answer that was paid for, `estimate` says beforehand what it will cost, and
`prompts` fills in slots. `untrusted`, `responses` and `cleaning` trust nothing that a server sends.

Words of this room, which its files use without explaining them again:

- prompt: the messages that a model reads; an *answer* is what it writes. A *reply* is the outcome
  of a prompt: an answer, or a *failure* with the reason why there is none
- request: a prompt with its sampling and the number of the attempt. Its *key* is a hash of all that
  decides the answer, so that equal requests are asked and paid for once
- journal: a file with every answer by its key; *fresh* answers were not in it
- batch: a file of requests that a server answers within a day, at half the price
- reasoning: what a model writes before its answer, such as within ``<think>``; it is no answer
- rehearsal: a run of a verb that asks nothing, to know how many requests and tokens it would take

Nothing here knows about ranking. May import models, data and parallel. To add a kind of model,
write a class and name it in `base.KINDS`. Tests: tests/llm.
"""
