"""The listings of `lowering-multitile-compute.md` as whole modules: what they leave out ("..."), and what stands around them.

A listing is changed only where it is not MLIR (decision 0005): a store names a value that nothing there defines, and attributes of
a loop stand before its body.
"""

from __future__ import annotations

import re

import documents

DOCUMENT = "lowering-multitile-compute.md"
TILE = "!ttcore.tile<32x32, bf16>"
BLOCK = f"tensor<2x2x{TILE}>"
CB = f"<[2, 2], {TILE}, 2>"
KERNEL_CB = f"!ttkernel.cb<[2, 2], {TILE}, 2>"
FUNCTION = "func.func @add_compute() attributes {ttl.kernel_thread = #ttkernel.thread<compute>} {\n"
TARGET = f"%9 = tensor.empty() : {BLOCK}\n%10 = ttl.attach_cb %9, %2 : {BLOCK}, {CB} -> {BLOCK}\n"
RELEASES = f"ttl.cb_pop %0 : {CB}\nttl.cb_pop %1 : {CB}\nttl.cb_push %2 : {CB}\nreturn\n}}\n"
MAP = "affine_map<(d0, d1) -> (d0, d1)>"
REGION = (
    f"ins(%4, %6 : {BLOCK}, {BLOCK}) outs(%10 : {BLOCK}) "
    f'{{indexing_maps = [{MAP}, {MAP}, {MAP}], iterator_types = ["parallel", "parallel"]}}'
)
KERNEL_TYPES = {
    "copy_tile_init": f"({KERNEL_CB}) -> ()",
    "copy_tile": f"({KERNEL_CB}, index, index) -> ()",
    "add_binary_tile_init": "() -> ()",
    "add_binary_tile": "(index, index, index) -> ()",
    "tile_regs_commit": "() -> ()",
    "tile_regs_wait": "() -> ()",
    "pack_tile": f"(index, {KERNEL_CB}, index) -> ()",
}


def listing(stage: int) -> str:
    return documents.listing(DOCUMENT, f"Stage {stage}", 1)


def module(stage: int, text: str) -> str:
    """The listing of a stage as a module that verifies."""
    return {1: _initial, 2: _regions, 3: _assigned, 4: _synced, 5: _loops, 6: _calls, 7: _calls}[stage](text)


def _initial(text: str) -> str:
    text = re.sub(r"(ttl\.cb_(?:wait|reserve) %\d) : \.\.\.", rf"\1 : {CB}", text)
    text = re.sub(r"(ttl\.cb_(?:pop|push) %\d) : \.\.\.", rf"\1 : {CB}", text)
    for waited, attached, buffer in ((3, 4, 0), (5, 6, 1)):  # the listing uses %4 and %6 and does not show them
        attach = f"%{attached} = ttl.attach_cb %{waited}, %{buffer} : {BLOCK}, {CB} -> {BLOCK}"
        text = re.sub(rf"(%{waited} = ttl\.cb_wait.*)", rf"\1\n{attach}", text)
    return re.sub(r"(%9 = ttl\.add .*\n.*)", rf"\1\nttl.store %9, %7 : {BLOCK}, {BLOCK}", text)


def _head() -> str:
    """Buffers, waits and the reserve, as the first stage has them."""
    return _initial(listing(1)).partition("  %9 = ttl.add")[0]


def _regions(text: str) -> str:
    return _head() + text.replace("%2 : ...", f"%2 : {BLOCK}, {CB} -> {BLOCK}") + RELEASES


def _assigned(text: str) -> str:
    return _head() + TARGET + text.replace("ins(%4, %6 : ...) outs(%10 : ...) {...}", REGION) + RELEASES


def _synced(text: str) -> str:
    loads = re.search(r"  %13 = ttl\.linearized_index.*?(?=  %15 =)", listing(3), re.DOTALL)
    arguments = ", ".join(f"%arg{number}: {TILE}" for number in range(3))
    text = text.replace("ins(...) outs(...) {...} {", REGION + ' {"ttl.dst_footprint" = 2 : i32} {')
    text = text.replace("^bb0(...):", f"^bb0({arguments}):").replace("  // ... copy_tile operations ...\n", loads[0])
    text = re.sub(r"ttl\.store %result, %output_cb : .*", f"ttl.store %11, %10 : {BLOCK}, {BLOCK}", text)
    return _head() + TARGET + text + RELEASES


def _loops(text: str) -> str:
    text = text.replace("ttl.init_sfpu(%0, %2) : ...", f"ttl.init_sfpu(%0, %2) : {CB}, {CB}")
    text = re.sub(r"(ttl\.copy_tile .*) : \.\.\.", rf"\1 : {TILE}, index, index -> !ttl.dst, {TILE}", text)
    named = f"%result = ttl.dst_tile {{dst_idx = 2 : i32}} : {TILE}\n"
    text = text.replace("ttl.store %result, %output_cb", named + "ttl.store %result, %10")
    return _head() + TARGET + _attributes_behind(text) + RELEASES


def _attributes_behind(text: str) -> str:
    """``scf.for … {attributes} … { body }`` as ``scf.for … { body } {attributes}``."""
    attributes = re.compile(r' \{"ttl\.dst_footprint" = \d+ : i32\}')
    while found := re.search(r"scf\.for [^\n]*" + attributes.pattern, text):
        start = attributes.search(text, found.start())
        opening = text.index("{", start.end())
        depth, position = 1, opening
        while depth:
            position += 1
            depth += {"{": 1, "}": -1}.get(text[position], 0)
        text = text[: start.start()] + text[start.end() : position + 1] + start[0] + text[position + 1 :]
    return text


def _calls(text: str) -> str:
    for name, kinds in KERNEL_TYPES.items():
        text = re.sub(rf"(ttkernel\.{name}\([^)\n]*\)) : \.\.\.", rf"\1 : {kinds}", text)
    buffers = "".join(
        f"%{number} = ttkernel.get_compile_time_arg_val() {{index = {number} : i32, cb_index = {number} : i32}} : () -> {KERNEL_CB}\n"
        for number in range(3)
    )
    constants = "".join(f"%c{number} = arith.constant {number} : index\n" for number in (0, 1, 2, 4))
    # The listing begins behind the acquire and ends before the release; the C++ at the end of the document has both.
    before = [f"cb_wait_front(%{number}, %c4)" for number in (0, 1)] + ["cb_reserve_back(%2, %c4)"]
    after = [f"cb_pop_front(%{number}, %c4)" for number in (0, 1)] + ["cb_push_back(%2, %c4)"]
    handover = f" : ({KERNEL_CB}, index) -> ()\n"
    waits = "".join(f"ttkernel.{call}{handover}" for call in before) + "ttkernel.tile_regs_acquire() : () -> ()\n"
    ends = "ttkernel.tile_regs_release() : () -> ()\n" + "".join(f"ttkernel.{call}{handover}" for call in after)
    return FUNCTION + buffers + constants + waits + _attributes_behind(text) + ends + "return\n}\n"
