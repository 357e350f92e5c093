"""Twins by design: versions of a document that differ in chosen properties, crossed like an experiment's factors."""
