"""The one table of names: every spelling of both generations of the language, and what we call it.

Values are canonical names. A spelling not listed here stands for itself.
"""

from __future__ import annotations

from tilewright.dtypes import DTYPES as KNOWN_DTYPES

# Attributes of the ``ttl`` module.
MODULE_NAMES = {
    "operation": "kernel",
    "atom": "kernel",
    "make_dataflow_buffer_like": "make_circular_buffer_like",
    "DataflowBuffer": "CircularBuffer",
    "node": "core",
}

# Keyword arguments of ``make_circular_buffer_like``.
BUFFER_ARGUMENTS = {"block_count": "buffer_factor"}

# Arguments of the kernel decorator that are options of a compilation under another name.
OPTION_NAMES = {
    "fp32_dest_acc_en": "fp32_dest_acc",
    "dst_full_sync_en": "full_sync",
    "math_fidelity": "math_fidelity",
    "math_approx_mode": "math_approx_mode",
}

# Flags inside the decorator's ``options="--ttl-…"`` that have a counterpart here: (option, value when on, value when off).
OPTION_FLAGS = {
    "ttl-fpu-binary-ops": ("fpu_binary_ops", True, False),
    "ttl-combine-pack-tiles": ("combine_packs", True, False),
}

# Flags of that text that change nothing here, and what stands for each.
OPTION_FLAGS_WITHOUT_EFFECT = {
    "ttl-maximize-dst": "always: DST is filled with as many tiles as fit",
    "ttl-block-matmul": "chosen by cost",
    "ttl-subblock-sync": "chosen by cost",
    "ttl-reduce-full-fp32": "f32_reductions=",
    "ttl-matmul-full-fp32": "products are summed in 32 bits where the result is f32",
    "ttl-strict-f32-acc": "sums that do not fit DST go on in L1, and explain says so",
    "ttl-compiler-dfbs": "always: values get buffers where they need them",
    "ttl-l1-budget": "the chip's L1; what exceeds it is TW302",
    "ttl-accumulation-strategy": "chosen by cost: DST where a running value fits, else L1",
    "ttl-reuse-user-dfbs": "buffers share where the chip has too few of them; allocation_group= asks for it",
    "ttl-specialize-cores": "one text serves all cores",
    "ttl-pipe-computed-addresses": "receivers announce their blocks",
    "ttl-pipe-capacity-sync": "receivers announce their blocks",
    "ttl-pipe-batch-tiles": "one transfer for each block",
    "ttl-memory-model": "buffers are the launcher's",
}
FLAG_VALUES = {"ttl-accumulation-strategy": ("auto", "dst", "l1-pack")}  # of flags that take a word

# Decorator arguments other tools take and that need no action here: data is tiled, outputs are ordinary arguments.
DECORATOR_WITHOUT_EFFECT = ("indexing_maps", "iterator_types", "num_outs", "memory_space", "tiled", "verbose")

# Functions on blocks that are not elementwise rows of the op table: spelling below ``ttl.`` -> handler.
BLOCK_FUNCTIONS = {
    "math.reduce_sum": "reduce_sum",
    "math.reduce_max": "reduce_max",
    "math.reduce_min": "reduce_min",
    "math.reduce_mean": "reduce_mean",
    "block.reduce_sum": "reduce_sum",
    "block.reduce_max": "reduce_max",
    "block.reduce_min": "reduce_min",
    "block.reduce_mean": "reduce_mean",
    "math.broadcast": "broadcast",
    "block.broadcast": "broadcast",
    "math.bcast": "broadcast",
    "math.transpose": "transpose",
    "block.transpose": "transpose",
    "math.squeeze": "squeeze",
    "block.squeeze": "squeeze",
    "math.unsqueeze": "unsqueeze",
    "block.unsqueeze": "unsqueeze",
    "math.fill": "fill",
    "block.fill": "fill",
    "math.matmul": "matmul",
    "block.matmul": "matmul",
    "math.typecast": "typecast",
    "block.typecast": "typecast",
    **{f"{room}.{name}": name for room in ("math", "block") for name in ("cumsum", "argmax", "argmin", "topk", "dropout")},
}

# Names that functions take their blocks by, in order; spellings of one place stand together.
OPERAND_NAMES = {
    "where": (("condition", "cond"), ("true_value",), ("false_value",)),
    "mask": (("expr",), ("mask", "mask_blk")),
    "mask_posinf": (("expr",), ("mask", "mask_blk")),
}
ANY_OPERAND_NAMES = (("expr", "a", "x", "block", "input"), ("b", "y", "other"), ("c",))

DIMS_NAMES = ("dim", "axis", "axes")  # of reductions and broadcasts

# Other names of parameters: the specification's, the simulator's and torch's differ.
PARAMETER_NAMES = {
    "elu": {"alpha": "slope"},
    "leaky_relu": {"negative_slope": "slope"},
    "hardtanh": {"min_val": "min", "max_val": "max"},
    "clamp": {"min_val": "min", "max_val": "max"},
    "softplus": {"beta_recip": "beta_reciprocal"},
    "celu": {"alpha_reciprocal": "alpha_recip"},
    "relu_max": {"limit": "upper_limit"},
    "relu_min": {"limit": "lower_limit"},
}

# Spellings of dtypes a user may write for typecast, fill and tensors, by the last word of their text.
DTYPES = {"float": "f32", **{spelling: dtype.name for dtype in KNOWN_DTYPES for spelling in (dtype.name, dtype.api)}}


def canonical(name: str) -> str:
    return MODULE_NAMES.get(name, name)


def dtype_name(text: str) -> str | None:
    """``DataType.BFLOAT16``, ``torch.bfloat16``, ``<class 'numpy.float32'>`` … -> ``bf16``; None if not a dtype we know."""
    word = text.strip("<>' ").split(".")[-1].strip("'> ").lower()
    return DTYPES.get(word)
