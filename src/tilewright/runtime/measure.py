"""How long a program takes on the device it runs on: the best of several runs, from launch to the end of the queue."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from tilewright.program import Program
from tilewright.runtime import devices, launch
from tilewright.runtime.devices import load_ttnn

WARM_UPS, RUNS, CALLS = 3, 5, 10


def microseconds(program: Program, args: Sequence[Any], numbers: Mapping[str, int] | None = None) -> float:
    """Of one call; several are queued at once, so that the host's part is hidden where the kernel is longer than it."""
    ttnn = load_ttnn()
    device = devices.device_for(ttnn, args)
    for _ in range(WARM_UPS):
        launch.run(program, args, numbers)
    ttnn.synchronize_device(device)
    best = float("inf")
    for _ in range(RUNS):
        started = time.perf_counter()
        for _ in range(CALLS):
            launch.run(program, args, numbers)
        ttnn.synchronize_device(device)
        best = min(best, time.perf_counter() - started)
    return best / CALLS * 1e6
