"""Experiments on twins: versions of documents made by a factorial design, and what each factor does to their ranks."""
