"""Lets tests import their helpers as `tests.…`.

At the end of the path, so that an installed polyc is tested rather than the checkout.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent))
