// A program as a picture: tensors, threads and buffers; the grid with its pipes; L1 of one core.
"use strict";

function programView(kernel) {
  const node = element("section", { id: "program" }, element("h2", {}, "Program"));
  node.append(element("div", { class: "scroll card" }, flowPicture(kernel)));
  const beside = element("div", { class: "beside" });
  const cores = kernel.grid.reduce((product, size) => product * size, 1);
  if (cores > 1) beside.append(gridPicture(kernel));
  beside.append(memoryMap(kernel));
  node.append(beside);
  return explainNames(node, meaningsOf(kernel));
}

// Threads, buffers, tensors ------------------------------------------------------------------------------------------------
const BOX = { width: 128, height: 42, gap: 10, column: 164, row: 78 };
const NARROW = 860; // from here on the flow goes from top to bottom

function flowPicture(kernel) {
  const columnOf = { reader: 1, compute: 3, writer: 5 };
  const boxes = [], edges = [];
  const threads = new Map(kernel.data_flow.map(flow => [flow.thread, { kind: "thread", title: flow.thread, below: flow.role === flow.thread ? "thread" : flow.role, column: columnOf[flow.role] ?? 3, flow }]));
  boxes.push(...threads.values());
  kernel.buffers.forEach(buffer => {
    const producer = [...threads.values()].find(thread => thread.flow.pushes.includes(buffer.index));
    const consumer = [...threads.values()].find(thread => thread.flow.pops.includes(buffer.index));
    const ends = [producer, consumer].filter(Boolean).map(thread => thread.column);
    const middle = ends.length ? ends.reduce((a, b) => a + b, 0) / ends.length : 3;
    const box = {
      kind: buffer.meaning ? "made" : "buffer", title: buffer.name, below: `${buffer.block_count} × ${by(buffer.shape)} ${buffer.dtype}`, column: middle,
      tip: `buffer ${buffer.index}: ${counted(buffer.block_count, "block")} of ${by(buffer.shape)} ${buffer.dtype} tiles, ${bytes(buffer.bytes)}${buffer.meaning ? `\n${buffer.meaning}` : ""}${buffer.alias_of === null ? "" : `\nanother view of buffer ${buffer.alias_of}`}`,
    };
    boxes.push(box);
    if (producer) edges.push([producer, box]);
    if (consumer) edges.push([box, consumer]);
  });
  kernel.tensors.forEach((tensor, i) => {
    for (const thread of threads.values()) {
      const reads = thread.flow.reads.includes(i), writes = thread.flow.writes.includes(i);
      if (!reads && !writes) continue;
      const box = { kind: "tensor", title: tensor.name, below: `${by(tensor.shape)} ${tensor.dtype}`, column: thread.column > 3 ? 6 : 0, tip: `tensor ${tensor.name}: ${by(tensor.shape)} ${tensor.dtype}, ${tensor.memory}${tensor.sharding ? `, ${tensor.sharding} sharded` : ""}, ${tensor.layout}` };
      boxes.push(box);
      if (reads) edges.push([box, thread]);
      if (writes) edges.push([thread, box]);
    }
  });
  const columns = new Map();
  boxes.forEach(box => columns.set(box.column, [...(columns.get(box.column) || []), box]));
  const used = [...columns.keys()].sort((a, b) => a - b);
  const down = innerWidth < NARROW;
  const [size, between] = down ? [BOX.width, BOX.row] : [BOX.height, BOX.column];
  const across = Math.max(...[...columns.values()].map(list => list.length)) * (size + BOX.gap) + BOX.gap;
  used.forEach((column, i) => {
    const list = columns.get(column).sort((a, b) => (a.kind === "thread" ? -1 : 0) - (b.kind === "thread" ? -1 : 0));
    const first = (across - list.length * (size + BOX.gap)) / 2 + BOX.gap / 2;
    list.forEach((box, k) => {
      const along = 6 + i * between, aside = first + k * (size + BOX.gap);
      Object.assign(box, down ? { x: aside, y: along } : { x: along, y: aside });
    });
  });
  const length = (used.length - 1) * between + (down ? BOX.height : BOX.width) + 12;
  const [width, height] = down ? [across, length] : [length, across];
  const svg = shape("svg", { class: "flow", ...shrinking(width, height), role: "img", "aria-label": "threads, buffers and tensors" }, arrowHead("arrow"));
  for (const [a, b] of edges) svg.append(shape("path", { class: "edge", d: down ? downEdge(a, b) : rightEdge(a, b), "marker-end": "url(#arrow)" }));
  boxes.forEach(box => svg.append(shape("g", { tip: box.tip, class: `node ${box.kind}` },
    shape("rect", { class: `box ${box.kind}`, x: box.x, y: box.y, width: BOX.width, height: BOX.height, rx: box.kind === "thread" ? 20 : 5 }),
    shape("text", { x: box.x + BOX.width / 2, y: box.y + 18, "text-anchor": "middle" }, fitted(box.title, BOX.width - 8)),
    shape("text", { x: box.x + BOX.width / 2, y: box.y + 34, "text-anchor": "middle", class: "soft" }, fitted(box.below, BOX.width - 8)))));
  return svg;
}

// What a thread passes to itself goes out at one side of it and comes back at the other.
function rightEdge(a, b) {
  const forward = b.x > a.x, same = a.x === b.x;
  const out = same ? a.kind === "thread" : forward;
  const x1 = a.x + (out ? BOX.width : 0), x2 = same ? x1 : b.x + (forward ? 0 : BOX.width);
  const y1 = a.y + BOX.height / 2, y2 = b.y + BOX.height / 2;
  const bend = same ? (out ? 1 : -1) * (8 + Math.abs(y2 - y1) / 16) : (x2 - x1) / 2;
  return same ? `M${x1},${y1} C${x1 + bend},${y1} ${x2 + bend},${y2} ${x2},${y2}` : `M${x1},${y1} C${x1 + bend},${y1} ${x2 - bend},${y2} ${x2},${y2}`;
}

function downEdge(a, b) {
  const forward = b.y > a.y, same = a.y === b.y;
  const out = same ? a.kind === "thread" : forward;
  const y1 = a.y + (out ? BOX.height : 0), y2 = same ? y1 : b.y + (forward ? 0 : BOX.height);
  const x1 = a.x + BOX.width / 2, x2 = b.x + BOX.width / 2;
  const bend = same ? (out ? 1 : -1) * 20 : (y2 - y1) / 2;
  return same ? `M${x1},${y1} C${x1},${y1 + bend} ${x2},${y2 + bend} ${x2},${y2}` : `M${x1},${y1} C${x1},${y1 + bend} ${x2},${y2 - bend} ${x2},${y2}`;
}

// Grid ---------------------------------------------------------------------------------------------------------------------
function gridPicture(kernel) {
  const grid = kernel.grid;
  const columns = grid[0], rows = grid.slice(1).reduce((product, size) => product * size, 1);
  const step = Math.max(34, Math.min(76, (Math.min(innerWidth, 620) - 90) / columns)), cell = step * 0.68;
  const placeOf = core => [core[0], core.length > 2 ? core[1] * grid[2] + core[2] : core[1] || 0];
  const at = core => placeOf(core).map(place => 20 + place * step + cell / 2);
  const width = 24 + columns * step, height = 24 + rows * step;
  const svg = shape("svg", { class: "grid", width, height, role: "img", "aria-label": "cores and who sends to whom" }, arrowHead("send"));
  const memory = new Map(((kernel.time && kernel.time.traffic.memory) || []).map(([core, read, written]) => [String(core), [read, written]]));
  const colour = colours(kernel.pipes.map(net => net.net));
  const lines = [];
  const sends = kernel.pipes.length
    ? kernel.pipes.flatMap(net => net.pipes.flatMap(pipe => pipe.to.map((to, i) => ({ net: net.net, from: pipe.from, to, row: i || pipe.to.length < 2 ? null : [pipe.from, ...pipe.to] }))))
    : ((kernel.time && kernel.time.traffic.between) || []).map(([from, to]) => ({ net: "", from, to }));
  const sent = new Map(((kernel.time && kernel.time.traffic.between) || []).map(([from, to, size]) => [`${from}>${to}`, size]));
  for (let y = 0; y < rows; y++) for (let x = 0; x < columns; x++) {
    const core = grid.length === 1 ? [x] : grid.length === 2 ? [x, y] : [x, Math.floor(y / grid[2]), y % grid[2]];
    const [cx, cy] = at(core), key = String(core);
    const tip = () => {
      const [read, written] = memory.get(key) || [0, 0];
      const to = sends.filter(send => String(send.from) === key), from = sends.filter(send => String(send.to) === key);
      const more = (list, end) => list.slice(0, 6).map(send => `(${send[end]})${send.net ? ` by ${send.net}` : ""}${sent.has(`${send.from}>${send.to}`) ? `, ${bytes(sent.get(`${send.from}>${send.to}`))}` : ""}`).join("; ") + (list.length > 6 ? `; ${list.length - 6} more` : "");
      return `core (${key})\nreads ${bytes(read)}, writes ${bytes(written)} of memory${to.length ? `\nsends to ${more(to, "to")}` : ""}${from.length ? `\nreceives from ${more(from, "from")}` : ""}`;
    };
    const box = shape("rect", { class: "core", x: cx - cell / 2, y: cy - cell / 2, width: cell, height: cell, rx: 4, tip, "data-core": key });
    box.addEventListener("mouseenter", () => lines.forEach(({ path, send }) => path.setAttribute("opacity", String(send.from) === key || (send.row || [send.to]).some(to => String(to) === key) ? 1 : 0.08)));
    box.addEventListener("mouseleave", () => lines.forEach(({ path }) => path.removeAttribute("opacity")));
    svg.append(box, shape("text", { x: cx, y: cy + 4, "text-anchor": "middle", class: "soft", style: "pointer-events: none; font-size: 10.5px" }, core.join(",")));
  }
  const drawn = new Set(); // what goes to all cores of a row or column is drawn from core to core
  for (const send of sends) {
    const path = send.row ? alongRow(send.row, at, cell) : null;
    if (!path) continue;
    send.row.forEach(core => drawn.add(`${send.net}>${send.from}>${core}`));
    Object.entries({ class: "pipe", stroke: colour(send.net), style: "pointer-events: none" }).forEach(([name, value]) => path.setAttribute(name, value));
    lines.push({ path, send });
    svg.append(path);
  }
  for (const send of sends) {
    if (drawn.has(`${send.net}>${send.from}>${send.to}`)) continue;
    const [x1, y1] = at(send.from), [x2, y2] = at(send.to);
    const length = Math.hypot(x2 - x1, y2 - y1) || 1, bend = length > step * 1.2 ? 0.16 : 0.05, away = cell / 2 + 1;
    const ux = (x2 - x1) / length, uy = (y2 - y1) / length;
    const mx = (x1 + x2) / 2 + uy * length * bend, my = (y1 + y2) / 2 - ux * length * bend;
    const path = shape("path", { class: "pipe", d: `M${x1 + ux * away},${y1 + uy * away} Q${mx},${my} ${x2 - ux * away},${y2 - uy * away}`, stroke: colour(send.net), "marker-end": "url(#send)", style: "pointer-events: none" });
    lines.push({ path, send });
    svg.append(path);
  }
  const keys = kernel.pipes.map(net => element("span", {}, element("span", { class: "swatch", style: `background: ${colour(net.net)}` }), `${net.net}: ${counted(net.pipes.length, "pipe")}${multicast(net)}`));
  if (!sends.length) keys.push(element("span", { class: "soft" }, "no core sends to another"));
  return element("div", { class: "card" }, element("h3", {}, `Grid ${by(grid)}`), element("div", { class: "keys" }, keys), element("div", { class: "scroll" }, svg));
}

function multicast(net) {
  const most = Math.max(0, ...net.pipes.map(pipe => pipe.to.length));
  return most > 1 ? `, each to ${most} cores at once` : "";
}

// Arrows in the gaps between cores that follow each other in one row or column, from the first on; nothing if they do not.
function alongRow(cores, at, cell) {
  const points = cores.map(at);
  const flat = points.every(point => point[1] === points[0][1]), upright = points.every(point => point[0] === points[0][0]);
  if (flat === upright) return null;
  const axis = flat ? 0 : 1, away = cell / 2 + 1, source = points[0][axis];
  const ways = [-1, 1].map(sign => points.filter(point => Math.sign(point[axis] - source) === sign).sort((a, b) => sign * (a[axis] - b[axis])));
  const group = shape("g");
  ways.forEach((way, side) => way.forEach((point, i) => {
    const sign = side ? 1 : -1, before = i ? way[i - 1] : points[0];
    const [start, end] = [before[axis] + sign * away, point[axis] - sign * away];
    group.append(shape("path", { d: flat ? `M${start},${point[1]} H${end}` : `M${point[0]},${start} V${end}`, "marker-end": "url(#send)", fill: "none" }));
  }));
  return group;
}

// L1 -----------------------------------------------------------------------------------------------------------------------
function memoryMap(kernel) {
  const memory = kernel.memory;
  const colour = colours(kernel.buffers.map(buffer => buffer.name));
  const byIndex = new Map(kernel.buffers.map(buffer => [buffer.index, buffer]));
  const share = size => `flex: ${size} 0 0`;
  const parts = [element("div", { class: "reserved", style: share(memory.reserved), tip: `${bytes(memory.reserved)} at the bottom: firmware, mailboxes, kernels and their arguments` })];
  for (const placed of memory.buffers) {
    const buffer = byIndex.get(placed.buffer);
    parts.push(element("div", { class: "placed", style: `${share(placed.bytes)}; background: ${colour(buffer.name)}`, tip: `${buffer.name}: ${bytes(placed.bytes)} from ${number(placed.start)} on` }));
  }
  const free = memory.room - memory.used;
  parts.push(element("div", { class: "free", style: share(Math.max(free, 0)), tip: `${bytes(Math.max(free, 0))} free` }));
  const filledBy = index => kernel.data_flow.filter(flow => flow.pushes.includes(index)).map(flow => flow.thread).join(", ");
  const emptiedBy = index => kernel.data_flow.filter(flow => flow.pops.includes(index)).map(flow => flow.thread).join(", ");
  const explained = kernel.buffers.some(buffer => buffer.meaning);
  const rows = kernel.buffers.map(buffer => element("tr", {},
    element("td", { class: "number" }, String(buffer.index)),
    element("td", {}, element("span", { class: "swatch", style: `background: ${colour(buffer.name)}` }), buffer.name),
    element("td", {}, `${buffer.block_count} × ${by(buffer.shape)}`), element("td", {}, buffer.dtype),
    element("td", { class: "number" }, buffer.alias_of !== null ? `of ${buffer.alias_of}` : buffer.tensor !== null ? "shard" : bytes(buffer.bytes)),
    element("td", {}, filledBy(buffer.index)), element("td", {}, emptiedBy(buffer.index)),
    explained ? element("td", { class: "soft" }, buffer.meaning) : null));
  const titles = ["#", "buffer", "blocks × tiles", "type", "bytes", "filled by", "emptied by", ...(explained ? ["what it is"] : [])];
  const head = element("tr", {}, titles.map(text => element("th", {}, text)));
  const keys = [["reserved", `${bytes(memory.reserved)} system`], ["free", `${bytes(Math.max(free, 0))} free`]].map(([kind, text]) => element("span", {}, element("span", { class: `swatch ${kind}` }), text));
  return element("div", { class: explained ? "card whole" : "card wide" },
    element("h3", {}, `L1 of one core: ${bytes(memory.used)} of ${bytes(memory.room)} in buffers (${percent(memory.used / memory.room)})`),
    element("div", { class: "memory", role: "img", "aria-label": "L1 of one core" }, parts),
    element("div", { class: "keys" }, keys),
    element("div", { class: "scroll" }, element("table", { class: "buffers" }, head, rows)));
}
