"""Experiments: deviations from production, one at a time, replayed from one recorded wide run."""
