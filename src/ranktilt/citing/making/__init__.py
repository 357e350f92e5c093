"""Answers that a language model writes from documents of a collection, with their citations.

Words of this folder: a *context* is the documents that one request shows, in their order; *twins*
are the two versions of one document, written by two sources; *swapped* contexts show the versions
with their positions exchanged; a *label* is the author that a document is shown with, true or
swapped for the other group.

Start with `make.make_answers`. `contexts` chooses the documents of each request and their order,
`requests` writes them into prompts, and `reading` finds what an answer cites. `session` is the
outcome, whose answers `cite` audits, and `save` writes them as JSON lines. `settings` holds the
options. Requests go through `generation.batched_requests`, so that journal, batches, prices and
errors are those of all verbs that ask a model. May import `rankers`, `generation` and all below
them. Tests: tests/citing/test_making.py, tests/cli/test_cite.py.
"""
