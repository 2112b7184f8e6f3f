"""`tilewright build --artifact`: valid by its schema, and right when it is launched as tt-mlir launches it."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import ml_dtypes
import numpy as np
import pytest

import tilewright
from tilewright.cli.main import main
from tilewright.diagnostics import KernelError
from tilewright.kernel_artifact import kernel_artifact
from tilewright.native import program as native
from tilewright.native.compiled import accessor_words, from_face_order, to_face_order
from tilewright.native.driver import run_native
from tilewright.program import TensorSpec
from tilewright.tile_pages import join_tiles, split_tiles

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = json.loads((ROOT / "docs" / "kernel_artifact.schema.json").read_text(encoding="utf-8"))
DTYPES = {"BFloat16": ("bf16", ml_dtypes.bfloat16), "Float32": ("f32", np.float32)}

KERNEL = """
from tilewright import ttl

@ttl.operation(grid={grid})
def kernel(a, b, out):
    a_cb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=2)
    b_cb = ttl.make_dataflow_buffer_like(b, shape=(1, 1), block_count=2)
    out_cb = ttl.make_dataflow_buffer_like(out, shape=(1, 1), block_count=2)

    @ttl.compute()
    def compute():
        for row in range(2):
            with a_cb.wait() as x, b_cb.wait() as y, out_cb.reserve() as o:
                o.store(ttl.math.relu(x) - y * 2)

    @ttl.datamovement()
    def read():
        core = {core}
        for row in range(2):
            with b_cb.reserve() as y, a_cb.reserve() as x:
                ttl.copy(b[row, core], y).wait()
                ttl.copy(a[row, core], x).wait()

    @ttl.datamovement()
    def write():
        core = {core}
        for row in range(2):
            with out_cb.wait() as o:
                ttl.copy(o, out[row, core]).wait()
"""
PLACES = {
    "(1, 1)": "ttl.node(dims=1)",
    "(3, 2)": "ttl.node(dims=2)[1] * 3 + ttl.node(dims=2)[0]",
    "(16,)": "ttl.node(dims=1)",
    "(2, 2, 3)": "(ttl.node(dims=3)[2] * 2 + ttl.node(dims=3)[1]) * 2 + ttl.node(dims=3)[0]",
}


def launched(artifact: dict, arrays: list) -> None:
    """As tt-mlir lowers it: nothing but the artifact and the operands, whose pages are tiles in DRAM."""
    specs = [
        TensorSpec(name=f"operand{number}", shape=array.shape, dtype="f32" if array.dtype == np.float32 else "bf16")
        for number, array in enumerate(arrays)
    ]
    pages = [to_face_order(split_tiles(array)) for array in arrays]
    numbers = list(range(len(artifact["cb_configs"])))
    every_accessor = [word for spec in specs for word in accessor_words(spec)]
    (compute,) = [kernel["kernel_config"] for kernel in artifact["kernels"] if kernel["thread_type"] == "compute"]
    end = artifact["core_range"]["end"]
    address = [0x100000 * (number + 1) for number in range(len(arrays))]
    roles = {"ComputeKernelConfig": "compute", "ReaderKernelConfig": "reader", "WriterKernelConfig": "writer"}
    result = run_native(
        native.NativeProgram(
            kernels=[
                native.KernelSource(
                    role=roles[kernel["kernel_config"]["type"]],
                    text=kernel["cpp_source"],
                    compile_time_args=numbers + (every_accessor if kernel["thread_type"] == "noc" else []),
                    common_args=[address[index] for index in kernel["tensor_indices"]],
                )
                for kernel in artifact["kernels"]
            ],
            buffers=[
                native.BufferSpec(
                    index=each["buffer_index"], dtype=DTYPES[each["data_format"]][0], pages=each["total_size"] // each["page_size"],
                    page_bytes=each["page_size"],
                )
                for each in artifact["cb_configs"]
            ],
            tensors=[
                native.TensorSpec(
                    name=str(number), address=address[number], page_bytes=raw.nbytes // len(raw), pages=len(raw), data=raw, dtype=spec.dtype
                )
                for number, (spec, raw) in enumerate(zip(specs, pages, strict=True))
            ],
            grid=(end[0] + 1, end[1] + 1),
            config=native.ComputeConfig(
                fp32_dest_acc_en=compute["fp32_dest_acc_en"], dst_full_sync_en=compute["dst_full_sync_en"],
                math_fidelity=compute["math_fidelity"],
            ),
        ),
        seconds=60,
    )  # fmt: skip
    assert not result.errors, result.errors
    for number, array in enumerate(arrays):
        tiles = from_face_order(result.outputs[str(number)].view(array.dtype))
        array[:] = join_tiles(tiles, array.shape)


def integers(seed: int, shape: tuple[int, ...]) -> np.ndarray:
    return np.random.default_rng(seed).integers(-9, 10, shape).astype(ml_dtypes.bfloat16)


@pytest.mark.parametrize("grid", PLACES)
def test_it_runs_with_arguments_that_are_the_same_on_every_core(kernels, grid):
    """Each core finds its place by itself, on grids of any dimension; operands are reached in another order than they are given."""
    cores = int(np.prod(eval(grid)))
    a, b, out = integers(1, (64, 32 * cores)), integers(2, (64, 32 * cores)), integers(3, (64, 32 * cores))
    program = kernels.load(KERNEL.format(grid=grid, core=PLACES[grid])).compile(a, b, out)
    artifact = json.loads(json.dumps(kernel_artifact(program)))
    jsonschema.Draft202012Validator(SCHEMA).validate(artifact)
    launched(artifact, [a, b, out])
    wide = np.float32
    assert (out.astype(wide) == np.maximum(a.astype(wide), 0) - b.astype(wide) * 2).all()
    assert artifact["operand_metadata"]["arg_roles"] == "in,in,out"
    assert "get_arg_val" not in "".join(kernel["cpp_source"] for kernel in artifact["kernels"])


def test_work_that_tilelang_shares_out_is_computed_by_each_core(tmp_path):
    """Its blocks are more than the cores, and no multiple of them."""
    (tmp_path / "add.py").write_text(
        """
import ml_dtypes
import numpy as np
import tilelang
import tilelang.language as T

@T.prim_func
def add(A: T.Tensor((352, 224), "bfloat16"), B: T.Tensor((352, 224), "bfloat16"), C: T.Tensor((352, 224), "bfloat16")):
    with T.Kernel(7, 11, threads=128) as (bx, by):
        a, b = T.alloc_shared((32, 32), "bfloat16"), T.alloc_shared((32, 32), "bfloat16")
        T.copy(A[by * 32, bx * 32], a)
        T.copy(B[by * 32, bx * 32], b)
        for i, j in T.Parallel(32, 32):
            a[i, j] = a[i, j] + b[i, j]
        T.copy(a, C[by * 32, bx * 32])

tilelang.compile(add)(*(np.zeros((352, 224), ml_dtypes.bfloat16) for _ in range(3)))
""",
        encoding="utf-8",
    )
    assert main(["build", str(tmp_path / "add.py"), "-o", str(tmp_path / "package"), "--artifact"]) == 0
    artifact = json.loads((tmp_path / "package" / "add" / "kernel_artifact.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator(SCHEMA).validate(artifact)
    a, b, out = (integers(seed, (352, 224)) for seed in (1, 2, 3))
    launched(artifact, [a, b, out])
    assert (out.astype(np.float32) == a.astype(np.float32) + b.astype(np.float32)).all()
    tilewright.load(tmp_path / "package")  # the artifact has its checksum, too
    (tmp_path / "package" / "add" / "kernel_artifact.json").write_text("{}", encoding="utf-8")
    with pytest.raises(KernelError, match=r"kernel_artifact\.json is damaged"):
        tilewright.load(tmp_path / "package")


MULTICAST = (ROOT / "examples" / "06_multicast.py").read_text(encoding="utf-8")
REFUSED = {
    "10 cores": ("(1, 1)", {"grid=(1, 1)": "grid=(10,)"}, "bf16", "10 cores fill no rectangle"),
    "32 bits": ("(1, 1)", {}, "f32", "'a_cb' is unpacked to DST"),
    "an output in front": ("(1, 1)", {"kernel(a, b, out)": "kernel(out, a, b)"}, "bf16", "an input comes after an output: out (out), a (in)"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_the_format_cannot_say_is_refused(kernels, make_array, case):
    grid, changes, dtype, message = REFUSED[case]
    source = KERNEL.format(grid=grid, core="ttl.node(dims=1)")
    for old, new in changes.items():
        assert old in source
        source = source.replace(old, new)
    program = kernels.load(source).compile(*(make_array((2, 16), dtype) for _ in range(3)))
    with pytest.raises(KernelError) as found:
        kernel_artifact(program)
    (diagnostic,) = found.value.diagnostics
    assert diagnostic.code == "TW610" and message in diagnostic.message and diagnostic.help


@pytest.mark.parametrize(
    ("example", "message"),
    [("06_multicast", "semaphores"), ("11_sharded", "shard of 'x'"), ("tilelang/12_split_sums", "'C_parts' is made by the launcher")],
)
def test_a_refused_kernel_leaves_no_package(tmp_path, capsys, example, message):
    assert main(["build", str(ROOT / "examples" / f"{example}.py"), "-o", str(tmp_path / "package"), "--artifact"]) == 1
    assert "TW610" in (text := capsys.readouterr().err) and message in text
    assert not list(tmp_path.iterdir())
