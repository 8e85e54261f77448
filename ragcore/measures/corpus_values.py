"""Values of the measures of the corpus and the query."""

from __future__ import annotations

from collections.abc import Callable

from ragcore.measures.definitions import Measure
from ragcore.measures.inputs import Column, Inputs

VALUES: dict[str, Callable[[Inputs, Measure], Column]] = {}
"""How each measure of this layer is worked out."""
