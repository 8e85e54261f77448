"""Benchmarks: the asv suites, and side-by-side runs against other tools in `peers`."""
