"""What a native run complains about, and what can go wrong before a kernel runs."""

from __future__ import annotations

from tilewright.records import record

# Code -> what it means. A warning is no mistake of the kernel, or does not make the numbers wrong on this run.
MEANINGS = {
    "missing-startup": "a compute call before the hardware was configured",
    "late-startup": "compute_kernel_hw_startup() not first, or twice",
    "missing-init": "an op whose init never ran",
    "wrong-init": "an op under the init of another op",
    "format-mismatch": "a buffer used through a source register or packer set up for another format",
    "unpack-to-dest-operand": "an UnpackToDestFp32 buffer used as a matrix operand",
    "dst-out-of-range": "a DST index beyond the capacity",
    "read-unwritten": "a DST slot read before anything wrote it",
    "dirty-accumulate": "an accumulating op onto a slot that holds something else",
    "math-outside-window": "math outside tile_regs_acquire() .. tile_regs_commit()",
    "pack-outside-window": "a pack outside tile_regs_wait() .. tile_regs_release()",
    "acquire-twice": "tile_regs_acquire() without a commit in between",
    "commit-without-acquire": "tile_regs_commit() without tile_regs_acquire()",
    "release-without-wait": "tile_regs_release() without tile_regs_wait()",
    "width-inside-window": "the width of DST changed while math holds it",
    "missing-commit": "the kernel ends holding DST in math",
    "missing-release": "the kernel ends holding DST in the packer",
    "source-mismatch": "unpack and math disagree about the op",
    "missing-wait": "pages used or popped without cb_wait_front()",
    "missing-reserve": "pages written or pushed without cb_reserve_back()",
    "pop-beyond": "more pages popped than the buffer holds",
    "push-beyond": "more pages pushed than the buffer has room for",
    "push-unwritten": "pages pushed that nothing was packed into",
    "beyond-capacity": "a wait or reserve of more pages than the buffer has",
    "buffer-wrap": "a block that crosses the end of its buffer",
    "page-size": "a page size that disagrees with the tensor or the tile",
    "two-owners": "a buffer with two producers or two consumers",
    "unknown-buffer": "a buffer the program does not configure",
    "adjacent-slots": "operands that must lie in neighbouring DST slots do not",
    "broken-on-hardware": "a combination that gives garbage on the chip",
    "near-cancellation": "a sum that cancels to -1 unit of its grid, which this chip gets wrong in a 32-bit DST",
    "missing-reduce-uninit": "a pack under the edge mask of a reduction",
    "mask-left": "a kernel that ends under the edge mask of a reduction",
    "negative-threshold": "a negative ReLU threshold",
    "missing-barrier": "L1 used or given back while a NoC transfer is under way",
    "signal-before-data": "a semaphore that may say a transfer is done before it is",
    "address-out-of-range": "a NoC transfer outside L1 or the grid",
    "tensor-out-of-range": "a page outside its tensor",
    "misaligned-read": "a NoC read whose source and target differ in their low address bits",
    "unknown-tensor": "an address no tensor has",
    "unknown-semaphore": "a semaphore the core does not have",
    "multicast-count": "a multicast whose number of receivers is wrong",
    "multicast-corners": "a multicast whose rectangle starts at the wrong corner for its NoC",
    "argument-out-of-range": "a run-time argument the host did not give",
    "pages-left": "pages still in a buffer when the kernels end",
    "not-modelled": "a call the native run does not model",
    "deadlock": "no thread can go on",
    "timeout": "the run passed its time limit",
    "crash": "a kernel accessed memory it does not own",
}
WARNINGS = frozenset({"pages-left", "mask-left", "signal-before-data", "near-cancellation"})


@record(kw_only=True)
class Finding:
    """One complaint, at one kernel line."""

    code: str
    message: str
    file: str = ""
    line: int = 0
    thread: str = ""  # reader, unpack, math, pack, writer
    core: tuple[int, int] = (0, 0)
    count: int = 1

    @property
    def severity(self) -> str:
        return "warning" if self.code in WARNINGS else "error"

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}: " if self.file else ""
        times = f" ({self.count} times)" if self.count > 1 else ""
        return f"{place}{self.severity}: [{self.code}] {self.thread}: {self.message}{times}"


def _unescape(text: str) -> str:
    return text.replace("\\n", "\n").replace("\\t", "\t").replace("\\\\", "\\")


def parse_finding(fields: list[str]) -> Finding:
    """A ``finding`` line of the runner's result, without its first word."""
    code, file, line, thread, x, y, count, message = fields
    return Finding(
        code=code, message=_unescape(message), file=file, line=int(line), thread=thread, core=(int(x), int(y)), count=int(count)
    )


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
