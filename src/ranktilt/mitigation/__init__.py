"""Interventions against a tilt, and what they cost."""
