// The definitions of ttl-compute-operations.md, section by section, without their descriptions.

// 4.1
def TTL_ProgramOp : TTL_Op<"program", [IsolatedFromAbove]> {
  let summary = "Top-level kernel program with captured tensors";
  let arguments = (ins
    TTL_GridAttr:$grid,
    StrAttr:$memory_space,
    BoolAttr:$tiled
  );
  let regions = (region VariadicRegion<AnyRegion>:$body);
}

// 4.1
def TTL_KernelOp : TTL_Op<"kernel", [IsolatedFromAbove]> {
  let summary = "Kernel with multiple threads on grid";
  let arguments = (ins
    Variadic<AnyType>:$inputs,   // TODO: define and use a more specific type constraint
    TTL_GridAttr:$grid,
    StrAttr:$memory_space,
    BoolAttr:$tiled,
    OptionalAttr<ArrayAttr>:$block_factors,  // Block factors per tensor [[M,N], [K,N], ...]
    OptionalAttr<ArrayAttr>:$compile_time_args,  // Indices of inputs that are compile-time constants
    OptionalAttr<DictionaryAttr>:$compute_config  // Math fidelity, precision modes
  );
  let regions = (region VariadicRegion<AnyRegion>:$threads);
  let results = (outs Variadic<AnyType>:$results);
}

// 4.1
def TTL_ComputeThreadOp : TTL_Op<"compute_thread"> {
  let summary = "Compute thread executing on Tensix core";
  let arguments = (ins
    Variadic<AnyType>:$operands,  // TODO: define and use a more specific type constraint
    OptionalAttr<StrAttr>:$microcore_hint  // Future evolution path
  );
  let regions = (region SizedRegion<1>:$body);
}

// 4.1
def TTL_DataMovementThreadOp : TTL_Op<"datamovement_thread"> {
  let summary = "Data movement thread for DMA and synchronization";
  let arguments = (ins
    Variadic<AnyType>:$operands,
    OptionalAttr<StrAttr>:$microcore_hint  // Future: NOC0, NOC1, etc.
  );
  let regions = (region SizedRegion<1>:$body);
}

// 4.2
def TTL_CreateCBOp : TTL_Op<"create_cb"> {
  let summary = "Create circular buffer";
  let arguments = (ins
    I64ArrayAttr:$shape,                // Elements per block
    TypeAttr:$element_type,             // !ttcore.tile<32x32, f32> or scalar type (f32, bf16, etc.)
    I64Attr:$buffer_factor,             // Number of blocks
    TTL_MemorySpaceAttr:$memory_space,  // L1, DRAM, DST
    OptionalAttr<I32Attr>:$buffer_index,      // Optional explicit CB number (0-31)
    OptionalAttr<I64Attr>:$page_size,         // Optional page size in bytes
    OptionalAttr<TTL_CoreMaskAttr>:$core_ranges  // Optional per-core CB mapping
  );
  let results = (outs TTL_CircularBuffer:$result);
}

// 4.2
def TTL_CreatePipeOp : TTL_Op<"create_pipe"> {
  let summary = "Create inter-core pipe for unicast or multicast";
  let arguments = (ins
    I64ArrayAttr:$src_core,                       // Source core [x, y, ...]
    OptionalAttr<I64ArrayAttr>:$dst_core,         // Unicast destination [x, y, ...]
    OptionalAttr<ArrayAttr>:$dst_core_range       // Multicast range [SliceAttr, SliceAttr, ...]
  );
  let results = (outs TTL_Pipe:$pipe);
}

// 4.2
def TTL_CreateSemaphoreOp : TTL_Op<"create_semaphore"> {
  let summary = "Create semaphore with initial value";
  let arguments = (ins
    I32Attr:$initial_value,
    OptionalAttr<BoolAttr>:$is_remote
  );
  let results = (outs TTL_Semaphore:$semaphore);
}

// 4.2
def TTL_GetRemoteSemaphoreOp : TTL_Op<"get_remote_semaphore"> {
  let summary = "Create remote unicast semaphore reference";
  let arguments = (ins
    TTL_Semaphore:$semaphore,
    I64ArrayAttr:$core                     // Target core coordinates
  );
  let results = (outs TTL_Semaphore:$remote_semaphore);
}

// 4.2
def TTL_GetRemoteMulticastSemaphoreOp : TTL_Op<"get_remote_multicast_semaphore"> {
  let summary = "Create remote multicast semaphore reference";
  let arguments = (ins
    TTL_Semaphore:$semaphore,
    OptionalAttr<ArrayAttr>:$core_range    // Multicast core range, empty = entire grid
  );
  let results = (outs TTL_Semaphore:$remote_semaphore);
}

// 4.2
def TTL_TensorAccessorOp : TTL_Op<"tensor_accessor"> {
  let summary = "Create accessor for indexed tensor access";
  let arguments = (ins
    TTL_Tensor:$tensor,
  );
  let results = (outs TTL_TensorAccessor:$accessor);
}

// 4.3
def TTL_CBWaitOp : TTL_Op<"cb_wait"> {
  let summary = "Consumer acquire: wait for data in circular buffer";
  let arguments = (ins TTL_CircularBuffer:$cb);
  let results = (outs TTL_Block:$block);
}

// 4.3
def TTL_CBPopOp : TTL_Op<"cb_pop"> {
  let summary = "Consumer release: signal block consumed";
  let arguments = (ins TTL_Block:$block);
}

// 4.3
def TTL_CBReserveOp : TTL_Op<"cb_reserve"> {
  let summary = "Producer acquire: reserve space in circular buffer";
  let arguments = (ins TTL_CircularBuffer:$cb);
  let results = (outs TTL_Block:$block);
}

// 4.3
def TTL_CBPushOp : TTL_Op<"cb_push"> {
  let summary = "Producer release: signal block ready";
  let arguments = (ins TTL_Block:$block);
}

// 4.3
def TTL_GetTileOp : TTL_Op<"get_tile"> {
  let summary = "Extract tile from circular buffer (internal IR use)";
  let arguments = (ins
    TTL_CircularBuffer:$cb,
    Index:$tile_idx                   // Tile index within CB
  );
  let results = (outs AnyType:$tile);  // !ttcore.tile<32x32, f32>
}

// 4.3
def TTL_PackTileOp : TTL_Op<"pack_tile"> {
  let summary = "Pack computed tile into circular buffer (internal IR use)";
  let arguments = (ins
    Index:$dst_idx,                   // DST register index
    TTL_CircularBuffer:$cb,
    Index:$tile_idx                   // Tile index within CB
  );
}

// 4.4.1
def TTL_ComputeRegionOp : TTL_Op<"compute_region", [
  DeclareOpInterfaceMethods<MemoryEffectsOpInterface>
]> {
  let summary = "Fused compute region with DST register reuse";
  let arguments = (ins
    Variadic<AnyType>:$inputs,
    OptionalAttr<BoolAttr>:$keep_in_dst  // Hint: keep intermediates in DST, don't spill to L1
  );
  let results = (outs Variadic<AnyType>:$results);
  let regions = (region SizedRegion<1>:$body);
}

// 4.4.1
def TTL_BlockComputeOp : TTL_Op<"block_compute"> {
  let summary = "Compute region operating on blocks";
  let regions = (region SizedRegion<1>:$body);
}

// 4.4.2
def TTL_BlockAddOp : TTL_Op<"block_add"> {
  let summary = "Element-wise addition on tensor blocks";
  let arguments = (ins TTL_Tensor:$lhs, TTL_Tensor:$rhs);
  let results = (outs TTL_Tensor:$result);
}

// 4.4.2
def TTL_BlockMulOp : TTL_Op<"block_mul"> {
  let summary = "Element-wise multiplication on tensor blocks";
  let arguments = (ins TTL_Tensor:$lhs, TTL_Tensor:$rhs);
  let results = (outs TTL_Tensor:$result);
}

// 4.4.2
def TTL_BlockMatmulOp : TTL_Op<"block_matmul"> {
  let summary = "Matrix multiplication on tensor blocks";
  let arguments = (ins TTL_Tensor:$lhs, TTL_Tensor:$rhs);
  let results = (outs TTL_Tensor:$result);
}

// 4.4.3
def TTL_BlockReduceSumOp : TTL_Op<"block_reduce_sum"> {
  let summary = "Reduce sum along specified axis";
  let arguments = (ins
    TTL_Tensor:$input,
    TTL_Tensor:$scaling,  // Scaling tensor (typically ones) for reduction
    I64Attr:$axis        // Axis to reduce along
  );
  let results = (outs TTL_Tensor:$result);
}

// 4.4.3
def TTL_BlockReduceMaxOp : TTL_Op<"block_reduce_max"> {
  let summary = "Reduce max along specified axis";
  let arguments = (ins
    TTL_Tensor:$input,
    I64Attr:$axis  // Axis to reduce along
  );
  let results = (outs TTL_Tensor:$result);
}

// 4.4.3
def TTL_BlockBcastOp : TTL_Op<"block_bcast"> {
  let summary = "Broadcast along specified axis";
  let arguments = (ins
    TTL_Tensor:$input,
    I64Attr:$axis  // Broadcast axis
  );
  let results = (outs TTL_Tensor:$result);
}

// 4.4.4
def TTL_BlockStoreOp : TTL_Op<"block_store"> {
  let summary = "Store computation result to circular buffer block";
  let arguments = (ins TTL_Tensor:$dst, TTL_Tensor:$src);
}

// 4.4.4
def TTL_RequireDSTOp : TTL_Op<"require_dst", [DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "Marker that SSA value must reside in DST register file";
  let arguments = (ins AnyType:$value);
}

// 4.4.5
def TTL_AcquireDSTOp : TTL_Op<"acquire_dst"> {
  let summary = "Acquire DST register (IR marker, removed during lowering)";
  let arguments = (ins OptionalAttr<I32Attr>:$index);
  let results = (outs Index:$dst_reg);
}

// 4.4.5
def TTL_ReleaseDSTOp : TTL_Op<"release_dst"> {
  let summary = "Release DST register (IR marker, removed during lowering)";
  let arguments = (ins Index:$dst_reg);
}

// 4.4.5
def TTL_SpillTileToL1Op : TTL_Op<"spill_tile_to_l1"> {
  let summary = "Spill single tile from DST to L1 (operates at tile level)";
  let arguments = (ins
    Index:$tile_value,    // SSA value of tile currently in DST
    Index:$dst_reg        // DST register index
  );
  let results = (outs Index:$spilled_tile);
}

// 4.4.5
def TTL_RestoreTileFromL1Op : TTL_Op<"restore_tile_from_l1"> {
  let summary = "Restore spilled tile from L1 to DST (operates at tile level)";
  let arguments = (ins Index:$spilled_tile);
  let results = (outs Index:$tile_value);
}

// 4.7
def TTL_CoreOp : TTL_Op<"core", [Pure]> {
  let summary = "Get current core coordinates";
  let arguments = (ins OptionalAttr<I64Attr>:$dims);
  let results = (outs Variadic<Index>:$coordinates);
}

// 4.7
def TTL_GridSizeOp : TTL_Op<"grid_size", [Pure]> {
  let summary = "Get grid dimensions";
  let arguments = (ins OptionalAttr<I64Attr>:$dims);
  let results = (outs Variadic<Index>:$sizes);
}

// 4.7
def TTL_CoreLinearOp : TTL_Op<"core_linear", [Pure]> {
  let summary = "Get linear core index in grid";
  let results = (outs Index:$linear_index);
}

// 4.7
def TTL_GridSliceOp : TTL_Op<"grid_slice", [Pure]> {
  let summary = "Compute grid-strided tensor slice for current core";
  let arguments = (ins
    TTL_TensorAccessor:$accessor,
    I64ArrayAttr:$block_factors  // Tiles per core per dimension
  );
  let results = (outs TTL_TensorAccessor:$sliced_accessor);
}
