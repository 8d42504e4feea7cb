"""A stream of another account, in an emulator that notes whose key each call has."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from conftest_accounts import theirs

__all__ = ["theirs"]
