// The whole page: contents, the kernel that is shown, errors. Data stands in the page and is only drawn here.
"use strict";

async function unpacked() {
  const packed = Uint8Array.from(atob(document.getElementById("data").textContent.trim()), char => char.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

const SECTIONS = [["source", "Source"], ["dst", "DST"], ["program", "Program"], ["time", "Time"], ["ir", "IR"]];

function themeButton() {
  const order = ["auto", "light", "dark"];
  let now = "auto";
  const button = element("button", { onclick: () => {
    now = order[(order.indexOf(now) + 1) % order.length];
    if (now === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = now;
    button.textContent = `theme: ${now}`;
    dispatchEvent(new Event("themed"));
  } }, "theme: auto");
  return button;
}

function contents(data, show) {
  if (data.kernels.length < 2) return null;
  const rows = data.kernels.map((kernel, i) => {
    const calls = kernel.calls.map((place, k) => [k ? ", " : "", element("span", { class: "file" }, `${data.files[place[0]].path.split("/").pop()}:`), String(place[1])]);
    const shapes = kernel.tensors.map(tensor => by(tensor.shape)).join(", ");
    return element("tr", {}, element("td", {}, element("button", { class: "choose", "data-kernel": i, onclick: () => show(i) }, kernel.name)), element("td", {}, by(kernel.grid)), element("td", {}, shapes), element("td", {}, calls),
      element("td", { class: "number" }, kernel.time ? `${d3.format(".2f")(kernel.time.microseconds)} µs` : ""), element("td", {}, kernel.time ? kernel.time.bound : ""));
  });
  const head = element("tr", {}, ["kernel", "grid", "tensors", "called at", "time", "bound by"].map(text => element("th", {}, text)));
  return element("div", { class: "card scroll", id: "contents" }, element("table", {}, head, rows));
}

function kernelView(data, kernel) {
  const errors = data.errors.filter(error => error.place && data.files[error.place[0]] && error.place[0] === kernel.source);
  const source = new SourceView(data, kernel, errors);
  const calls = kernel.calls.map((place, i) => [i ? ", " : "", element("a", { href: "#source", onclick: () => source.pin(keyOf(place), null) }, `${data.files[place[0]].path.split("/").pop()}:${place[1]}`)]);
  const facts = element("div", { class: "facts" },
    element("span", {}, element("b", {}, kernel.name), ` on a grid of ${by(kernel.grid)}`),
    kernel.time ? element("span", {}, `${d3.format(".2f")(kernel.time.microseconds)} µs on ${kernel.time.chip}, bound by ${kernel.time.bound}`) : null,
    element("span", {}, `${kernel.compute_config.fp32_dest_acc_en ? "32" : "16"}-bit DST, ${kernel.compute_config.dst_full_sync_en ? "full" : "half"} sync, ${kernel.compute_config.math_fidelity}`),
    calls.length ? element("span", {}, "called at ", calls) : null);
  const notes = kernel.notes.length ? element("ul", { class: "soft" }, kernel.notes.map(note => element("li", {}, note.message))) : null;
  return { source, node: element("main", {}, facts, notes, source.node, dstView(kernel, source), programView(kernel), timeView(data, kernel, source), irView(kernel)) };
}

function errorView(data) {
  const source = new SourceView(data, null, data.errors);
  const place = at => element("a", { href: "#source", class: "to-line", onclick: () => source.pin(keyOf(at), null) }, `${data.files[at[0]].path.split("/").pop()}:${at[1]}`);
  const cards = data.errors.map(error => element("div", { class: "card error" },
    element("h2", {}, `${error.severity}[${error.code}]: ${error.message}`),
    error.place ? element("p", {}, "at ", place(error.place)) : null,
    error.notes.length ? element("ul", {}, error.notes.map(note => element("li", {}, note.message, note.place ? [" at ", place(note.place)] : null))) : null,
    error.help ? element("p", {}, element("b", {}, "help: "), error.help) : null,
    element("div", { class: "page" }, element("b", {}, `${error.code}: ${error.title}`), element("p", {}, error.page))));
  const failed = data.failed ? irView({ decisions: [] }, data.failed.stages) : null;
  return { source, node: element("main", {}, cards, source.node, failed) };
}

function draw(data) {
  const page = document.getElementById("page");
  const name = data.script.split("/").pop() || "Tilewright";
  document.title = `${name} · Tilewright`;
  let main = element("main");
  const show = i => {
    const next = i < 0 ? errorView(data) : kernelView(data, data.kernels[i]);
    main.replaceWith(next.node);
    main = next.node;
    next.source.begin();
    for (const button of document.querySelectorAll(".choose")) button.setAttribute("aria-pressed", Number(button.dataset.kernel) === i);
  };
  const links = data.kernels.length ? SECTIONS.map(([id, text]) => element("a", { href: `#${id}` }, text)) : [];
  const wrong = data.errors.length && data.kernels.length ? element("button", { class: "choose", "data-kernel": -1, onclick: () => show(-1) }, counted(data.errors.length, "error")) : null;
  page.replaceChildren(
    element("header", {}, element("div", { class: "row" }, element("h1", {}, name), element("span", { class: "soft" }, `Tilewright ${data.tilewright}`), themeButton(), wrong), element("nav", { class: "row", "aria-label": "sections" }, links)),
    ...[contents(data, show)].filter(Boolean), main);
  show(data.errors.length ? -1 : 0);
}

const started = performance.now();
unpacked().then(data => {
  draw(data);
  requestAnimationFrame(() => {
    window.drawn = performance.now() - started;
    document.documentElement.dataset.drawn = "yes";
  });
});
