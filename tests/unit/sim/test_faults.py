"""Every mistake the machine model can see: its code, its line and what the message says."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.diagnostics import KernelError
from tilewright.sim.run import simulate

READER = """
def reader():
    for i in range(2):
        cb_reserve_back(a, 1)
        noc_async_read_page(i, A, get_write_ptr(a))
        noc_async_read_barrier()
        cb_push_back(a, 1)
"""

COMPUTE = """
def compute():
    init_sfpu(a, o)
    for i in range(2):
        cb_wait_front(a, 1)
        cb_reserve_back(o, 1)
        tile_regs_acquire()
        copy_tile(a, 0, 0)
        tile_regs_commit()
        tile_regs_wait()
        pack_tile(0, o, 0)
        tile_regs_release()
        cb_push_back(o, 1)
        cb_pop_front(a, 1)
"""

WRITER = """
def writer():
    for i in range(2):
        cb_wait_front(o, 1)
        noc_async_write_page(i, O, get_read_ptr(o))
        noc_async_write_barrier()
        cb_pop_front(o, 1)
"""


IDLE = "def writer():\n    pass\n"
STRAIGHT_TO_DST = {"fp32_dest_acc_en": True, "unpack_to_dest": (0,)}


def line_of(text, call):
    """Line of the first line that contains ``call``."""
    return next(number for number, line in enumerate(text.split("\n"), 1) if call in line)


@pytest.fixture
def run(make_program):
    def start(reader=READER, compute=COMPUTE, writer=WRITER, *, buffers=(("a", "bf16", 2), ("b", "bf16", 2), ("o", "bf16", 2)),
              tensors=(("A", "bf16"), ("O", "bf16")), pages=2, **options):  # fmt: skip
        text = reader + compute + writer
        program = make_program(
            text, buffers=buffers, tensors=[(name, dtype, (32, 32 * pages)) for name, dtype in tensors], **options
        )
        arrays = [np.zeros((32, 32 * pages), np.float32 if dtype == "f32" else np.uint16) for _, dtype in tensors]
        return text, program, arrays

    return start


@pytest.fixture
def expect_fault(run):
    def check(code, call, *words, **parts):
        text, program, arrays = run(**parts)
        with pytest.raises(KernelError) as caught:
            simulate(program, arrays)
        (found,) = caught.value.diagnostics
        assert found.code == code, found.render()
        assert found.span is not None
        assert found.span.line == line_of(text, call), found.render()
        for word in words:
            assert word in found.render()
        return found

    return check


def test_the_unbroken_kernel_runs(run):
    _, program, arrays = run()
    assert simulate(program, arrays).warnings == ()


def test_deadlock_says_who_waits_where_for_what(expect_fault):
    compute = COMPUTE.replace("cb_wait_front(a, 1)", "cb_wait_front(a, 2)").replace("cb_pop_front(a, 1)", "cb_pop_front(a, 2)")
    found = expect_fault("TW501", "cb_wait_front(a, 2)", "unpack", compute=compute)
    notes = {note.message.split(" ")[0]: note for note in found.notes}
    assert set(notes) == {"unpack", "math", "pack", "writer", "finished:"}
    assert "waits for 2 tiles in buffer 'a' (c_0): 0 available" in notes["unpack"].message
    assert "waits for the unpacker" in notes["math"].message
    assert "waits for math to commit DST" in notes["pack"].message
    assert "waits for 1 tiles in buffer 'o' (c_2): 0 available" in notes["writer"].message
    assert notes["finished:"].message == "finished: reader"
    assert all(note.span for name, note in notes.items() if name != "finished:")


def test_deadlock_on_a_full_buffer(expect_fault):
    found = expect_fault("TW501", "cb_reserve_back(o, 1)", writer=IDLE, compute=COMPUTE.replace("(2)", "(3)"),
                         reader=READER.replace("(2)", "(3)"), pages=3)  # fmt: skip
    assert "pack (core (0, 0)) waits for room for 1 tiles in buffer 'o' (c_2): 0 of 2 free" in found.render()


def test_deadlock_of_some_cores_names_the_first(expect_fault):
    compute = COMPUTE.replace("range(2)", "range(2 + my_core(0) // 3)")
    expect_fault("TW501", "cb_wait_front(a, 1)", "core (3, 0)", compute=compute, grid=(4, 1))


def test_read_of_an_unwritten_slot_by_the_packer(expect_fault):
    expect_fault("TW502", "pack_tile(1, o, 0)", "DST[1]", compute=COMPUTE.replace("pack_tile(0", "pack_tile(1"))


def test_read_of_an_unwritten_slot_by_the_vector_unit(expect_fault):
    compute = COMPUTE.replace(
        "        tile_regs_commit()", "        exp_tile_init()\n        exp_tile(2)\n        tile_regs_commit()"
    )
    expect_fault("TW502", "exp_tile(2)", "DST[2]", compute=compute)


def test_dst_is_zeroed_between_sections(expect_fault):
    """What an earlier section left is gone, in both halves."""
    compute = COMPUTE.replace("copy_tile(a, 0, 0)", "copy_tile(a, 0, i)")
    expect_fault("TW502", "pack_tile(0, o, 0)", compute=compute)


def test_missing_start_up(expect_fault):
    compute = COMPUTE.replace("init_sfpu(a, o)", "copy_tile_init(a)")
    expect_fault("TW503", "copy_tile(a, 0, 0)", "SrcA was never configured", compute=compute)


def test_matrix_unit_without_init(expect_fault):
    compute = COMPUTE.replace("init_sfpu(a, o)", "binary_op_init_common(a, a, o)")
    expect_fault("TW503", "copy_tile(a, 0, 0)", "never set up", "copy_tile_init(a)", compute=compute)


def test_matrix_unit_with_a_stale_init(expect_fault):
    compute = COMPUTE.replace("init_sfpu(a, o)", "init_sfpu(a, o)\n    mul_tiles_init(a, a)")
    found = expect_fault("TW503", "copy_tile(a, 0, 0)", "last set up by mul_tiles_init", compute=compute)
    assert found.notes[0].span.line == line_of(READER + compute, "mul_tiles_init")


def test_add_after_mul_init(expect_fault):
    compute = COMPUTE.replace("init_sfpu(a, o)", "binary_op_init_common(a, a, o)\n    mul_tiles_init(a, a)")
    compute = compute.replace("copy_tile(a, 0, 0)", "add_tiles(a, a, 0, 0, 0)")
    expect_fault("TW503", "add_tiles(", "math", "not by add_tiles_init", compute=compute)


def vector_calls(*calls):
    lines = "".join(f"        {call}\n" for call in calls)
    return COMPUTE.replace("        tile_regs_commit()", f"{lines}        tile_regs_commit()", 1)


def test_pack_under_the_mask_of_a_reduction(expect_fault):
    """The first section packs a reduction; the second a copy, and nobody took the packer's mask away."""
    compute = """
def compute():
    binary_op_init_common(a, a, o)
    cb_wait_front(a, 2)
    cb_reserve_back(o, 2)
    reduce_init(a, a, o, template=("PoolType::SUM", "ReduceDim::REDUCE_COL"))
    tile_regs_acquire()
    reduce_tile(a, a, 0, 1, 0, template=("PoolType::SUM", "ReduceDim::REDUCE_COL"))
    abs_tile_init()
    abs_tile(0)
    tile_regs_commit()
    tile_regs_wait()
    pack_tile(0, o, 0)
    tile_regs_release()
    copy_tile_init(a)
    tile_regs_acquire()
    copy_tile(a, 0, 1)
    tile_regs_commit()
    tile_regs_wait()
    pack_tile(1, o, 0)
    tile_regs_release()
"""
    expect_fault("TW503", "pack_tile(1, o, 0)", "DST[1]", "edge mask", "reduce_uninit", compute=compute, writer=IDLE)


def test_vector_reduction_prepared_for_another_pool(expect_fault):
    compute = vector_calls(
        'sfpu_reduce_init(template=("PoolType::MAX", "DataFormat::Float32"))',
        'sfpu_reduce(0, template=("PoolType::SUM", "DataFormat::Float32", "ReduceDim::REDUCE_ROW"))',
    )
    expect_fault("TW503", "sfpu_reduce(0", "prepared another reduction than sum", compute=compute)


def test_vector_unit_with_the_constants_of_another_op(expect_fault):
    compute = vector_calls("exp_tile_init()", "log_tile_init()", "exp_tile(0)")
    found = expect_fault("TW503", "exp_tile(0)", "last set up by log_tile_init", compute=compute)
    assert found.help == "call exp_tile_init before it"


def test_vector_unit_without_any_init(expect_fault):
    expect_fault("TW503", "abs_tile(0)", "no vector-unit init ran yet", compute=vector_calls("abs_tile(0)"))


def test_stateless_op_runs_after_any_init_and_leaves_it_in_force(run):
    _, program, arrays = run(compute=vector_calls("exp_tile_init()", "abs_tile(0)", "exp_tile(0)", "negative_tile(0)"))
    simulate(program, arrays)


def test_index_beyond_dst(expect_fault):
    expect_fault(
        "TW504", "copy_tile(a, 0, 8)", "8 tiles per acquire", compute=COMPUTE.replace("copy_tile(a, 0, 0)", "copy_tile(a, 0, 8)")
    )


@pytest.mark.parametrize(("wide", "full", "capacity"), [(False, False, 8), (True, False, 4), (False, True, 16), (True, True, 8)])
def test_dst_capacity_follows_width_and_sync(run, expect_fault, wide, full, capacity):
    options = {"fp32_dest_acc_en": wide, "dst_full_sync_en": full}
    fits = COMPUTE.replace("0, 0)", f"0, {capacity - 1})").replace("pack_tile(0", f"pack_tile({capacity - 1}")
    _, program, arrays = run(compute=fits, **options)
    simulate(program, arrays)
    expect_fault("TW504", "copy_tile(", compute=COMPUTE.replace("0, 0)", f"0, {capacity})"), **options)


def test_reserve_of_more_than_the_buffer_holds(expect_fault):
    expect_fault(
        "TW505", "cb_reserve_back(a, 3)", "holds only 2", reader=READER.replace("cb_reserve_back(a, 1)", "cb_reserve_back(a, 3)")
    )


SHORT_LAP = """
def reader():
    for i in range(2):
        cb_reserve_back(a, 2)
        noc_async_read_page(0, A, get_write_ptr(a))
        noc_async_read_barrier()
        cb_push_back(a, 2)
"""


def test_push_that_passes_the_end(expect_fault):
    compute = COMPUTE.replace("cb_wait_front(a, 1)", "cb_wait_front(a, 2)").replace("cb_pop_front(a, 1)", "cb_pop_front(a, 2)")
    buffers = (("a", "bf16", 3), ("b", "bf16", 2), ("o", "bf16", 2))
    found = expect_fault("TW505", "cb_push_back(a, 2)", "passes its end at 3", reader=SHORT_LAP, compute=compute, buffers=buffers)
    assert "let the block size divide" in found.help


def test_tile_that_was_not_waited_for(expect_fault):
    expect_fault(
        "TW506",
        "copy_tile(a, 1, 0)",
        "1 tiles were waited for",
        compute=COMPUTE.replace("copy_tile(a, 0, 0)", "copy_tile(a, 1, 0)"),
    )


def test_use_after_pop(expect_fault):
    compute = COMPUTE.replace("        cb_pop_front(a, 1)\n", "").replace(
        "        tile_regs_acquire()", "        cb_pop_front(a, 1)\n        tile_regs_acquire()"
    )
    expect_fault("TW506", "copy_tile(a, 0, 0)", "0 tiles were waited for since the last pop", compute=compute)


def test_pack_of_a_tile_that_is_not_reserved(expect_fault):
    compute = COMPUTE.replace("pack_tile(0, o, 0)", "pack_tile(0, o, 1, out_of_order=True)")
    expect_fault("TW506", "pack_tile(", "1 tiles are reserved", compute=compute)


def test_second_in_order_pack_without_room(expect_fault):
    compute = COMPUTE.replace(
        "        pack_tile(0, o, 0)", "        pack_tile(0, o, 0)\n        pack_tile(0, o, 0, template=('again',))"
    )
    expect_fault("TW506", "'again'", "writes tile 1", compute=compute)


def test_push_without_reserve(expect_fault):
    expect_fault("TW507", "cb_push_back(o, 1)", "but 0 are reserved", compute=COMPUTE.replace(
        "        cb_reserve_back(o, 1)\n", "").replace("        pack_tile(0, o, 0)\n", ""))  # fmt: skip


def test_pop_without_wait(expect_fault):
    writer = WRITER.replace("cb_pop_front(o, 1)", "cb_pop_front(o, 2)")
    expect_fault("TW508", "cb_pop_front(o, 2)", "1 were waited for", writer=writer)


def test_math_before_acquire(expect_fault):
    compute = COMPUTE.replace(
        "        tile_regs_acquire()\n        copy_tile(a, 0, 0)\n", "        copy_tile(a, 0, 0)\n        tile_regs_acquire()\n"
    )
    expect_fault("TW509", "copy_tile(a, 0, 0)", "math does not hold DST", compute=compute)


def test_pack_after_release(expect_fault):
    compute = COMPUTE.replace(
        "        pack_tile(0, o, 0)\n        tile_regs_release()\n", "        tile_regs_release()\n        pack_tile(0, o, 0)\n"
    )
    expect_fault("TW509", "pack_tile(0, o, 0)", "the packer does not hold DST", compute=compute)


def test_acquire_twice(expect_fault):
    expect_fault("TW509", "tile_regs_acquire()", "already holds", compute=COMPUTE.replace("        tile_regs_commit()\n", ""))


def test_push_before_the_read_barrier(expect_fault):
    reader = READER.replace(
        "        noc_async_read_barrier()\n        cb_push_back(a, 1)\n",
        "        cb_push_back(a, 1)\n        noc_async_read_barrier()\n",
    )
    expect_fault("TW510", "cb_push_back(a, 1)", "have not landed", reader=reader)


@pytest.mark.parametrize("waited", [1, 2])
def test_push_before_the_barrier_of_its_own_reads(expect_fault, run, waited):
    """Two blocks under way, each with its id; the first is pushed behind the barrier of one of them."""
    reader = f"""
def reader():
    start = get_write_ptr(a)
    cb_reserve_back(a, 2)
    for i in range(2):
        noc_async_read_set_trid(i + 1)
        noc_async_read_page(i, A, start + i * 2048)
    noc_async_read_barrier_with_trid({waited})
    cb_push_back(a, 1)
    noc_async_read_barrier()
    cb_push_back(a, 1)
    noc_async_read_set_trid(0)
"""
    if waited == 1:
        _, program, arrays = run(reader=reader)
        assert simulate(program, arrays).warnings == ()
    else:
        expect_fault("TW510", "cb_push_back(a, 1)", "have not landed", reader=reader)


def test_a_reserved_ring_may_be_filled_from_its_end(expect_fault):
    """Not what its consumer wants here: the first block that it gets holds nothing."""
    reader = """
def reader():
    start = get_write_ptr(a)
    for i in range(2):
        cb_reserve_back(a, 2)
        noc_async_read_page(i, A, start + (1 - i) * 2048)
        noc_async_read_barrier()
        cb_push_back(a, 1)
"""
    expect_fault("TW512", "copy_tile(a, 0, 0)", "never written", reader=reader)


def test_pop_before_the_write_barrier(expect_fault):
    writer = WRITER.replace("        noc_async_write_barrier()\n", "")
    expect_fault("TW510", "cb_pop_front(o, 1)", "may still be reading", writer=writer)


def test_source_register_configured_for_another_format(expect_fault):
    compute = COMPUTE.replace("init_sfpu(a, o)", "init_sfpu(b, o)")
    buffers = (("a", "bf16", 2), ("b", "f32", 2), ("o", "bf16", 2))
    expect_fault("TW511", "copy_tile(a, 0, 0)", "holds bf16", "configured for f32", compute=compute, buffers=buffers)


def test_packer_configured_for_another_format(expect_fault):
    compute = COMPUTE.replace("init_sfpu(a, o)", "init_sfpu(a, b)")
    buffers = (("a", "bf16", 2), ("b", "f32", 2), ("o", "bf16", 2))
    expect_fault("TW511", "pack_tile(0, o, 0)", "pack_reconfig_data_format(o)", compute=compute, buffers=buffers)


def test_matrix_unit_cannot_take_a_buffer_that_goes_straight_to_dst(expect_fault):
    compute = COMPUTE.replace("init_sfpu(a, o)", "binary_op_init_common(a, a, o)\n    add_tiles_init(a, a)")
    compute = compute.replace("copy_tile(a, 0, 0)", "add_tiles(a, a, 0, 0, 0)")
    buffers = (("a", "f32", 2), ("b", "f32", 2), ("o", "bf16", 2))
    tensors = (("A", "f32"), ("O", "bf16"))
    parts = {"compute": compute, "buffers": buffers, "tensors": tensors, **STRAIGHT_TO_DST}
    expect_fault("TW511", "add_tiles(", "straight to DST", **parts)


def test_tile_that_nobody_wrote(expect_fault):
    reader = READER.replace("        noc_async_read_page(i, A, get_write_ptr(a))\n", "")
    expect_fault("TW512", "copy_tile(a, 0, 0)", "never written", reader=reader)


def test_page_outside_the_tensor_names_the_core(expect_fault):
    reader = READER.replace("page(i,", "page(i + my_core(0),")
    expect_fault(
        "TW513", "noc_async_read_page(", "page 2 of tensor 'A' on core (2, 0): it has 2 pages", reader=reader, grid=(3, 1)
    )


def test_address_between_tiles(expect_fault):
    reader = READER.replace("get_write_ptr(a))", "get_write_ptr(a) + 100)")
    expect_fault("TW513", "noc_async_read_page(", "not the start of a tile", reader=reader)


def test_transfer_between_formats(expect_fault):
    expect_fault("TW513", "noc_async_read_page(", "holds f32", tensors=(("A", "f32"), ("O", "bf16")))


def test_two_consumers(expect_fault):
    writer = WRITER.replace("cb_wait_front(o, 1)", "cb_wait_front(o, 1)\n        cb_wait_front(b, 1)")
    compute = COMPUTE.replace("cb_pop_front(a, 1)", "cb_pop_front(a, 1)\n        cb_wait_front(b, 0 + 1)")
    reader = READER.replace("a,", "b,").replace("(a)", "(b)").replace("reader", "other")
    expect_fault(
        "TW515", "cb_wait_front(b, 1)", "already has a consumer: unpack", reader=READER + reader, compute=compute, writer=writer
    )


def test_wrong_arguments(run):
    _, program, arrays = run()
    for wrong in (arrays[:1], [arrays[0], np.zeros((32, 32), np.uint16)]):
        with pytest.raises(KernelError) as caught:
            simulate(program, wrong)
        assert caught.value.diagnostics[0].code == "TW516"


def test_missing_run_time_argument(run):
    _, program, arrays = run(reader=READER.replace("range(2)", "range(get_arg_val('n'))"))
    with pytest.raises(KernelError) as caught:
        simulate(program, arrays)
    assert caught.value.diagnostics[0].code == "TW516"


def test_division_by_zero(expect_fault):
    expect_fault("TW514", "noc_async_read_page(", "divides by zero", reader=READER.replace("page(i,", "page(i // (i * 0),"))


def test_leftovers_are_warnings(run):
    compute = COMPUTE.replace("range(2)", "range(1)")
    text, program, arrays = run(compute=compute, writer=WRITER.replace("range(2)", "range(1)"))
    (warning,) = simulate(program, arrays).warnings
    assert warning.code == "TW517"
    assert warning.severity == "warning"
    assert "buffer 'a' (c_0) on core (0, 0) ends with 1 tiles" in warning.message
    assert warning.span.line == line_of(text, "cb_reserve_back(a, 1)")


def test_unfinished_write_is_a_warning(run):
    writer = WRITER.replace("(o, 1)\n        noc", "(o, 2)\n        noc")
    writer = writer.replace("        noc_async_write_barrier()\n        cb_pop_front(o, 1)\n", "")
    _, program, arrays = run(writer=writer)
    messages = [warning.message for warning in simulate(program, arrays).warnings]
    assert any("writer on core (0, 0) ends with 2 unfinished transfers" in message for message in messages)


def test_integers_need_32_bit_dst(expect_fault):
    buffers = (("a", "i32", 2), ("b", "f32", 2), ("o", "i32", 2))
    compute = COMPUTE.replace("copy_tile(a, 0, 0)", "copy_tile(a, 0, 0 * 1)")
    expect_fault(
        "TW511",
        "copy_tile(a, 0, 0 * 1)",
        "only a 32-bit DST",
        compute=compute,
        buffers=buffers,
        tensors=(("A", "i32"), ("O", "i32")),
    )


def test_call_and_init_of_different_precision(expect_fault):
    compute = vector_calls("exp_tile_init(template=('true',))", "exp_tile(0, template=('false',))")
    expect_fault("TW503", "exp_tile(0, ", "prepared the approximate form", compute=compute)


def test_call_without_numeric_model_fails_where_it_is(expect_fault):
    template = "template=('(uint32_t)DataFormat::Int32', '(uint32_t)DataFormat::UInt32')"
    compute = vector_calls(f"typecast_tile_init({template})", f"typecast_tile(0, {template})")
    expect_fault("TW514", "typecast_tile(0, ", "i32_u32", compute=compute)


def test_rows_broadcast_into_32_bit_dst(expect_fault):
    row = "template=('BroadcastType::ROW',)"
    compute = COMPUTE.replace("init_sfpu(a, o)", f"init_sfpu(a, o)\n    unary_bcast_init(a, {row})")
    compute = compute.replace("copy_tile(a, 0, 0)", f"unary_bcast(a, 0, 0, {row})")
    expect_fault("TW511", "unary_bcast(a", "wrong values", compute=compute, fp32_dest_acc_en=True)
