"""Whom answers cite: an audit of the citations of an answer engine.

Words of this room:

- answer: what an engine wrote for a query, with the pages that it *cited*; *repeats* are several
  answers to one query
- page: a web page or a document; each has a *label*, which makes it one of a *group*. A pair is two
  groups that are compared, `a` and `b`; values above neutral favour `a`
- consulted: pages that the engine read before it answered; retrieved: pages that a search listed
  for the query. The *pool* is what could have been cited: what was consulted or, if that is
  unknown, what was retrieved
- unit: pages that are labelled together, such as those of a domain. Its pages are one observation
  of the label, so errors are clustered by unit, and a test exchanges the labels of units
- kind: all pages of a group, also those that no answer holds. A verdict is about the kind; with
  fewer than ten units there is none, and *these units* are described instead
- neutral: the value of a question that favours neither group; tilt: the distance of a value from it
- question: a way to compare two groups, such as by their citation rates. In "over questions", as
  an interval may be, questions are the queries that the engine was asked
- influence: what a row adds to the error of an estimate; support: what it adds to the denominator
- effective number: Kish's n for unequal weights, (Σ w)² / Σ w²

Start with `cite`. `prepare` joins answers with the labelled and retrieved pages of `pages` in one
table, and `unit` finds at which unit labels are constant. `effect` lists the questions that can be
asked; `effects` asks them, and `inference` gives each value its interval and p. `funnel` says where
a share of citations comes from. `query_groups` does all this by groups of queries, and
`label_errors` corrects answers for wrong labels. `result`, `effect` and `counts` are the outcome:
data only. `gate` compares it with a limit.

`comparison` compares two engines by the same questions. `explain` says which properties of pages go
with a citation. `making` lets a language model write the answers, and `experiment` compares answers
whose contexts differ in one thing.

The words are in `reporting/sentences/citing/cite`, the page in `reporting/views/cite/cite`. May
import `auditing`, `generation` and all below them. A new question is a file in `measures/citations`
and a line in `effect`. Tests: tests/citing.
"""
