"""Sentences, made from data: one function a finding."""
