"""A kernel file as the translation units the runner loads."""

from __future__ import annotations

import re

from tilewright.native.program import KernelSource, NativeProgram, release_of

COMPUTE_THREADS = ("unpack", "math", "pack")

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
# Text that may differ between the three compute threads, or state that they must not share.
_PER_THREAD = re.compile(
    r"\b(?:UNPACK|MATH|PACK)\s*\(|\bTRISC_|COMPILE_FOR_TRISC|\bstatic\b(?!\s+(?:constexpr|const|inline\s+constexpr))"
    r"|^(?:volatile\s+)?(?:u?int\w*_t|int|unsigned|float|bool|size_t)\s+\w+\s*(?:=|;|\[)",
    re.MULTILINE,
)
_INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
_KNOWN_ROOTS = ("api/", "compute_kernel_api", "dataflow_api.h", "accessor/", "debug/")
_COUPLING = re.compile(r"semaphore|multicast|\bget_noc_addr\s*\(\s*\w+\s*,\s*\w+\s*,|\bmy_x\b", re.IGNORECASE)
_ACCUMULATES = re.compile(r"(?://|/\*).*(?<![-\w])accumulat(?:e|es|ed|ing)\b", re.IGNORECASE)

# What the firmware defines for each processor.
_THREAD_MACROS = {
    "unpack": "#define TRISC_UNPACK 1\n#define COMPILE_FOR_TRISC 0\n",
    "math": "#define TRISC_MATH 1\n#define COMPILE_FOR_TRISC 1\n",
    "pack": "#define TRISC_PACK 1\n#define COMPILE_FOR_TRISC 2\n",
    "compute": "#define COMPILE_FOR_TRISC 0\n",
    "reader": "#define COMPILE_FOR_NCRISC 1\n",
    "writer": "#define COMPILE_FOR_BRISC 1\n",
}


def without_comments(text: str) -> str:
    return _COMMENT.sub(" ", text)


def needs_three_units(text: str) -> bool:
    """Whether unpack, math and pack must be compiled apart."""
    code = without_comments(text)
    return bool(_PER_THREAD.search(code)) or any(not path.startswith(_KNOWN_ROOTS) for path in _INCLUDE.findall(code))


def is_coupled(program: NativeProgram) -> bool:
    """Whether cores may wait for or write to each other."""
    if program.coupled is not None:
        return program.coupled
    return any(_COUPLING.search(without_comments(kernel.source())) for kernel in program.kernels)


def accumulating_lines(text: str) -> list[int]:
    """Lines whose comment, on the line itself or alone on the line above, says that the op accumulates."""
    lines = text.split("\n")
    found: list[int] = []
    for number, line in enumerate(lines, start=1):
        if not _ACCUMULATES.search(line):
            continue
        found.append(number + 1 if line.lstrip().startswith(("//", "/*")) else number)
    return found


def unit_text(program: NativeProgram, kernel: KernelSource, thread: str) -> str:
    """The C++ handed to the compiler: the release's environment, the file itself under its own name, an entry point."""
    config = program.config
    words = "".join(f"{value & 0xFFFFFFFF}u, " for value in kernel.compile_time_args)
    defines = "".join(f"#define {name} {value}\n" for name, value in kernel.defines.items())
    text = kernel.source()
    entry = "tw_kernel_space::tw_main()" if re.search(r"\bMAIN\b", without_comments(text)) else "kernel_main()"
    label = kernel.label().replace("\\", "/")
    return (
        f"#define TW_METAL {release_of(program.metal)}\n"
        f"#define TW_COMPILE_TIME_ARGS {words}0u\n"
        f"#define TW_ACCESSOR_WORDS {program.accessor_words}\n"
        f"#define DST_ACCUM_MODE {'true' if config.fp32_dest_acc_en else 'false'}\n"
        "#define NAMESPACE tw_kernel_space\n#define MAIN tw_main()\n"
        f"{_THREAD_MACROS[thread]}{defines}"
        '#include <cstdint>\n#include <cstddef>\nusing std::size_t;\n#include "tw/kernel_args.h"\n'
        f'#line 1 "{label}"\n{text}\n'
        f'#line 1 "entry of {label}"\n'
        f'extern "C" __attribute__((visibility("default"))) void tw_entry() {{ {entry}; }}\n'
    )
