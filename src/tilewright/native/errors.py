"""What can go wrong before a kernel runs."""

from __future__ import annotations


class NativeError(Exception):
    """The native run could not be set up."""


class NoCompilerError(NativeError):
    """No C++ compiler was found."""


class KernelCompileError(NativeError):
    """The C++ compiler refused a kernel."""

    def __init__(self, kernel: str, output: str) -> None:
        super().__init__(f"{kernel} does not compile:\n{output}")
        self.kernel = kernel
        self.output = output
