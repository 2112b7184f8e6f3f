"""What the language does not take (TW0)."""

from __future__ import annotations

from tilewright.error_pages.page import Code

LANGUAGE: dict[str, Code] = {
    "TW001": Code(
        "construct not supported in a kernel",
        "Kernel threads are compiled, not interpreted. They may use assignments, `for … in range(…)`, `if`, `with`, "
        "integer arithmetic, tuples, block expressions and calls to plain helper functions. Move anything else to "
        "host code.",
    ),
    "TW002": Code(
        "unknown name",
        "The name is not a variable of the thread, of the enclosing kernel, of the module, or a Python builtin. "
        "Values of the kernel's body are visible in its threads; values of one thread are not visible in another.",
    ),
    "TW003": Code(
        "unknown function or attribute",
        "ttl.math and ttl.block offer the functions of docs/ops.md. Other Python functions run at compile time and "
        "take plain Python values only: np.exp(block) cannot work, ttl.math.exp(block) does.",
    ),
    "TW004": Code(
        "wrong argument",
        "A function of the language got something it does not take: too many or too few arguments, a number where a "
        "block belongs, or the other way round. The help line says what it takes.",
    ),
    "TW005": Code(
        "recursion",
        "Calls to helper functions are replaced by the helper's body. A helper may call itself, directly or through others,"
        " up to 32 calls deep, if what ends the recursion is known at compile time. Otherwise write a loop over range(…).",
    ),
    "TW006": Code(
        "no source text",
        "Kernels are compiled from their source. Functions typed into a plain `python` prompt or made with exec() "
        "have none, unless the text is registered in linecache. Put the kernel into a file or a notebook cell.",
    ),
    "TW007": Code(
        "must be known at compile time",
        "Core coordinates and loop variables get their values on the device. Tuple indices, steps, shapes and "
        "assertions need values that are the same on every core and in every iteration.",
    ),
    "TW008": Code(
        "not supported yet",
        "The name belongs to the language, but this release does not compile it. Nothing was ignored: the kernel was "
        "not compiled.",
    ),
    "TW009": Code(
        "used in the wrong place",
        "Buffers and threads are made in the body of a kernel, which runs once on the host. Waiting, copying and "
        "arithmetic on blocks happen inside threads, which run on the device. The name was used on the wrong side.",
    ),
    "TW010": Code(
        "threads of a kernel",
        "A core runs one compute thread and two data-movement threads. A kernel has at least one of the three and no "
        "more than that.",
    ),
    "TW012": Code(
        "no single value here",
        "A name was assigned in a branch or loop whose course is known on the device only, and is used where its "
        "value would depend on it. Integers, block values, tensors, slices and buffers may differ by branch if both "
        "branches give the name one; blocks then have the same shape and dtype. Integers may be updated by a loop if they "
        "have a value before it; so may blocks in the compute thread, if the loop keeps their shape and dtype.",
    ),
    "TW013": Code(
        "arithmetic in a data-movement thread",
        "Data-movement processors copy tiles; they have no vector or matrix unit. Compute in the thread marked "
        "@ttl.compute() and pass blocks between the threads through buffers.",
    ),
    "TW014": Code(
        "copy in the compute thread",
        "The compute processors cannot reach memory outside the core. Copy tensor tiles in a thread marked "
        "@ttl.datamovement() and hand them over through a buffer.",
    ),
    "TW015": Code(
        "wrong option",
        "An option of the decorator, of compile() or of the command line is unknown or has a value it cannot have. "
        "All three places use the same names.",
    ),
    "TW016": Code(
        "integer division",
        "Index arithmetic on the device is unsigned. Divisors must be positive. A left side that may be negative is "
        "handled when the divisor is a constant, otherwise add a multiple of the divisor first.",
    ),
    "TW017": Code(
        "Python raised an error at compile time",
        "The kernel's body and everything in a thread that depends on plain Python values is evaluated when the "
        "kernel is compiled. That evaluation raised the exception shown.",
    ),
    "TW018": Code(
        "a statement belongs to two threads",
        "A kernel without @ttl.compute() and @ttl.datamovement() functions is one body, which is cut into threads: copies from "
        "tensors for the reader, copies to tensors for the writer, arithmetic and stores for the compute thread. A statement, "
        "and a block, belong to one of them. Hand data over through a buffer, or write the threads yourself.",
    ),
}
