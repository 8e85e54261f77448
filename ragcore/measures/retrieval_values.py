"""Values of the measures of retrieval: what was found."""

from __future__ import annotations

from collections.abc import Callable

from ragcore.measures.definitions import Measure
from ragcore.measures.inputs import Column, Inputs

VALUES: dict[str, Callable[[Inputs, Measure], Column]] = {}
"""How each measure of this layer is worked out."""
