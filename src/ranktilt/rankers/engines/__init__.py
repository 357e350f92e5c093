"""Live engines: rankers that ask a running search engine for each query.

Start in `base.LiveEngine`, which asks about all queries and makes a run of the answers; `calls`
makes the calls, in threads, with retries and a time limit. `function` asks any engine through a
function that the user writes, `milvus` asks Milvus. A *hit* is a document in an answer.

May import data, models and the other rankers. A new engine is a subclass of `LiveEngine` with
`connected`, named in `ranktilt.registry`. Tests: tests/rankers/engines.
"""
