"""Rankers that ask a language model which of some passages come first."""
