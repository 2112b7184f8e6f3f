"""A decoder layer for one new token, as one kernel: an operation made of operations on 8 x 8 nodes.

    x ── rmsnorm ── q, k, v ── rope ── k and v into the paged cache ── flash decode ── output product ──(+ x)── y
    y ── rmsnorm ── gate, up ── silu(gate) * up ── down product ──(+ y)── out

Every line of ``decoder_layer`` is an operation of its own that could also be called alone. An operation that is called in the
body of another is expanded there: all of them become one reader, one compute thread and one writer per node. Two that share a
buffer (``normed``) run at the same time. Two that meet in a tensor (``qkv``) have a barrier of all nodes between them, which the
compiler puts there.

The token's position is a number in a tensor: the nodes read it, and it says which row of the table of angles to take, where in
which page of the cache to write, and how many pages to look at.

    tilewright run examples/15_decoder_layer.py
    tilewright profile examples/15_decoder_layer.py
"""

import math

import ml_dtypes
import numpy as np

from tilewright import ttl

TILE = 32
COLUMNS, ROWS = 8, 8
NODES = COLUMNS * ROWS
HEADS, SPLITS = ROWS, COLUMNS  # attention: a row of nodes for each head, its pages shared out along the row
HEAD = 2  # tiles of a head
WIDTH = HEADS * HEAD  # tiles of the token
HIDDEN = NODES  # tiles between the two halves of the MLP: one for each node
PAGES, CACHED = 8, 12  # pages of 32 positions that the token may look at, and pages in the cache
LEAST = -1e30  # below every score
LAST = PAGES * TILE - 1  # position


def load(tensor, buffer, row, columns):
    """A row of tiles, from a tensor to a buffer."""
    with buffer.reserve() as block:
        ttl.copy(tensor[row : row + 1, columns], block).wait()


def save(buffer, tensor, row, columns):
    with buffer.wait() as block:
        ttl.copy(block, tensor[row : row + 1, columns]).wait()


def row_of(tensor, tiles, blocks=1):
    return ttl.make_dataflow_buffer_like(tensor, shape=(1, tiles), block_count=blocks)


def load_for_row(net, tensor, buffer, columns):
    """The first node of each row of nodes reads, and sends what it read along its row."""

    def read_and_send(pipe):
        with buffer.reserve() as block:
            ttl.copy(tensor[0:1, columns], block).wait()
            ttl.copy(block, pipe).wait()

    def receive(pipe):
        with buffer.reserve() as block:
            ttl.copy(pipe, block).wait()

    net.if_src(read_and_send)
    net.if_dst(receive)


@ttl.operation(grid="full")
def rmsnorm(x, gain, normed, along_rows):
    """Every node makes the whole row: it needs all of it, and 16 tiles are made sooner than they are collected."""
    x_dfb, gain_dfb = row_of(x, WIDTH), row_of(gain, WIDTH)

    @ttl.compute()
    def compute():
        with x_dfb.wait() as row, gain_dfb.wait() as factors, normed.reserve() as result:
            power = ttl.math.reduce_mean(row * row, dims=[1])
            result.store(row * ttl.math.rsqrt(power + 1e-5) * factors)

    @ttl.datamovement()
    def read():
        load_for_row(along_rows, x, x_dfb, slice(0, WIDTH))
        load_for_row(along_rows, gain, gain_dfb, slice(0, WIDTH))


@ttl.operation(grid="full")
def part_of_row(x, part, parts):
    """The tiles of x that this node multiplies: its share of the inner size of a product."""
    tiles = x.shape[1] // TILE // parts
    first = ttl.node(dims=1) // (NODES // parts) * tiles
    load(x, part, 0, slice(first, first + tiles))


@ttl.operation(grid="full")
def product(part, weights, out, residual=None, *, parts=1):
    """out = row @ weights (+ residual). Nodes share the columns of tiles, with ``parts`` also the inner size: pipes add up."""
    inner, columns = weights.shape[0] // TILE // parts, weights.shape[1] // TILE
    group = NODES // parts  # nodes with the same share of the inner size
    me = ttl.node(dims=1)
    column, share = me % group, me // group
    w_dfb = ttl.make_dataflow_buffer_like(weights, shape=(inner, 1), block_count=1)
    sum_dfb, other_dfb, out_dfb, add_dfb = row_of(out, 1), row_of(out, 1, 2), row_of(out, 1), row_of(out, 1)
    if parts > 1:
        net = ttl.PipeNet([ttl.Pipe(src=other * group + c, dst=c) for c in range(columns) for other in range(1, parts)])

    @ttl.compute()
    def compute():
        with part.wait() as row:
            if column < columns:
                with w_dfb.wait() as w:
                    total = row @ w
                    if share > 0:
                        with sum_dfb.reserve() as mine:
                            mine.store(total)
                    else:
                        for _ in range(parts - 1):
                            with other_dfb.wait() as others:
                                total = total + others
                        with out_dfb.reserve() as result:
                            if residual is not None:
                                with add_dfb.wait() as before:
                                    total = total + before
                            result.store(total)

    @ttl.datamovement()
    def read():
        if column < columns:
            with w_dfb.reserve() as w:
                ttl.copy(weights[share * inner : (share + 1) * inner, column], w).wait()
            if share == 0:
                if residual is not None:
                    load(residual, add_dfb, 0, slice(column, column + 1))

                def receive(pipe):
                    with other_dfb.reserve() as others:
                        ttl.copy(pipe, others).wait()

                if parts > 1:
                    net.if_dst(receive)

    @ttl.datamovement()
    def write():
        def send(pipe):
            with sum_dfb.wait() as mine:
                ttl.copy(mine, pipe).wait()

        if parts > 1:
            net.if_src(send)
        if column < columns and share == 0:
            save(out_dfb, out, 0, slice(column, column + 1))


@ttl.operation(grid="full")
def rope(qkv, angles, position, turned):
    """Turns queries and keys by the angles of the position: node (0, head) the query, node (1, head) the key."""
    which, head = ttl.node(dims=2)
    at_dfb = row_of(position, 1)
    table_dfb, angle_dfb = row_of(angles, 2), row_of(angles, 2)
    x_dfb, y_dfb = row_of(qkv, HEAD), row_of(turned, HEAD)
    half = HEAD // 2

    @ttl.compute()
    def compute():
        if which < 2:
            with x_dfb.wait() as x, angle_dfb.wait() as angle, y_dfb.reserve() as y:
                cosine, sine = angle[:, 0:1], angle[:, 1:2]
                left, right = x[:, 0:half], x[:, half:HEAD]
                y[:, 0:half].store(left * cosine - right * sine)
                y[:, half:HEAD].store(right * cosine + left * sine)

    @ttl.datamovement()
    def read():
        if which < 2:
            first = which * WIDTH + head * HEAD
            load(qkv, x_dfb, 0, slice(first, first + HEAD))
            load(position, at_dfb, 0, slice(0, 1))
            with at_dfb.wait() as number:
                at = ttl.read_index(number, 0, 0, high=LAST)
            load(angles, table_dfb, at // TILE, slice(0, 2))
            with table_dfb.wait() as table, angle_dfb.reserve() as angle:  # row ``at`` to the token's row, the first
                for column in range(2 * TILE):
                    ttl.raw_element_write(angle, 0, column, ttl.raw_element_read(table, at % TILE, column))

    @ttl.datamovement()
    def write():
        if which < 2:
            first = which * WIDTH + head * HEAD
            save(y_dfb, turned, 0, slice(first, first + HEAD))


@ttl.operation(grid="full")
def append(new, first, cache, pages, position, who):
    """Writes the token's row of a key or value to its place in the cache: page ``pages[at // 32]``, row ``at % 32``."""
    column, head = ttl.node(dims=2)
    at_dfb, pages_dfb = row_of(position, 1), row_of(pages, 1)
    new_dfb, page_dfb = row_of(new, HEAD), row_of(cache, HEAD)

    @ttl.datamovement()
    def move():
        if column == who:
            mine = slice(head * HEAD, (head + 1) * HEAD)
            load(position, at_dfb, 0, slice(0, 1))
            load(pages, pages_dfb, 0, slice(0, 1))
            load(new, new_dfb, 0, slice(first + head * HEAD, first + (head + 1) * HEAD))
            with at_dfb.wait() as number, pages_dfb.wait() as numbers, new_dfb.wait() as row:
                at = ttl.read_index(number, 0, 0, high=LAST)
                page = ttl.read_index(numbers, 0, at // TILE, high=CACHED - 1)
                load(cache, page_dfb, page, mine)
                with page_dfb.wait() as block:
                    for element in range(HEAD * TILE):
                        ttl.raw_element_write(block, at % TILE, element, ttl.raw_element_read(row, 0, element))
                    ttl.copy(block, cache[page : page + 1, mine]).wait()


@ttl.operation(grid="full")
def flash_decode(turned, keys, values, pages, position, places, attended, along_rows):
    """Attention of one query to the cache. Scores never leave their node; the first node of a row merges what its row found."""
    split, head = ttl.node(dims=2)
    scale = 1.0 / math.sqrt(HEAD * TILE)
    at_dfb, count_dfb, pages_dfb = row_of(position, 1), row_of(position, 1), row_of(pages, 1)
    place_dfb = row_of(places, 1)
    q_dfb, k_dfb, v_dfb = row_of(turned, HEAD), row_of(keys, HEAD, 2), row_of(values, HEAD, 2)
    found_dfb = row_of(attended, HEAD + 2)  # the weighted sum of values, the largest score, the sum of weights
    others_dfb = row_of(attended, HEAD + 2, 2)
    out_dfb = row_of(attended, HEAD)
    net = ttl.PipeNet([ttl.Pipe(src=(other, row), dst=(0, row)) for row in range(HEADS) for other in range(1, SPLITS)])

    @ttl.compute()
    def compute():
        with q_dfb.wait() as query, count_dfb.wait() as number, place_dfb.wait() as place:
            at = ttl.read_index(number, 0, 0, high=LAST)
            unwritten = place > at % TILE  # columns of the last page
            largest = ttl.block.fill(LEAST, shape=(1, 1))
            weight = ttl.block.fill(0.0, shape=(1, 1))
            total = ttl.block.fill(0.0, shape=(1, HEAD))
            for page in range(split, at // TILE + 1, SPLITS):
                with k_dfb.wait() as k, v_dfb.wait() as v:
                    scores = (query @ ttl.block.transpose(k)) * scale
                    if page == at // TILE:
                        scores = ttl.math.where(unwritten, LEAST, scores)
                    new = ttl.math.max(largest, ttl.math.reduce_max(scores, dims=[1]))
                    share, shrink = ttl.math.exp(scores - new), ttl.math.exp(largest - new)
                    weight = weight * shrink + ttl.math.reduce_sum(share, dims=[1])
                    total = total * shrink + share @ v
                    largest = new
            largest, weight = (ttl.block.broadcast(one, dims=[1], shape=(1, 1)) for one in (largest, weight))
            if split > 0:
                with found_dfb.reserve() as found:
                    found[:, 0:HEAD].store(total)
                    found[:, HEAD].store(largest)
                    found[:, HEAD + 1].store(weight)
            else:
                for _ in range(SPLITS - 1):
                    with others_dfb.wait() as other:
                        new = ttl.math.max(largest, other[:, HEAD])
                        shrink, grow = ttl.math.exp(largest - new), ttl.math.exp(other[:, HEAD] - new)
                        weight = weight * shrink + other[:, HEAD + 1] * grow
                        total = total * shrink + other[:, 0:HEAD] * grow
                        largest = new
                with out_dfb.reserve() as out:
                    out.store(total / weight)

    @ttl.datamovement()
    def read():
        mine = slice(head * HEAD, (head + 1) * HEAD)
        load_for_row(along_rows, turned, q_dfb, mine)
        load(position, at_dfb, 0, slice(0, 1))  # a number that two threads act upon comes to both from the tensor itself
        load(position, count_dfb, 0, slice(0, 1))
        load_for_row(along_rows, places, place_dfb, slice(0, 1))
        load_for_row(along_rows, pages, pages_dfb, slice(0, 1))
        with at_dfb.wait() as number, pages_dfb.wait() as numbers:
            at = ttl.read_index(number, 0, 0, high=LAST)
            for step in range(split, at // TILE + 1, SPLITS):
                page = ttl.read_index(numbers, 0, step, high=CACHED - 1)
                load(keys, k_dfb, page, mine)
                load(values, v_dfb, page, mine)

        def receive(pipe):
            with others_dfb.reserve() as others:
                ttl.copy(pipe, others).wait()

        net.if_dst(receive)

    @ttl.datamovement()
    def write():
        def send(pipe):
            with found_dfb.wait() as found:
                ttl.copy(found, pipe).wait()

        net.if_src(send)
        if split == 0:
            save(out_dfb, attended, 0, slice(head * HEAD, (head + 1) * HEAD))


@ttl.operation(grid="full")
def swiglu(normed, gate, up, hidden):
    """hidden = silu(row @ gate) * (row @ up): each node makes one column of tiles."""
    me = ttl.node(dims=1)
    gate_dfb = ttl.make_dataflow_buffer_like(gate, shape=(WIDTH, 1), block_count=1)
    up_dfb = ttl.make_dataflow_buffer_like(up, shape=(WIDTH, 1), block_count=1)
    out_dfb = row_of(hidden, 1)
    for weights, buffer in ((gate, gate_dfb), (up, up_dfb)):
        with buffer.reserve() as block:
            ttl.copy(weights[0:WIDTH, me], block).wait()
    with normed.wait() as row, gate_dfb.wait() as g, up_dfb.wait() as u, out_dfb.reserve() as result:
        result.store(ttl.math.silu(row @ g) * (row @ u))
    save(out_dfb, hidden, 0, slice(me, me + 1))


@ttl.operation(grid=(COLUMNS, ROWS))
def decoder_layer(x, position, pages, keys, values, weights, tables, scratch, out):
    along_rows = ttl.PipeNet([ttl.Pipe(src=(0, row), dst=(slice(1, COLUMNS), row)) for row in range(ROWS)])
    first_normed, attention_part = row_of(x, WIDTH), row_of(x, WIDTH // 4)
    rmsnorm(x, weights["norm 1"], first_normed, along_rows)
    product(first_normed, weights["qkv"], scratch["qkv"])
    rope(scratch["qkv"], tables["angles"], position, scratch["turned"])
    append(scratch["turned"], WIDTH, keys, pages, position, who=0)
    append(scratch["qkv"], 2 * WIDTH, values, pages, position, who=1)
    flash_decode(scratch["turned"], keys, values, pages, position, tables["places"], scratch["attended"], along_rows)
    part_of_row(scratch["attended"], attention_part, 4)
    product(attention_part, weights["output"], scratch["y"], x, parts=4)

    second_normed, hidden_part = row_of(x, WIDTH), row_of(x, HIDDEN // 4)
    rmsnorm(scratch["y"], weights["norm 2"], second_normed, along_rows)
    swiglu(second_normed, weights["gate"], weights["up"], scratch["hidden"])
    part_of_row(scratch["hidden"], hidden_part, 4)
    product(hidden_part, weights["down"], out, scratch["y"], parts=4)


# Numbers to run it with, and the same in NumPy ----------------------------------------------------------------------------


def numbers(random):
    """Weights, the token, and a cache whose pages lie in any order."""
    width, hidden = WIDTH * TILE, HIDDEN * TILE
    sizes = {"qkv": (width, 3 * width), "output": (width, width)}
    sizes |= {"gate": (width, hidden), "up": (width, hidden), "down": (hidden, width)}
    weights = {name: random.normal(size=size) * size[0] ** -0.5 for name, size in sizes.items()}
    weights |= {name: 1 + 0.1 * random.normal(size=width) for name in ("norm 1", "norm 2")}
    turns = np.arange(PAGES * TILE)[:, None] * 10000.0 ** (-np.arange(TILE) / TILE)
    given = {"x": random.normal(size=width), "angles": np.concatenate([np.cos(turns), np.sin(turns)], axis=1)}
    given |= {name: random.normal(size=(CACHED * TILE, width)) for name in ("keys", "values")} | weights
    return {name: array.astype(ml_dtypes.bfloat16) for name, array in given.items()}, random.permutation(CACHED)[:PAGES]


def first_row(values, dtype=ml_dtypes.bfloat16):
    """Tiles whose first row begins with the values."""
    tensor = np.zeros((TILE, -(-len(values) // TILE) * TILE), dtype)
    tensor[0, : len(values)] = values
    return tensor


def decode(given, pages, position):
    """The layer's result for the token; its keys and values are in the cache then."""
    weights = {name: given[name] for name in ("qkv", "output", "gate", "up", "down")}
    weights |= {name: first_row(given[name]) for name in ("norm 1", "norm 2")}
    tables = {"angles": given["angles"], "places": np.tile(np.arange(TILE), (TILE, 1)).astype(ml_dtypes.bfloat16)}
    widths = {"qkv": 3 * WIDTH, "turned": 2 * WIDTH, "attended": WIDTH, "y": WIDTH, "hidden": HIDDEN}
    scratch = {name: first_row(np.zeros(tiles * TILE)) for name, tiles in widths.items()}
    out = first_row(np.zeros(WIDTH * TILE))
    at, places = first_row([position], np.int32), first_row(pages, np.int32)
    decoder_layer(first_row(given["x"]), at, places, given["keys"], given["values"], weights, tables, scratch, out)
    return out[0].astype(np.float64)


def reference(given, pages, position):
    """In float64."""
    given = {name: array.astype(np.float64) for name, array in given.items()}

    def normed(row, gain):
        return row / np.sqrt((row * row).mean() + 1e-5) * gain

    def turned(row):
        cosine, sine = np.split(given["angles"][position], 2)
        left, right = np.split(row.reshape(HEADS, HEAD * TILE), 2, axis=1)
        return np.concatenate([left * cosine - right * sine, right * cosine + left * sine], axis=1)

    x = given["x"]
    q, k, v = np.split(normed(x, given["norm 1"]) @ given["qkv"], 3)
    past = [pages[p // TILE] * TILE + p % TILE for p in range(position + 1)]  # rows of the cache, by position
    keys, values = (given[name].reshape(-1, HEADS, HEAD * TILE)[past] for name in ("keys", "values"))
    keys[-1], values[-1] = turned(k), v.reshape(HEADS, -1)
    scores = np.einsum("hd,phd->hp", turned(q), keys) / math.sqrt(HEAD * TILE)
    shares = np.exp(scores - scores.max(axis=1, keepdims=True))
    attended = np.einsum("hp,phd->hd", shares / shares.sum(axis=1, keepdims=True), values)
    y = x + attended.reshape(-1) @ given["output"]
    row = normed(y, given["norm 2"])
    gate = row @ given["gate"]
    return y + (gate / (1 + np.exp(-gate)) * (row @ given["up"])) @ given["down"]


def main() -> None:
    given, pages = numbers(np.random.default_rng(15))
    position = 217
    expected = reference(given, pages, position)
    largest = np.abs(expected).max()
    error = np.abs(decode(given, pages, position) - expected).max() / largest
    print(f"max error against NumPy: {error:.3g} of the largest result, {largest:.3g}")
    # bfloat16 all the way: y and the result alone are rounded by up to 2**-9 of the largest each.
    assert error <= 1e-2


if __name__ == "__main__":
    main()
