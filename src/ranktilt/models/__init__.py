"""Checkpoints: found, checked, loaded and run in batches; nothing here knows of ranking."""
