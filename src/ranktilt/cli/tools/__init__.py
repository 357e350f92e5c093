"""Verbs around an audit: calibration, plans, logs, the cache and the installation."""
