"""Views of experiments: what corrections do to a tilt, and what a ranker learns in training."""
