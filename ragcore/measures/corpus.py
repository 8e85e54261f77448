"""Measures of the corpus and the query."""

from __future__ import annotations

from ragcore.measures.definitions import Definition

DEFINITIONS: tuple[Definition, ...] = ()
