"""Answers the runner's requests for vector-unit functions that it has no algorithm of its own for.

Those functions are recordings or ports of the real kernels and live with the simulator's numbers; asking for them keeps both
runs on one definition. A request is five words (length of the name, operands, 32-bit DST, count, number of parameters), the name,
the parameters and the operands; the answer is 1 and the values, or 0.
"""

from __future__ import annotations

from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint32]
HEADER_WORDS = 5


def evaluate(chip: str, key: str, operands: list[Words], params: tuple[int, ...], *, wide: bool) -> Words | None:
    """``name`` or ``name:variant`` of one to three operands, or None if the numeric model does not have it."""
    from tilewright.sim.numerics import sfpu
    from tilewright.sim.numerics.lanes import UnknownOperation

    name, _, variant = key.partition(":")
    try:
        if len(operands) == 1:
            return sfpu.unary(chip, name, operands[0], dst32=wide, params=params, variant=variant)
        if len(operands) == 2:
            return sfpu.binary(chip, name, *operands, dst32=wide, params=params)
        return sfpu.ternary(chip, name, *operands, dst32=wide, params=params)
    except (UnknownOperation, IndexError):
        return None


def serve(chip: str, requests: BinaryIO, answers: BinaryIO) -> None:
    """Answers until the runner closes its end."""
    while True:
        header = requests.read(HEADER_WORDS * 4)
        if len(header) < HEADER_WORDS * 4:
            return
        length, inputs, wide, count, param_count = (int(word) for word in np.frombuffer(header, np.uint32))
        key = requests.read(length).decode()
        params = tuple(int(word) for word in np.frombuffer(requests.read(param_count * 4), np.uint32))
        operands = [np.frombuffer(requests.read(count * 4), np.uint32) for _ in range(inputs)]
        values = evaluate(chip, key, operands, params, wide=bool(wide))
        try:
            answers.write(np.uint32(values is not None).tobytes())
            if values is not None:
                answers.write(np.ascontiguousarray(values, dtype=np.uint32).tobytes())
            answers.flush()
        except BrokenPipeError:
            return
