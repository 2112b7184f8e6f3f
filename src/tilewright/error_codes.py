"""Every diagnostic code, its title and the page ``tilewright explain CODE`` prints.

TW0xx language, TW1xx shapes and types, TW2xx buffers and synchronisation, TW3xx hardware limits, TW4xx DST, TW5xx found while
running, TW6xx device and environment.
"""

from __future__ import annotations

from tilewright.error_pages.buffers import BUFFERS
from tilewright.error_pages.language import LANGUAGE
from tilewright.error_pages.limits import LIMITS
from tilewright.error_pages.page import Code
from tilewright.error_pages.runs import RUNS
from tilewright.error_pages.shapes import SHAPES

CODES: dict[str, Code] = {**LANGUAGE, **SHAPES, **BUFFERS, **LIMITS, **RUNS}
