"""Calibration: what the instrument says where the truth is known."""
