"""Responses of search engines as files, in JSON of any shape: made into lists of ranked documents.

Start with `answers`, which finds the answers to queries in a JSON value. `layouts` knows the
responses of widespread engines by their fields; other JSON is taken apart by `answer_shape`, which
finds the paths of queries, documents and scores by the names of their fields (`hit_fields`) and by
tables (`answer_tables`). `entries` gathers documents and their fields as columns. `answer_run` and
`folder` are the layouts of runs that consist of responses; `search_responses` reads the hits of one
response, also for live engines.
"""
