"""Re-rankers: models that read query and document together."""
