"""pyarrow.compute for type checkers: its functions are made as it is loaded, unseen by them."""

from __future__ import annotations

from typing import Any

import pyarrow.compute

pc: Any = pyarrow.compute
