"""Whether a host may be tested: our own may, that of somebody else by leave."""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import urlsplit

from unfooled.errors import UserError


def require_allowed(model: str, *, allowed: bool) -> None:
    """A host of somebody else is tested only by who says that it may be."""
    found = re.search(r"https?://\S+", model)
    host = urlsplit(found.group()).hostname if found else None
    if host is None or allowed or host == "localhost" or host.endswith((".local", ".internal")):
        return
    try:
        private = ipaddress.ip_address(host).is_private
    except ValueError:
        private = False
    if not private:
        raise UserError(
            f"{host} is neither this machine nor in a private network, and a test sends it hostile texts",
            "if its owner allows that, say so: --i-may-test-this",
        )
