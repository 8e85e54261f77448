"""Measures of time, cost and energy."""

from __future__ import annotations

from ragcore.measures.definitions import Definition

DEFINITIONS: tuple[Definition, ...] = ()
