"""Judges as instruments: coverage, agreement, quality, corrected rates, disputes, audits."""
