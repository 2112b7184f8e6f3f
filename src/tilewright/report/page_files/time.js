// Engines over time with zoom and pan, stalls in the colour of their reason; what binds; the roofline.
"use strict";

const ROW = 20, LABEL = 108, AXIS = 24, ORDER = ["reader", "unpack", "math", "pack", "writer"];

const share = d3.format(".2");

function timeView(data, kernel, source) {
  const node = element("section", { id: "time" }, element("h2", {}, "Time"));
  const time = kernel.time;
  if (!time) return filled(node, {}, [element("p", { class: "soft" }, "The time of this kernel is not known.")]);
  node.append(element("div", { class: "facts" },
    element("span", {}, element("b", {}, `${d3.format(".2f")(time.microseconds)} µs`), ` (${number(time.cycles)} cycles, ±${percent(time.uncertainty)}) on ${time.chip}`),
    element("span", {}, "bound by ", element("b", {}, time.bound)),
    time.errors.map(each => element("span", { title: "against exact arithmetic on this data, as shares of the largest element" }, element("b", {}, each.tensor), ` is off by ${share(each.measured)}, ${each.bound < 1 ? `at most ${share(each.bound)}` : "without a bound"}`))));
  node.append(new Timeline(data, kernel, source).node);
  node.append(element("div", { class: "beside" }, engineTable(time), roofline(time)));
  if (time.advice.length) node.append(element("div", { class: "card" }, element("h3", {}, "What would help"), element("ul", {}, time.advice.map(each => element("li", {}, `${percent(each.gain)} faster (${number(each.cycles)} cycles): ${each.change}${each.error === null ? "" : `, results off by at most ${share(each.error)}`}`)))));
  const notes = [...time.notes];
  if (notes.length) node.append(element("ul", { class: "soft" }, notes.map(text => element("li", {}, text))));
  return explainNames(node, meaningsOf(kernel));
}

class Timeline {
  constructor(data, kernel, source) {
    Object.assign(this, { data, source, line: kernel.time.timeline });
    this.end = Math.max(1, ...this.line.cores.map(core => core.end));
    this.shown = new Set([0]);
    this.canvas = element("canvas", { tabindex: 0, role: "img", "aria-label": "engines over time; arrows pan, plus and minus zoom" });
    this.frame = element("div", { class: "timeline" }, this.canvas);
    const cores = this.line.cores.map((core, i) => element("button", { "aria-pressed": i === 0, "data-core": core.core.join(","), onclick: event => this.toggle(i, event.currentTarget) }, `core ${core.core.join(",")}${i === 0 ? " (slowest)" : ""}`));
    const buttons = element("div", { class: "row" }, cores.length > 1 ? cores : [], element("div", { class: "zooms" }, element("button", { onclick: () => this.zoomBy(2) }, "zoom in"), element("button", { onclick: () => this.zoomBy(0.5) }, "zoom out"), element("button", { onclick: () => this.reset() }, "whole")));
    const reasons = this.line.reasons.filter(Boolean);
    const groups = new Map();
    reasons.forEach(reason => {
      const colour = stallColour(reason), name = reason.split(":")[0];
      groups.set(name, colour);
    });
    const keys = element("div", { class: "keys" }, element("span", {}, element("span", { class: "swatch", style: "background: var(--work)" }), "work"), [...groups].map(([name, colour]) => element("span", {}, element("span", { class: "swatch", style: `background: ${colour}` }), name)));
    this.told = element("p", { class: "soft", id: "slice" }, "Hover a slice; click it to see its line. Wheel or + − zooms, drag or ← → pans.");
    const left = this.line.all_cores - this.line.cores.length;
    this.node = element("div", {}, buttons, keys, this.frame, this.told, left > 0 ? element("p", { class: "soft" }, `${counted(left, "core")} more not shown`) : "");
    this.transform = d3.zoomIdentity;
    this.zoom = d3.zoom().scaleExtent([1, Math.max(2, this.end / 40)]).filter(event => !event.ctrlKey || event.type === "wheel").on("zoom", event => {
      this.transform = event.transform;
      this.draw();
    });
    d3.select(this.canvas).call(this.zoom).on("dblclick.zoom", null);
    this.canvas.addEventListener("mousemove", event => this.hover(event));
    this.canvas.addEventListener("mouseleave", hideTip);
    this.canvas.addEventListener("click", event => this.choose(event));
    this.canvas.addEventListener("keydown", event => this.onKey(event));
    new ResizeObserver(() => this.resize()).observe(this.frame);
  }

  toggle(i, button) {
    if (this.shown.has(i) && this.shown.size > 1) this.shown.delete(i);
    else this.shown.add(i);
    button.setAttribute("aria-pressed", this.shown.has(i));
    this.resize();
  }

  rows() {
    return [...this.shown].sort((a, b) => a - b).flatMap(i => {
      const core = this.line.cores[i];
      const engines = [...core.engines].sort((a, b) => place(a.name) - place(b.name));
      return engines.map((engine, j) => ({ core, engine, first: j === 0 }));
    });
  }

  resize() {
    const width = this.frame.clientWidth;
    if (!width) return;
    this.width = width;
    this.height = this.rows().length * ROW + this.shown.size * 6 + AXIS;
    const ratio = devicePixelRatio || 1;
    this.canvas.width = width * ratio;
    this.canvas.height = this.height * ratio;
    this.canvas.style.height = `${this.height}px`;
    this.canvas.getContext("2d").setTransform(ratio, 0, 0, ratio, 0, 0);
    this.zoom.extent([[LABEL, 0], [width, this.height]]).translateExtent([[LABEL, 0], [width, this.height]]);
    this.draw();
  }

  scale() {
    return this.transform.rescaleX(d3.scaleLinear([0, this.end], [LABEL, this.width - 8]));
  }

  draw() {
    const context = this.canvas.getContext("2d"), style = getComputedStyle(document.documentElement);
    const text = style.getPropertyValue("--text"), soft = style.getPropertyValue("--soft"), line = style.getPropertyValue("--line"), work = style.getPropertyValue("--work");
    const x = this.scale(), [from, to] = x.domain();
    context.clearRect(0, 0, this.width, this.height);
    context.font = '11.5px system-ui, "DejaVu Sans", sans-serif';
    context.textBaseline = "middle";
    let y = 2;
    this.places = [];
    for (const { core, engine, first } of this.rows()) {
      if (first && y > 2) y += 6;
      this.places.push({ y, core, engine });
      context.save();
      context.beginPath();
      context.rect(LABEL, y, this.width - LABEL, ROW);
      context.clip();
      for (const [start, end, , reason] of engine.slices) {
        if (end < from || start > to) continue;
        const left = x(start), wide = Math.max(x(end) - left, 0.6);
        context.fillStyle = reason ? stallColour(this.line.reasons[reason]) : work;
        context.globalAlpha = reason ? 0.62 : 1;
        context.fillRect(left, y + (reason ? 6 : 2), wide - (wide > 4 ? 0.8 : 0), reason ? ROW - 12 : ROW - 4);
        if (!reason && wide > 60) this.name(context, engine, start, end, left, wide, y);
      }
      context.restore();
      context.globalAlpha = 1;
      context.fillStyle = first ? text : soft;
      context.textAlign = "right";
      context.fillText(first && this.shown.size > 1 ? `${core.core.join(",")} ${engine.name}` : engine.name, LABEL - 8, y + ROW / 2);
      y += ROW;
    }
    context.textAlign = "center";
    context.fillStyle = soft;
    context.strokeStyle = line;
    for (const tick of x.ticks(Math.max(3, Math.floor(this.width / 130)))) {
      context.beginPath();
      context.moveTo(x(tick), 0);
      context.lineTo(x(tick), this.height - AXIS + 3);
      context.globalAlpha = 0.5;
      context.stroke();
      context.globalAlpha = 1;
      const label = number(tick), half = context.measureText(label).width / 2;
      context.fillText(label, Math.min(Math.max(x(tick), LABEL + half), this.width - half - 4), this.height - AXIS / 2 + 2);
    }
    context.textAlign = "right";
    context.fillText("cycles", LABEL - 8, this.height - AXIS / 2 + 2);
  }

  name(context, engine, start, end, left, wide, y) {
    const slice = engine.slices.find(each => each[0] === start && each[1] === end);
    const site = this.line.sites[slice[2]];
    const label = site.place ? `${site.place[1]}: ${site.call}` : site.call;
    context.fillStyle = "#fff";
    context.textAlign = "left";
    const at = Math.max(left, LABEL) + 4;
    if (context.measureText(label).width < left + wide - at - 4) context.fillText(label, at, y + ROW / 2);
  }

  find(event) {
    const [px, py] = d3.pointer(event, this.canvas);
    const row = (this.places || []).find(place => py >= place.y && py < place.y + ROW);
    if (!row || px < LABEL) return null;
    const moment = this.scale().invert(px);
    let low = 0, high = row.engine.slices.length - 1;
    while (low <= high) {
      const middle = (low + high) >> 1, [start, end] = row.engine.slices[middle];
      if (moment < start) high = middle - 1;
      else if (moment > end) low = middle + 1;
      else return { ...row, slice: row.engine.slices[middle] };
    }
    return null;
  }

  words({ core, engine, slice }) {
    const [start, end, number_, reason] = slice, site = this.line.sites[number_];
    const file = site.place && this.data.files[site.place[0]];
    const code = file ? (file.lines[site.place[1] - 1] || "").trim() : "";
    const what = reason ? `waits: ${this.line.reasons[reason]}` : "works";
    const tiles = reason ? "" : tileText(engine, slice);
    return `core ${core.core.join(",")}, ${engine.name} ${what}\n${site.call}${tiles}${engine.grain ? ` (most of every ${engine.grain} cycles)` : ""}\ncycles ${number(start)} to ${number(end)} (${number(end - start)})${site.place ? `\nline ${site.place[1]}: ${code}` : ""}`;
  }

  hover(event) {
    const found = this.find(event);
    if (found) showTip(event, this.words(found));
    else hideTip();
  }

  choose(event) {
    const found = this.find(event);
    if (!found) return;
    this.told.textContent = this.words(found).replaceAll("\n", " · ");
    const site = this.line.sites[found.slice[2]];
    if (site.place) this.source.pin(keyOf(site.place), null);
  }

  zoomBy(factor) {
    d3.select(this.canvas).call(this.zoom.scaleBy, factor);
  }

  reset() {
    d3.select(this.canvas).call(this.zoom.transform, d3.zoomIdentity);
  }

  onKey(event) {
    const wide = (this.width - LABEL) / this.transform.k / 6;
    if (event.key === "ArrowLeft") d3.select(this.canvas).call(this.zoom.translateBy, wide, 0);
    else if (event.key === "ArrowRight") d3.select(this.canvas).call(this.zoom.translateBy, -wide, 0);
    else if (event.key === "+" || event.key === "=") this.zoomBy(1.6);
    else if (event.key === "-") this.zoomBy(1 / 1.6);
    else if (event.key === "0") this.reset();
    else return;
    event.preventDefault();
  }
}

const place = name => (ORDER.includes(name) ? ORDER.indexOf(name) : ORDER.length);

// Which of the calls at its site a slice is: calls in a row make one slice, so it is the how-manieth piece of work there.
function tileText(engine, slice) {
  if (engine.grain) return "";
  const own = engine.slices.filter(each => each[2] === slice[2] && !each[3]);
  return own.length > 1 ? `, ${own.indexOf(slice) + 1} of ${own.length} times` : "";
}

function engineTable(time) {
  const names = Object.keys(time.engines).sort((a, b) => place(a) - place(b));
  const rows = names.map(name => {
    const engine = time.engines[name];
    const reasons = Object.entries(engine.reasons).sort((a, b) => b[1] - a[1]).slice(0, 3);
    return element("tr", {}, element("td", {}, name), element("td", { class: "number" }, number(engine.busy)), element("td", {}, element("span", { class: "meter", style: `width: ${Math.round(90 * engine.busy / time.cycles)}px` }), ` ${percent(engine.busy / time.cycles)}`), element("td", { class: "number" }, number(engine.stalled)),
      element("td", {}, reasons.map(([reason, cycles]) => element("div", {}, element("span", { class: "swatch", style: `background: ${stallColour(reason)}` }), `${reason} ${number(cycles)}`))));
  });
  const head = element("tr", {}, ["engine", "busy", "", "stalled", "because (cycles)"].map(text => element("th", {}, text)));
  return element("div", { class: "card scroll wide" }, element("h3", {}, "Engines of the slowest core"), element("table", {}, head, rows));
}

const plainTick = value => d3.format(value < 1 ? "~g" : ".2~s")(value);

// Operations per cycle against operations per byte: slopes are memory and network, the flat line this program's math.
function roofline(time) {
  const limits = time.roofline;
  const card = element("div", { class: "card", style: "max-width: min(100%, 440px)" }, element("h3", {}, "Roofline"));
  const told = element("p", { class: "soft" }, `at least ${number(limits.math)} cycles of math, ${number(limits.dram)} of DRAM, ${number(limits.noc)} of the busiest link; matrix unit ${percent(limits.utilisation)} used`);
  if (!limits.operations || !limits.bytes || !limits.dram || !limits.math) return filled(card, {}, [told]);
  const width = 400, height = 230, left = 64, bottom = 40;
  const reached = limits.operations / time.cycles, peak = limits.operations / limits.math, rate = limits.bytes / limits.dram;
  const knee = peak / rate;
  const x = d3.scaleLog([Math.min(limits.intensity, knee) / 4, Math.max(limits.intensity, knee) * 8], [left, width - 12]);
  const y = d3.scaleLog([Math.min(reached, peak) / 8, Math.max(peak, reached) * 3], [height - bottom, 20]);
  const svg = shape("svg", { class: "roofline", width, height, role: "img", "aria-label": "roofline" });
  const axes = [shape("g", { class: "axis", transform: `translate(0, ${height - bottom})` }), shape("g", { class: "axis", transform: `translate(${left}, 0)` })];
  d3.select(axes[0]).call(d3.axisBottom(x).ticks(4, plainTick));
  d3.select(axes[1]).call(d3.axisLeft(y).ticks(4, plainTick));
  svg.append(...axes, shape("text", { x: width - 12, y: height - 6, "text-anchor": "end", class: "soft" }, "operations per byte of DRAM"), shape("text", { x: 6, y: 11, class: "soft" }, "operations per cycle"));
  const [low, high] = x.domain(), floor = y.domain()[0];
  const start = Math.max(low, floor / rate);
  svg.append(shape("path", { class: "edge", style: "stroke: var(--accent); stroke-width: 2", d: `M${x(start)},${y(start * rate)} L${x(knee)},${y(peak)} L${x(high)},${y(peak)}` }));
  svg.append(shape("text", { x: x(high) - 4, y: y(peak) - 6, "text-anchor": "end", class: "soft" }, "math of this program"));
  const point = shape("g", { tip: `${d3.format(",.1f")(reached)} operations per cycle at ${limits.intensity} per byte: ${percent(reached / Math.min(peak, limits.intensity * rate))} of the roof` }, shape("circle", { cx: x(limits.intensity), cy: y(reached), r: 6, fill: "rgb(var(--heat))" }));
  svg.append(shape("line", { x1: x(limits.intensity), x2: x(limits.intensity), y1: y(Math.min(peak, limits.intensity * rate)), y2: y(reached), stroke: "rgb(var(--heat))", "stroke-dasharray": "3 3" }), point);
  return filled(card, {}, [element("div", { class: "scroll" }, svg), told]);
}
