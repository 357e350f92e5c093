"""Experiments with rankers: corrections held against their cost, loops that feed a collection, and trainings."""
