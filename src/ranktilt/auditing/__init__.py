"""The heart: measure × group on one mixed ranking, with intervals, tests and verdicts."""
