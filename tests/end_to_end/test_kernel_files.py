"""The files themselves: every call is one the kernel API has, and every argument read is one the launcher passes.

Over the whole corpus: each row of the op table, each structural form, real kernels, and the examples.
"""

from __future__ import annotations

import contextlib
import json
import re
from pathlib import Path

import pytest

import kernel_corpus
from tilewright import execution
from tilewright.cli import invocation
from tilewright.dialects import tile_ops
from tilewright.dialects.attributes import text_value
from tilewright.program import TensorAddress, TensorSpec
from tilewright.runtime.descriptor import compile_time_arguments

ROOT = Path(__file__).resolve().parents[2]
SIGNATURES = json.loads((ROOT / "tests/unit/dialects/signatures.json").read_text(encoding="utf-8"))
# Declared by what every kernel starts with, not by the compute API: fewest and most arguments, template arguments.
DATAFLOW = {
    "get_compile_time_arg_val": (1, 1, 0), "get_arg_val": (1, 1, 1), "TensorAccessorArgs": (0, 0, 1), "TensorAccessor": (2, 3, 0),
    ".next_compile_time_args_offset": (0, 0, 0), ".get_noc_addr": (1, 3, 0), "get_write_ptr": (1, 1, 0), "get_read_ptr": (1, 1, 0),
    "noc_async_read_page": (3, 5, 0), "noc_async_write_page": (3, 6, 0), "noc_async_read_barrier": (0, 1, 0), "noc_async_read": (3, 5, 0),
    "noc_async_write_barrier": (0, 1, 0), "noc_async_writes_flushed": (0, 1, 0), "noc_async_write": (3, 5, 0),
    "noc_async_write_multicast": (4, 6, 0), "noc_async_write_multicast_loopback_src": (4, 6, 0), "get_semaphore": (1, 1, 0), "get_noc_addr": (3, 4, 0),
    "get_noc_multicast_addr": (5, 6, 0), "noc_semaphore_wait": (2, 2, 0), "noc_semaphore_wait_min": (2, 2, 0),
    "noc_semaphore_set": (2, 2, 0), "noc_semaphore_inc": (2, 4, 0), "noc_semaphore_set_multicast": (3, 5, 0),
    "noc_semaphore_set_multicast_loopback_src": (3, 5, 0), "noc_async_atomic_barrier": (0, 1, 0), "__builtin_inff": (0, 0, 0),
    "noc_async_read_set_trid": (0, 2, 0), "noc_async_read_barrier_with_trid": (1, 2, 0),
    "cb_wait_front": (2, 2, 0), "cb_pop_front": (2, 2, 0), "cb_reserve_back": (2, 2, 0), "cb_push_back": (2, 2, 0),
}  # fmt: skip
STATEMENTS = {"for", "if", "while", "kernel_main", "reinterpret_cast", "static_cast", "min", "max", "sizeof"}
CALL = re.compile(r"\b([A-Za-z_]\w*)(<[^;(){}]*>)?\(")


def compile_corpus(kernels, chosen):
    programs = []
    for kernel in chosen:
        specs = [TensorSpec(name=f"t{place}", shape=shape, dtype=dtype) for place, (shape, dtype) in enumerate(kernel.tensors)]
        programs.append((kernel.name, kernels.compile(kernel.source, *specs, **dict(kernel.options))))
    return programs


def example_programs():
    programs = []
    for path in sorted((ROOT / "examples").rglob("*.py")):
        found = []
        compile_only = execution.session(mode=execution.COMPILE, on_compiled=(found.append,), cache=False)
        with compile_only, contextlib.suppress(AssertionError), contextlib.redirect_stdout(None):
            invocation.run_script(str(path), [])
        programs += [(f"{path.name}: {program.name}", program) for program in {id(one): one for one in found}.values()]
    return programs


@pytest.fixture(scope="module")
def programs(kernels):
    """By name. Every dtype of a row has its own calls: all are compiled."""
    return [*compile_corpus(kernels, kernel_corpus.corpus()), *example_programs()]


def test_every_row_is_in_the_corpus(programs):
    used = {text_value(op, "row") for _, program in programs for op in program.module.walk() if "row" in op.attributes}
    assert {row.name for row in tile_ops.ROWS} <= used


def without_comments(text):
    return "\n".join(line.split("//")[0] for line in text.splitlines() if not line.startswith("#"))


def split_arguments(text):
    """Arguments of a call whose opening bracket was just read."""
    depth, parts, current = 1, [], ""
    for character in text:
        depth += character in "([{"
        depth -= character in ")]}"
        if depth == 0:
            break
        if character == "," and depth == 1:
            parts.append(current)
            current = ""
        else:
            current += character
    return [part for part in (*parts, current) if part.strip()]


def calls(text):
    """Name, number of template arguments and of arguments of every call in a kernel file."""
    code = without_comments(text)
    own = set(re.findall(r"\bauto (\w+) = \[|\binline [^=;(]*?(\w+)\(", code))
    own = {name for names in own for name in names}
    for found in CALL.finditer(code):
        name, template = found[1], found[2]
        if name not in STATEMENTS | own and not code[: found.start()].endswith("ReluConfig::"):  # a value, not a call
            method = "." if code[: found.start()].endswith(".") else ""
            yield method + name, template.count(",") + 1 if template else 0, len(split_arguments(code[found.end() :]))


def declared(name, template, arguments):
    if name in DATAFLOW:
        fewest, most, templates = DATAFLOW[name]
        return fewest <= arguments <= most and template == templates
    return any(
        fewest <= arguments <= most and fewest_template <= template <= most_template and not deprecated
        for _, fewest, most, fewest_template, most_template, deprecated in SIGNATURES.get(name, ())
    )


def test_every_call_is_in_the_api(programs):
    seen = {(name, call) for name, program in programs for text in program.cpp.values() for call in calls(text)}
    wrong = sorted({call for _, call in seen if not declared(*call)})
    assert not wrong, [(call, next(name for name, other in seen if other == call)) for call in wrong]
    assert len({name for _, (name, _, _) in seen}) > 250


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("abs_tile(i);", []),
        ("abs_tile(i, j);", [("abs_tile", 0, 2)]),
        ("abs_tile<true>(i);", [("abs_tile", 1, 1)]),
        ("copy_tile_init(cb);", [("copy_tile_init", 0, 1)]),  # deprecated
        ("get_arg_val(0);", [("get_arg_val", 0, 1)]),
        ("no_such_tile(0);", [("no_such_tile", 0, 1)]),
    ],
)
def test_wrong_calls_are_found(text, found):
    assert [call for call in calls(text) if not declared(*call)] == found


CONSTANT = re.compile(r"constexpr uint32_t (\w+) = get_compile_time_arg_val\((\d+)\);")
ACCESSOR_ARGS = re.compile(r"constexpr auto (\w+) = TensorAccessorArgs<(.+)>\(\);")
ACCESSOR = re.compile(r"const auto (\w+) = TensorAccessor\((\w+), (\w+)\);")
ARGUMENT = re.compile(r"const uint32_t (\w+) = get_arg_val<uint32_t>\((\d+)\);")


def check_thread(name, program, thread):
    text = program.cpp[thread.role]
    kinds = [each.KIND for each in thread.compile_time_args]
    count = kinds.count("cb")
    assert kinds == ["cb"] * count + ["accessor"] * (len(kinds) - count), name
    constants = CONSTANT.findall(text)
    assert [int(place) for _, place in constants] == list(range(count)), name
    buffers = {buffer.index: buffer.name for buffer in program.buffers}
    for (constant, _), each in zip(constants, thread.compile_time_args[:count], strict=True):
        assert constant.startswith(buffers[each.what]), f"{name}: {constant} is given buffer {buffers[each.what]}"
    chain = ACCESSOR_ARGS.findall(text)
    offsets = [str(count), *(f"{previous}.next_compile_time_args_offset()" for previous, _ in chain)]
    assert [offset for _, offset in chain] == offsets[: len(chain)] and len(chain) == kinds.count("accessor"), name
    tensors = [each.what for each in thread.compile_time_args if each.KIND == "accessor"]
    arguments = dict(ARGUMENT.findall(text))
    for (accessor, args, address), (made, _), tensor in zip(ACCESSOR.findall(text), chain, tensors, strict=True):
        assert args == made and accessor.startswith(program.tensors[tensor].name), f"{name}: {accessor}"
        assert thread.runtime_args[int(arguments[address])] == TensorAddress(tensor), f"{name}: {address}"
    entries = [(each.KIND, each.what) for each in thread.compile_time_args]
    words = compile_time_arguments(entries, [[100 + index, 0] for index in range(len(program.tensors))])
    assert words == [each.what for each in thread.compile_time_args if each.KIND == "cb"] + [
        word for tensor in tensors for word in (100 + tensor, 0)
    ]
    read = {int(place) for place in re.findall(r"get_arg_val<uint32_t>\((\d+)", text)}
    assert max(read, default=-1) < len(thread.runtime_args), f"{name}: reads more than it is given"
    tables = [place for place, each in enumerate(thread.runtime_args) if each.KIND in ("noc_x", "noc_y", "table")]
    assert set(range(len(thread.runtime_args))) - read <= set(tables), f"{name}: is given what it does not read"


def test_arguments_line_up(programs):
    for name, program in programs:
        for thread in program.threads:
            check_thread(f"{name}, {thread.role}", program, thread)


def test_buffers_hold_whole_blocks(programs):
    """One page is one tile, and what the compute kernel unpacks exactly is 32 bits wide."""
    for name, program in programs:
        indices = [buffer.index for buffer in program.buffers]
        assert len(indices) == len(set(indices)) and max(indices, default=0) < 32, name
        wide = {buffer.index for buffer in program.buffers if buffer.dtype in ("f32", "i32", "u32")}
        assert set(program.config.unpack_to_dest) <= wide, name
        used = {each.what for thread in program.threads for each in thread.compile_time_args if each.KIND == "cb"}
        assert used <= set(indices), name
