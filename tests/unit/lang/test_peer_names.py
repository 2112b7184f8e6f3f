"""Every name that the language's own package exports exists here, or says what to write instead."""

from __future__ import annotations

import pytest

from tilewright import ttl
from tilewright.diagnostics import KernelError
from tilewright.lang.names import INSTEAD, NotYetSupported

# What its package of August 2026 exports, without the elementwise functions; and what its specification adds.
EXPORTED = [
    "SRAMStorage", "operation", "DFB", "Kernel", "KernelKind", "PIPE_SOURCE_KERNEL", "FabricManagerClaim", "CoreRuntimeArgs",
    "FabricConnectionBinding", "FabricConnectionRequirement", "KernelDefine", "KernelRuntimeResources",
    "ProgramRuntimeResources", "DispatchCondition", "DFBReset", "DFBAllocationGroup", "DFBReconfiguration", "ScalarType",
    "compute", "datamovement", "DataflowBuffer", "CircularBuffer", "CompilerOptions", "TensorBlock", "CopyTransferHandler",
    "ReceiveRequest", "ReadyReceive", "Pipe", "PipeNet", "AllToAllTransfer", "AxisNeighborTransfer", "DeviceDomain",
    "DeviceRange", "DeviceRef", "DomainComponent", "GatherTransfer", "ScatterTransfer", "StencilTransfer", "TransferEdge",
    "TransferGraph", "make_dataflow_buffer_like", "make_dfb", "make_tensor_backed_dfb", "make_dfb_allocation_group", "copy",
    "node", "grid_size", "math", "block", "signpost", "DFBEffect", "DFBAccess", "call_extern_func", "dfb_descriptor",
    "get_dfb_id", "raw_addr", "reset_dfbs", "reset_all_dfbs", "reconfigure_dfbs", "wait_any", "build_info", "ops",
]  # fmt: skip
SPECIFIED = [
    "PositiveInt", "NaturalInt", "Size", "Shape", "Index", "NodeCoord", "NodeRange", "SrcPipeIdentity", "DstPipeIdentity",
    "Block", "BlockExpr", "TensorSlice", "Transfer", "GroupTransfer", "Semaphore", "read_index", "raw_element_read",
    "raw_element_write", "TILE_SHAPE",
]  # fmt: skip


@pytest.mark.parametrize("name", EXPORTED + SPECIFIED)
def test_the_name_exists(name: str):
    assert hasattr(ttl, name) and name in ttl.__all__


@pytest.mark.parametrize("name", sorted(INSTEAD))
def test_what_is_not_supported_says_what_to_write(name: str):
    value = getattr(ttl, name)
    assert isinstance(value, NotYetSupported)
    with pytest.raises(KernelError) as called:
        value()
    with pytest.raises(KernelError) as looked_into:
        _ = value.something
    for caught in (called, looked_into):
        assert "TW008" in str(caught.value) and INSTEAD[name] in str(caught.value)
    assert getattr(value, "something", None) is None  # as for any attribute that is not there
