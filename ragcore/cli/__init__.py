"""The command line: parse, call, print. Data to stdout, everything else to stderr."""

from ragcore.cli import (
    auditing,
    diagnosing,
    fusing,
    indexing,
    judging,
    others,
    scoring,
    searching,
    suites,
    sweeping,
)
from ragcore.cli.shared import main

__all__ = [
    "auditing", "diagnosing", "fusing", "indexing", "judging", "main", "others", "scoring",
    "searching", "suites", "sweeping",
]  # fmt: skip
