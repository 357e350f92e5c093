"""Views of experiments: what corrections do to a tilt, and what a ranker learns in training.

`bench` is the page of a comparison of corrections, with its first figure in `bench_chart`;
`training_study` is the page of rankers that were trained on the documents of one side each.
"""
