"""Corrections at inference: rankers that put a run's candidates in an order that favours a group less."""
