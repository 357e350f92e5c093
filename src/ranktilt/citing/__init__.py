"""Whom answers cite: an audit of the citations of an answer engine.

Start with `cite`: `prepare` joins answers, labels and the retrieved lists, `unit` finds at which
unit labels are constant, `questions` lists what can be asked, `infer` gives each answer its
interval and p, `these_units` says what holds for the domains at hand, `funnel` says where a share
of citations comes from, and `result` is the outcome: data only. `gate` compares it with a limit.
Two engines: `comparison` asks both the same questions over `kept_pages`, `difference` gives the
interval, `overlap` what both cite. `explain` says which properties of pages go with a citation.
`making` lets a language model write the answers; `experiment` compares answers whose contexts
differ in one thing.

The words are in `reporting/sentences/citing`, the page in `reporting/views/cite`. May import
`auditing`, `generation` and all below them. A new question is a file in `measures/citations` and a
line in `questions`. Tests: tests/citing.
"""
