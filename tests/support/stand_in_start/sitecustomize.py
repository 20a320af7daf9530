"""On the path of processes that tests start with the stand-in device: they have it as well."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))

import stand_in

stand_in.install()
