"""SHA-256 without OpenSSL: loading that takes longer than all that a process hashes.

Python's own module has another name in each release; ``hashlib`` serves where it has neither.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    sha256: Callable[[bytes], Any]
else:
    try:
        from _sha2 import sha256
    except ImportError:
        try:
            from _sha256 import sha256
        except ImportError:
            from hashlib import sha256

__all__ = ["sha256"]
