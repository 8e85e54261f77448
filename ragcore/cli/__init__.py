"""The command line: parse, call, print. Data to stdout, everything else to stderr."""

from ragcore.cli import others, scoring
from ragcore.cli.shared import main

__all__ = ["main", "others", "scoring"]
