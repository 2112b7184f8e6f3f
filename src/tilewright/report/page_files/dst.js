// Slots of DST over the steps of one acquire: one colour per value, what writes it, and the working of linear scan beside it.
"use strict";

const STEP = 86, WIDEST = 168, SLOT = 24, EDGE = 62, HEAD = 46, CLOSEST = 13, TALLEST = 150;

function dstView(kernel, source) {
  const node = element("section", { id: "dst" }, element("h2", {}, "DST"));
  if (!kernel.dst.length) return filled(node, {}, [element("p", { class: "soft" }, "This kernel computes nothing in DST.")]);
  node.append(element("p", { class: "soft" }, "Slots from top to bottom, steps of one acquire from left to right. A bar is a value from the step that writes it to the last that reads it; paler bars are further tiles of the same sub-block. ↓ load, → copy, Σ adds to what is there."));
  node.append(element("div", { class: "regions" }, kernel.dst.map((region, number) => regionCard(region, number, source))));
  return explainNames(node, meaningsOf(kernel));
}

function regionCard(region, number, source) {
  const computed = [...new Map(Object.values(region.values).filter(value => value.place).map(value => [keyOf(value.place), value.place])).values()];
  const places = computed.length || !region.place ? computed : [region.place];
  const lines = places.map((place, i) => [i ? ", " : "", element("a", { href: "#source", onclick: () => source.pin(keyOf(place), null) }, `line ${place[1]}`)]);
  const proof = region.proven_least_cost ? "proven least" : "heuristic";
  const title = element("h3", {}, `Region ${number + 1}: `, lines, element("span", { class: "soft" }, `${lines.length ? ", " : ""}${counted(region.tiles, "tile")}, ${d3.format(".0f")(region.cycles_per_tile)} cycles per tile (${region.allocator}, ${proof})`));
  const card = element("div", { class: "card region" }, title);
  const remarks = [...region.remedies.map(each => `${each.kind}: ${each.detail} (${each.cycles} cycles)`), ...region.notes];
  if (remarks.length) card.append(element("p", { class: "soft" }, remarks.join("; ")));
  const charts = element("div", { class: "dst" });
  region.parts.forEach((part, i) => charts.append(element("div", {},
    element("p", { class: "soft" }, `${region.parts.length > 1 ? `part ${i + 1}: ` : ""}${counted(part.tiles_per_acquire, "tile")} per acquire, ${part.layout}, ${counted(part.slots_per_tile, "slot")} per tile`),
    element("div", { class: "scroll" }, partChart(region, part)))));
  if (region.linear_scan) charts.append(linearScan(region.linear_scan));
  card.append(charts);
  return card;
}

function label(region, value) {
  const known = region.values[value];
  return known && known.name ? (known.name === value ? value : `${known.name}`) : value;
}

function stepWords(region, step) {
  if ("load" in step) return ["↓ load", label(region, step.load)];
  if ("copy" in step) return ["→ copy", `${step.copy} to ${step.slot}`];
  return [`${step.accumulates ? "Σ " : ""}${step.op}`, step.unit];
}

function columnWords(region, column) {
  if (!("output" in column)) return stepWords(region, column);
  return ["pack", `${label(region, column.output.value)}${column.output.spilled ? " (spill)" : ""}`];
}

function stepTip(region, step) {
  if ("load" in step) return `copy_tile: ${label(region, step.load)} into slot ${step.slot}`;
  if ("copy" in step) return `copy_dest_values: ${step.copy} into slot ${step.slot}`;
  const reads = step.reads.map(read => (typeof read === "number" ? `slot ${read}` : label(region, read))).join(", ");
  return `${step.op} (${step.unit}) of ${reads} into slot ${step.slot}${step.accumulates ? ", added to what is there" : ""}`;
}

function partChart(region, part) {
  const steps = part.steps, outputs = part.outputs;
  const columns = ["acquire", ...steps, "commit", ...outputs.map(output => ({ output })), "release"];
  const words = columns.map(column => (typeof column === "string" ? [column] : columnWords(region, column)));
  const natural = columns.map((column, i) => (typeof column === "string" ? EDGE : Math.max(STEP, Math.min(WIDEST, 14 + 6.8 * Math.max(...words[i].map(word => word.length))))));
  // Many steps stand close to each other, their words upright: one look shows the whole acquire.
  const room = Math.min(innerWidth, 1560) - 120, close = natural.reduce((all, each) => all + each) > 1.6 * room;
  const widths = close ? columns.map(() => Math.max(CLOSEST, Math.min(STEP, room / columns.length))) : natural;
  const head = close ? Math.min(TALLEST, 12 + 6.2 * Math.max(...words.map(each => each.join(" ").length))) : HEAD;
  const starts = widths.reduce((all, width) => [...all, all[all.length - 1] + width], [34]);
  const used = Math.max(...part.slots.flat(), 0) + 1;
  const rows = Math.min(Math.max(region.capacity, used), used + 1), unused = Math.max(region.capacity, used) - used; // those that nobody uses share a row
  const other = region.full_sync ? 0 : SLOT;
  const width = starts[starts.length - 1] + 4, height = head + rows * SLOT + other + 8;
  const svg = shape("svg", { class: "dst-chart", ...shrinking(width, height), role: "img", "aria-label": "DST slots over steps" });
  const colour = colours(Object.keys(region.values));
  svg.append(shape("text", { x: 0, y: head - 6, class: "soft upright" }, "slot"));
  columns.forEach((column, i) => {
    const x = starts[i], middle = x + widths[i] / 2;
    if (typeof column === "string") {
      svg.append(shape("rect", { class: "sync", x: x + 1, y: 2, width: widths[i] - 2, height: height - 10 }));
      if (close) return void svg.append(upright(middle, head, column === "commit" ? "commit, wait" : column, "soft"));
      svg.append(shape("text", { x: middle, y: 17, "text-anchor": "middle", class: "soft" }, column));
      if (column === "commit") svg.append(shape("text", { x: middle, y: 33, "text-anchor": "middle", class: "soft" }, "wait"));
      return;
    }
    const [first, second] = words[i];
    const tip = "output" in column ? `pack slot ${column.output.slot}: DST ${spanText(column.output.dst)}` : stepTip(region, column);
    if (close) return void svg.append(shape("g", { class: "step", tip }, upright(middle, head, fitted(words[i].join(" "), head), "")));
    svg.append(shape("g", { class: "step", tip }, shape("text", { x: middle, y: 17, "text-anchor": "middle" }, fitted(first, widths[i])), shape("text", { x: middle, y: 33, "text-anchor": "middle", class: "soft" }, fitted(second, widths[i]))));
  });
  for (let row = 0; row < rows; row++) {
    const y = head + row * SLOT;
    svg.append(shape("text", { x: 26, y: y + 16, "text-anchor": "end", class: "soft" }, row < used ? String(row) : ""));
    if (row === used) svg.append(shape("text", { x: 42, y: y + 16, class: "soft" }, fitted(unused > 1 ? `slots ${used} to ${used + unused - 1} are not used` : `slot ${used} is not used`, width - 60)));
    svg.append(shape("line", { x1: 34, x2: width - 4, y1: y, y2: y, stroke: "var(--line)" }));
  }
  if (other) {
    const y = head + rows * SLOT;
    svg.append(shape("rect", { x: 34, y: y + 3, width: width - 38, height: SLOT - 5, class: "sync" }));
    svg.append(shape("text", { x: 42, y: y + 17, class: "soft" }, fitted("other half: being packed", width - 60)));
  }
  const packEnd = starts[columns.length - 1];
  for (const life of part.requirements.values || []) {
    const packed = outputs.some(output => output.value === life.value && output.slot === life.slot) && life.to >= steps.length;
    const from = starts[1 + life.from], to = packed ? packEnd : starts[Math.min(1 + Math.max(life.to, life.from + 1), columns.length - 1)];
    const name = label(region, life.value);
    const slots = part.slots[life.slot];
    const shared = new Set();
    slots.forEach((index, tile) => {
      if (shared.has(index)) return; // a slot that all tiles use in turn
      shared.add(index);
      const y = head + index * SLOT;
      const tip = `${name}${name === life.value ? "" : ` (${life.value})`}\nDST ${index}, slot ${life.slot} of tile ${tile}\nsteps ${life.from} to ${life.to}, ${life.takes ? "a new slot" : "in the slot of a value that ends"}\n${life.cycles} cycles`;
      const bar = shape("g", { class: `life${tile ? "" : " first"}`, tip, "data-value": life.value },
        shape("rect", { class: `interval${tile ? " other" : ""}`, x: from + 2, y: y + 2, width: to - from - 4, height: SLOT - 4, rx: 4, fill: colour(life.value) }),
        shape("text", { x: from + 8, y: y + 16, class: `inside${tile ? " other" : ""}` }, fitted(slots.length > 1 ? `${name} · tile ${tile}` : name, to - from - 12, name)));
      svg.append(bar);
    });
  }
  steps.forEach((step, i) => {
    if (!("copy" in step)) return;
    const from = part.slots[Number(step.copy.split(" ")[1])][0], to = part.slots[step.slot][0];
    const x = starts[1 + i] + 6;
    svg.append(shape("path", { d: `M${x},${head + from * SLOT + SLOT / 2} C${x - 14},${head + (from + to) / 2 * SLOT} ${x - 14},${head + (from + to) / 2 * SLOT} ${x},${head + to * SLOT + SLOT / 2}`, class: "edge" }));
  });
  return svg;
}

const upright = (x, y, text, kind) => shape("text", { x: 0, y: 4, transform: `translate(${x}, ${y - 6}) rotate(-90)`, class: `upright ${kind}` }, text);

// The text if it fits, else the other, else as much of it as fits with a sign that more follows; the tip has all of it.
function fitted(text, width, other) {
  const room = Math.floor((width - 4) / 6.4);
  if (text.length <= room) return text;
  if (other && other.length <= room) return other;
  return room > 2 ? `${(other || text).slice(0, room - 1)}…` : "";
}

function linearScan(found) {
  const rows = found.intervals;
  const last = Math.max(1, ...rows.map(row => row.merged[1]), ...rows.map(row => row.interval[1]));
  const left = 96, width = left + Math.min(420, Math.max(160, last * 46)), height = 30 + rows.length * 22;
  const x = d3.scaleLinear([0, last], [left, width - 12]);
  const svg = shape("svg", { class: "intervals", width, height, role: "img", "aria-label": "intervals of linear scan" });
  const axis = shape("g", { class: "axis", transform: "translate(0, 20)" });
  d3.select(axis).call(d3.axisTop(x).ticks(Math.min(last, 8)).tickFormat(d3.format("d")));
  svg.append(axis);
  rows.forEach((row, i) => {
    const y = 30 + i * 22;
    const slot = found.slots[row.value];
    const tip = `${row.value}: [${row.interval}] merged [${row.merged}]${slot === undefined ? "" : `, DST[${slot}]`}`;
    svg.append(shape("g", { class: "scan", tip },
      shape("text", { x: 4, y: y + 12 }, fitted(row.value, 60)), shape("text", { x: left - 8, y: y + 12, "text-anchor": "end", class: "soft" }, slot === undefined ? "" : String(slot)),
      shape("line", { x1: x(row.merged[0]), x2: x(row.merged[1]), y1: y + 8, y2: y + 8, stroke: "var(--line)", "stroke-width": 12, "stroke-linecap": "round" }),
      shape("line", { x1: x(row.interval[0]), x2: Math.max(x(row.interval[1]), x(row.interval[0]) + 3), y1: y + 8, y2: y + 8, stroke: PALETTE[i % PALETTE.length], "stroke-width": 6, "stroke-linecap": "round" })));
  });
  return element("div", { class: "linear-scan" }, element("p", { class: "soft" }, "linear scan: value, slot, interval over the ops (0 is the first); wide and pale: merged with a value that keeps the slot"), element("div", { class: "scroll" }, svg), element("div", { class: "ir phases" }, found.lines.map(line => element("div", {}, line))));
}
