"""``ranktilt train``: one file a kind of ranker, a study of several, and what they share.

Start in `cross_encoder`, the plainest. `retriever` trains an encoder, or a sweep of several, and
`lora` a chat model; `study` compares rankers that learned from human and from LLM documents.
`options` holds what the commands declare alike, `arguments` reads ``--set`` as arguments of a
training, `summaries` says what a model learned. Words of this folder: a model learns to score a
*positive*, a relevant document, above *negatives*, others; a *split* is a part of the collection's
queries with its own judgments, such as train; an encoder is *fine-tuned*, which means that training
starts from its weights.

May import what its parent may. A new kind is a file with a function under `verb(parent=train)`,
imported in `cli.main`. Tests: tests/cli/test_train.py.
"""
