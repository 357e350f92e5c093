"""The definitions of terms that a page explains."""
