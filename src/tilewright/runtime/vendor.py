"""The installed ttnn."""

from __future__ import annotations

import os
from importlib import metadata
from typing import Any

from tilewright.diagnostics import fail


def prepare_environment() -> None:
    """On the vendor's simulator the host itself writes to the cores. Call before ttnn opens a device."""
    if os.environ.get("TT_METAL_SIMULATOR"):
        os.environ.setdefault("TT_METAL_SLOW_DISPATCH_MODE", "1")


def load_ttnn() -> Any:
    prepare_environment()
    try:
        import ttnn  # pyright: ignore
    except ImportError as error:
        message = "running on a device needs ttnn, which cannot be imported"
        raise fail("TW601", message, help=f"pip install ttnn ({error})") from None
    return ttnn


def installed_release() -> str:
    """Release of the installed ttnn, as the speller takes it."""
    return ".".join(metadata.version("ttnn").split(".")[:2])
