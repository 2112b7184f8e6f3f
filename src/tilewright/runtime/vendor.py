"""The installed ttnn."""

from __future__ import annotations

from importlib import metadata
from typing import Any

from tilewright.diagnostics import fail


def load_ttnn() -> Any:
    try:
        import ttnn  # pyright: ignore
    except ImportError as error:
        message = "running on a device needs ttnn, which cannot be imported"
        raise fail("TW601", message, help=f"pip install ttnn ({error})") from None
    return ttnn


def installed_release() -> str:
    """Release of the installed ttnn, as the speller takes it."""
    return ".".join(metadata.version("ttnn").split(".")[:2])
