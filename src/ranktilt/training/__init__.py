"""Level it: rankers trained on a collection's own judgments."""
