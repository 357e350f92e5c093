"""Sentences about results: made from data, one function a finding, never stored in a result."""
