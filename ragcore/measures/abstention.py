"""Measures of answering and abstaining."""

from __future__ import annotations

from ragcore.measures.definitions import Definition

DEFINITIONS: tuple[Definition, ...] = ()
