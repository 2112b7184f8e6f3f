"""``ttl.SRAMStorage``: tensors that stay in the L1 of cores between operations.

A tensor of it is an ordinary ttnn tensor, sharded over the cores that the author names: operations copy from and to it, or lay a
buffer into its shards with ``make_tensor_backed_dfb``. What one operation leaves in it the next one finds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from tilewright.diagnostics import KernelError, caller_span, fail

ADDRESSING = ("uniform", "per-node")  # ttnn gives one address on all cores, which is good for both
INITIALIZE = ("zeros", "none")
SHARDED = ("HEIGHT_SHARDED", "WIDTH_SHARDED", "BLOCK_SHARDED")


class SRAMStorage:
    """Owner of such tensors: it declares them, and releases all with ``close()`` or at the end of a ``with``."""

    def __init__(self, device: Any = None) -> None:
        self.device = device
        self._tensors: list[Any] = []
        self._closed = False

    def tensor(
        self,
        *,
        shape: Sequence[int],
        shard_shape: Sequence[int],
        dtype: Any,
        nodes: Sequence[Sequence[int]] | None = None,
        cores: Sequence[Sequence[int]] | None = None,  # an earlier name of the same
        layout: Any = None,
        sharding: Any = None,
        addressing: str = "uniform",
        initialize: str = "zeros",
    ) -> Any:
        """A tensor of ``shape`` in shards of ``shard_shape``, the first on the first of ``nodes`` (column, row)."""
        ttnn = self._ttnn("tensor")
        places = [tuple(place) for place in (nodes if nodes is not None else cores) or ()]
        sharding = sharding or ttnn.TensorMemoryLayout.HEIGHT_SHARDED
        for name, value, known in (("addressing", addressing, ADDRESSING), ("initialize", initialize, INITIALIZE)):
            if value not in known:
                raise self._wrong("tensor", f"{name} is {value!r}", " or ".join(f'{name}="{word}"' for word in known))
        if sharding.name not in SHARDED:
            raise self._wrong("tensor", f"sharding is {sharding.name}", "ttnn.TensorMemoryLayout.HEIGHT_SHARDED, for example")
        if prod(shape) != prod(shard_shape) * len(places):
            found = f"{len(places)} shards of {'x'.join(map(str, shard_shape))} for a tensor of {'x'.join(map(str, shape))}"
            raise self._wrong("tensor", found, "as many nodes as the tensor has shards: shape, divided by shard_shape")
        ranges = [ttnn.CoreRange(ttnn.CoreCoord(*place), ttnn.CoreCoord(*place)) for place in places]
        spec = ttnn.ShardSpec(ttnn.CoreRangeSet(ranges), list(shard_shape), ttnn.ShardOrientation.ROW_MAJOR)
        placed = ttnn.MemoryConfig(sharding, ttnn.BufferType.L1, spec)
        make = ttnn.zeros if initialize == "zeros" else ttnn.empty
        new = make(list(shape), dtype=dtype, layout=layout or ttnn.TILE_LAYOUT, device=self.device, memory_config=placed)
        self._tensors.append(new)
        return new

    def prepare_operation(self, operation: Any, *arguments: Any) -> None:
        """Compiles ``operation`` for these arguments, so that its first call does not."""
        self._ttnn("prepare_operation")
        operation.compile(*arguments)

    def allocate(self) -> None:
        """Tensors lie in L1 from their declaration on."""
        self._ttnn("allocate")
        if not self._tensors:
            raise self._wrong("allocate", "nothing to allocate", "declare tensors first: state = storage.tensor(shape=…, …)")

    def submit(self, operation: Callable[..., Any], *arguments: Any) -> Any:
        self._ttnn("submit")
        return operation(*arguments)

    def close(self) -> None:
        """Releases the tensors, once everything that uses them has ended."""
        if self._closed:
            return
        ttnn = self._ttnn("close")
        if self.device is not None:
            ttnn.synchronize_device(self.device)
        for tensor in self._tensors:
            ttnn.deallocate(tensor)
        self._tensors.clear()
        self._closed = True

    def __enter__(self) -> SRAMStorage:
        self._ttnn("with")
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def _ttnn(self, word: str) -> Any:
        """The script's ttnn: the installed one, or the stand-in under `tilewright run`."""
        if self._closed:
            found = f"{word} of an SRAMStorage that is closed"
            raise fail("TW009", found, caller_span(word), help="make another ttl.SRAMStorage")
        try:
            import ttnn  # pyright: ignore[reportMissingImports]
        except ImportError:
            remedy = "`tilewright run SCRIPT` answers `import ttnn` in the script"
            raise fail("TW601", "ttl.SRAMStorage needs ttnn, which is not installed", caller_span(word), help=remedy) from None
        return ttnn

    @staticmethod
    def _wrong(word: str, found: str, remedy: str) -> KernelError:
        return fail("TW004", f"SRAMStorage.{word}: {found}", caller_span(word), help=remedy)
