"""The functions the runner asks the driver for."""

from __future__ import annotations

import io

import numpy as np

from tilewright.native.driver import evaluate, serve
from tilewright.sim.numerics import sfpu

CHIP = "wormhole_b0"

VALUES = np.array([0.5, -1.25, 2.0, 3.0], np.float32).view(np.uint32)


def request(name: str, operands: list[np.ndarray], params: tuple[int, ...], *, wide: bool) -> bytes:
    header = np.array([len(name), len(operands), wide, operands[0].size, len(params)], np.uint32).tobytes()
    return header + name.encode() + np.array(params, np.uint32).tobytes() + b"".join(operand.tobytes() for operand in operands)


def test_known_functions_are_the_simulators() -> None:
    got = evaluate(CHIP, "tanh_tile", [VALUES], (), wide=True)
    assert got is not None
    assert np.array_equal(got, sfpu.unary(CHIP, "tanh_tile", VALUES, dst32=True))


def test_unknown_functions_are_declined() -> None:
    assert evaluate(CHIP, "frobnicate_tile", [VALUES], (), wide=True) is None


def test_requests_are_answered_in_order_until_the_end() -> None:
    asked = io.BytesIO(request("tanh_tile", [VALUES], (), wide=True) + request("nonsense_tile", [VALUES, VALUES], (), wide=False))
    answered = io.BytesIO()
    serve(CHIP, asked, answered)
    words = np.frombuffer(answered.getvalue(), np.uint32)
    assert words[0] == 1
    assert np.array_equal(words[1:5], sfpu.unary(CHIP, "tanh_tile", VALUES, dst32=True))
    assert words[5:].tolist() == [0]
