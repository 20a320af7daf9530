"""What a server says about when to come back."""

from __future__ import annotations

import email.utils
import time


def retry_after(value: str) -> float:
    """Seconds to wait, from a header that holds seconds or a date; 0 where it holds neither."""
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
    except (TypeError, ValueError):
        return 0.0
