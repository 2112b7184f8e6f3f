"""For pytest: kernels in tests need no wrapper, show the user's lines when they fail, and are compared in one call.

Loaded by pytest through its entry point. Test files may ``import ttl``, ``ttlang``, ``tilelang`` and ``ttnn``: packages that
are not installed are answered by Tilewright (``--tilewright=always`` answers all of them, ``never`` none).
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from tilewright.comparison import difference, tolerance_of
from tilewright.diagnostics import KernelError
from tilewright.narrowing import as_tuple, is_array
from tilewright.standins import finder

if TYPE_CHECKING:
    from numpy.typing import NDArray

CHOICES = ("auto", "always", "never")
STAND_INS = pytest.StashKey[ExitStack]()


def pytest_addoption(parser: pytest.Parser) -> None:
    text = "answer imports of ttl, ttlang, tilelang and ttnn: auto (those that are not installed), always, never"
    group = parser.getgroup("tilewright", "kernels of Tilewright")
    group.addoption("--tilewright", choices=CHOICES, default=None, help=text)
    parser.addini("tilewright", text, default="auto")


def pytest_configure(config: pytest.Config) -> None:
    wanted = config.getoption("--tilewright") or config.getini("tilewright")
    if wanted not in CHOICES:
        raise pytest.UsageError(f"tilewright = {wanted}: one of {', '.join(CHOICES)}")
    packages = [] if wanted == "never" else [each for each in finder.PACKAGES if wanted == "always" or not _installed(each)]
    stack = config.stash[STAND_INS] = ExitStack()
    stack.enter_context(finder.installed(packages))


def pytest_unconfigure(config: pytest.Config) -> None:
    config.stash[STAND_INS].close()


def _installed(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is not None
    except (ImportError, ValueError):
        return False


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(call: pytest.CallInfo[Any]) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A mistake in a kernel is shown where it stands in the user's file, not where the compiler noticed it."""
    report = yield
    error = call.excinfo.value if call.excinfo is not None else None
    if isinstance(error, KernelError) and report.failed:
        report.longrepr = str(error)
    return report


@pytest.fixture
def check_kernel() -> Callable[..., None]:
    """``check_kernel(kernel, x, w, out, reference=lambda x, w: x @ w)``: simulated, run natively, compared.

    The tensors at the end that ``reference`` does not take are outputs. The two runs must agree bit for bit, and both with the
    reference, which gets float64 arrays: within ``tolerance``, a share of the element and one of the largest; by dtype unless
    given. ``native=False`` only simulates.
    """
    return compare


def compare(
    kernel: Any, *tensors: Any, reference: Callable[..., Any], native: bool = True, tolerance: tuple[float, float] | None = None
) -> None:
    import inspect

    import numpy as np

    from tilewright import execution
    from tilewright.lang.tensors import tensor_dtype

    __tracebackhide__ = True
    taken = len(inspect.signature(reference).parameters)
    inputs = [np.array(_array(each)).astype(np.float64) for each in tensors[:taken]]
    with np.errstate(all="ignore"):
        found = reference(*inputs)
    wanted: Sequence[Any] = as_tuple(found)
    outputs = tensors[taken:]
    if len(wanted) != len(outputs):
        pytest.fail(f"the reference returns {len(wanted)} arrays, the call has {len(outputs)} outputs")
    runs = {mode: _run(kernel, tensors, taken, mode) for mode in (execution.SIM, *([execution.NATIVE] if native else []))}
    for number, want in enumerate(wanted):
        first = runs[execution.SIM][number]
        for mode, results in runs.items():
            allowed = tolerance or tolerance_of(tensor_dtype(outputs[number]) or "")
            found = difference(results[number], np.asarray(want, np.float64), allowed)
            if not found.holds:
                pytest.fail(f"output {number} of the {mode} run: {found.message}")
            if results[number].tobytes() != first.tobytes():
                pytest.fail(f"output {number}: the {mode} run and the simulator differ in bits; please report this")


def _run(kernel: Any, tensors: Sequence[Any], taken: int, mode: str) -> list[NDArray[Any]]:
    import copy

    from tilewright import execution

    given = [copy.deepcopy(each) for each in tensors]
    with execution.session(mode=mode):
        kernel(*given)
    return [_array(each) for each in given[taken:]]


def _array(tensor: Any) -> NDArray[Any]:
    """Values as NumPy shows them; bfloat16 of torch and ttnn as ml_dtypes' own."""
    import ml_dtypes
    import numpy as np

    from tilewright.lang.tensors import tensor_dtype, to_array

    if is_array(tensor):
        return tensor
    found = to_array(tensor)
    return found.view(ml_dtypes.bfloat16) if tensor_dtype(tensor) == "bf16" and found.dtype == np.uint16 else found
