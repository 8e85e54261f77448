"""Write the Arrow files of the in-domain suite: ``python data/in_domain/generate.py [--out DIR]``.

``--check FAMILY`` says what is wrong with what an author wrote, and counts the query types. Vectors
come from `vectors.arrow`, by the text that they are of; ``--embed`` makes those that it lacks.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

from authored import FAMILIES, TYPES, cases, complaints


def check(family: str) -> bool:
    """Print what is wrong with a family, and how much there is of each type."""
    said = list(complaints(family))
    for line in said:
        print(line)
    listed = cases(family)
    for kind in TYPES:
        of = Counter(one["split"] for one in listed if kind in one["type"])
        print(f"{kind:24} {of.total():3}  test {of['test']}, validation {of['validation']}")
    print(f"{len(listed)} cases, {len(said)} complaints")
    return not said


def main() -> None:
    """Parse, check or write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent)
    parser.add_argument("--check", choices=FAMILIES)
    chosen = parser.parse_args()
    if chosen.check:
        sys.exit(not check(chosen.check))


if __name__ == "__main__":
    main()
