// Python left, C++ right: linked by line, cycles as heat, decisions and DST as marks; errors and their notes in place.
"use strict";

const keyOf = place => (place ? `${place[0]}:${place[1]}` : "");

class SourceView {
  constructor(data, kernel, errors) {
    this.data = data;
    this.kernel = kernel;
    this.errors = errors;
    this.pinned = "";
    this.rows = new Map(); // place -> rows of both sides
    this.facts = this.gather();
    this.left = element("div", { class: "code python", tabindex: 0, role: "listbox", "aria-label": "Python source" });
    this.right = element("div", { class: "code cpp", tabindex: 0, role: "listbox", "aria-label": "C++" });
    this.details = element("div", { class: "card", id: "selected", "aria-live": "polite" });
    this.leftBar = element("div", { class: "bar", role: "tablist", "aria-label": "files" });
    this.rightBar = element("div", { class: "bar", role: "tablist", "aria-label": "threads" });
    this.drawFiles();
    const sides = [element("div", { class: "side" }, this.leftBar, this.left)];
    if (kernel) {
      this.drawThreads();
      sides.push(element("div", { class: "side" }, this.rightBar, this.right));
    }
    this.node = element("section", { id: "source" }, element("h2", {}, "Source"), element("div", { class: kernel ? "sides" : "sides alone" }, sides), this.details);
    for (const pane of [this.left, this.right]) pane.addEventListener("keydown", event => this.onKey(event, pane));
    this.describe("");
  }

  // Once it stands in the page: the kernel's first line instead of the file's.
  begin() {
    for (const pane of [this.left, this.right]) {
      const row = pane.querySelector(".line.wrong, .line.linked");
      if (row) pane.scrollTop = row.offsetTop - pane.offsetTop - 3 * row.offsetHeight;
    }
  }

  // Facts by line: cycles, decisions, DST slots, errors.
  gather() {
    const facts = new Map();
    const at = place => {
      const key = keyOf(place);
      if (!facts.has(key)) facts.set(key, { cycles: null, decisions: [], slots: [], errors: [], notes: [] });
      return facts.get(key);
    };
    const kernel = this.kernel;
    if (kernel) {
      for (const line of kernel.time ? kernel.time.lines : []) at(line.place).cycles = line.cycles;
      for (const made of kernel.decisions) if (made.place) at(made.place).decisions.push(made);
      kernel.dst.forEach((region, r) => region.parts.forEach(part => {
        for (const life of (part.requirements.values || [])) {
          const value = region.values[life.value];
          if (value && value.place) at(value.place).slots.push({ region: r + 1, value: life.value, name: value.name, dst: part.slots[life.slot] });
        }
      }));
    }
    this.errors.forEach(error => {
      if (error.place) at(error.place).errors.push(error);
      error.notes.forEach(note => note.place && at(note.place).notes.push(note));
    });
    this.most = Math.max(1, ...[...facts.values()].map(each => (each.cycles ? Math.max(...Object.values(each.cycles)) : 0)));
    return facts;
  }

  // Left ------------------------------------------------------------------------------------------------------------------
  drawFiles() {
    const used = new Set([...this.facts.keys()].filter(Boolean).map(key => Number(key.split(":")[0])));
    if (this.kernel) this.kernel.cpp.forEach(one => one.from.forEach(place => place && used.add(place[0])));
    const first = this.kernel ? this.kernel.source : this.errors.length && this.errors[0].place ? this.errors[0].place[0] : 0;
    const files = [...new Set([first, ...used])].filter(file => file !== null && this.data.files[file]);
    files.forEach(file => {
      const path = this.data.files[file].path;
      this.leftBar.append(element("button", { role: "tab", "data-file": file, tip: path, onclick: () => this.showFile(file) }, path.split("/").pop()));
    });
    this.filePanes = new Map();
    if (files.length) this.showFile(files[0]);
  }

  showFile(file) {
    if (!this.filePanes.has(file)) this.filePanes.set(file, this.data.files[file].lines.map((text, i) => this.pythonLine(file, i + 1)));
    this.left.replaceChildren(...this.filePanes.get(file).flat());
    for (const tab of this.leftBar.children) tab.setAttribute("aria-selected", Number(tab.dataset.file) === file);
    this.file = file;
  }

  pythonLine(file, line) {
    if (!this.painted) this.painted = new Map();
    if (!this.painted.has(file)) this.painted.set(file, highlighted(this.data.files[file].lines.join("\n"), "python"));
    const key = keyOf([file, line]);
    const facts = this.facts.get(key);
    const cycles = facts && facts.cycles ? Math.max(...Object.values(facts.cycles)) : 0;
    const strength = cycles ? 0.12 + 0.75 * Math.log1p(cycles) / Math.log1p(this.most) * (cycles / this.most) ** 0.35 : 0;
    const heat = element("span", { class: "heat", style: cycles ? `background: rgba(var(--heat), ${strength.toFixed(3)})` : null }, cycles ? short(cycles) : "");
    const marks = element("span", { class: "marks" }, markText(facts));
    const text = codeText(this.data.files[file].lines[line - 1], this.painted.get(file)[line - 1], 4);
    const row = this.row(key, facts || this.linked(key), this.kernel ? [heat, marks] : [], element("span", { class: "number" }, String(line)), text);
    const below = [];
    if (facts) {
      facts.errors.forEach(error => {
        row.classList.add("wrong");
        below.push(element("div", { class: "below", style: `--at: ${error.columns ? error.columns[0] - 1 : 0}ch` }, `^ ${error.code}: ${error.label || error.message}`));
        underline(text, error.columns);
      });
      facts.notes.forEach(note => {
        row.classList.add("noted");
        below.push(element("div", { class: "below note", style: `--at: ${note.columns ? note.columns[0] - 1 : 0}ch` }, `note: ${note.message}`));
      });
    }
    return [row, ...below];
  }

  linked(key) {
    if (!this.links) {
      this.links = new Set();
      if (this.kernel) this.kernel.cpp.forEach(one => one.from.forEach(place => place && this.links.add(keyOf(place))));
    }
    return this.links.has(key);
  }

  row(key, linked, ...parts) {
    const row = element("div", { class: `line${linked ? " linked" : ""}`, role: "option", "data-place": key }, parts);
    if (key && linked) {
      if (!this.rows.has(key)) this.rows.set(key, []);
      this.rows.get(key).push(row);
      row.addEventListener("mouseenter", () => this.near(key));
      row.addEventListener("mouseleave", () => this.near(""));
      row.addEventListener("click", () => this.pin(key, row));
    }
    return row;
  }

  // Right -----------------------------------------------------------------------------------------------------------------
  drawThreads() {
    const order = ["reader", "compute", "writer"];
    const meanings = meaningsOf(this.kernel);
    this.threads = [...this.kernel.cpp].sort((a, b) => order.indexOf(a.role) - order.indexOf(b.role)).map(one => {
      const painted = highlighted(one.lines.join("\n"), "cpp");
      const rows = one.lines.map((line, i) => {
        const text = codeText(line, painted[i], 2);
        explainNames(text, meanings);
        return this.row(keyOf(one.from[i]), one.from[i], element("span", { class: "number" }, String(i + 1)), text);
      });
      const count = element("span", { class: "count" });
      const tab = element("button", { role: "tab", "data-role": one.role, tip: `thread ${one.thread}`, onclick: () => this.showThread(one.role) }, `${one.role}.cpp`, count);
      this.rightBar.append(tab);
      return { ...one, rows, tab, count };
    });
    this.showThread(this.threads.some(one => one.role === "compute") ? "compute" : this.threads[0].role);
  }

  showThread(role) {
    this.role = role;
    for (const thread of this.threads) {
      thread.tab.setAttribute("aria-selected", thread.role === role);
      if (thread.role === role) this.right.replaceChildren(...thread.rows);
    }
    this.right.scrollTop = 0;
  }

  // Links -----------------------------------------------------------------------------------------------------------------
  near(key) {
    this.mark("near", key);
    this.countLinks(key || this.pinned);
  }

  mark(name, key) {
    for (const row of this[name + "Rows"] || []) row.classList.remove(name);
    this[name + "Rows"] = this.rows.get(key) || [];
    for (const row of this[name + "Rows"]) row.classList.add(name);
  }

  countLinks(key) {
    for (const thread of this.threads || []) {
      const count = key ? thread.from.filter(place => keyOf(place) === key).length : 0;
      thread.count.textContent = count ? `(${count})` : "";
    }
  }

  pin(key, from) {
    if (this.pinned === key && from) key = "";
    this.pinned = key;
    this.mark("pinned", key);
    this.countLinks(key);
    this.describe(key);
    if (!key) return;
    const [file] = key.split(":").map(Number);
    const inLeft = from && this.left.contains(from);
    if (!inLeft) {
      if (file !== this.file && this.data.files[file]) {
        this.showFile(file);
        this.mark("pinned", key);
      }
      this.reveal(this.left, key);
    }
    if (this.threads && (inLeft || !from)) {
      const here = thread => thread.from.some(place => keyOf(place) === key);
      const current = this.threads.find(thread => thread.role === this.role);
      const wanted = here(current) ? current : this.threads.find(here);
      if (wanted) {
        this.showThread(wanted.role);
        this.reveal(this.right, key);
      }
    }
  }

  reveal(pane, key) {
    const row = pane.querySelector(`[data-place="${key}"]`);
    if (row) pane.scrollTop = row.offsetTop - pane.offsetTop - pane.clientHeight / 3;
  }

  onKey(event, pane) {
    const rows = [...pane.querySelectorAll(".line.linked")];
    const step = { ArrowDown: 1, ArrowUp: -1, j: 1, k: -1 }[event.key];
    if (step) {
      const now = rows.findIndex(row => row.dataset.place === this.pinned);
      let next = now < 0 ? 0 : now + step;
      while (rows[next] && rows[next].dataset.place === this.pinned) next += step;
      if (rows[next]) {
        this.pin(rows[next].dataset.place, rows[next]);
        rows[next].scrollIntoView({ block: "nearest" });
      }
      event.preventDefault();
    } else if (event.key === "Escape") {
      this.pin("", null);
    } else if ((event.key === "ArrowLeft" || event.key === "ArrowRight") && this.threads && pane === this.right) {
      const at = this.threads.findIndex(thread => thread.role === this.role) + (event.key === "ArrowRight" ? 1 : -1);
      if (this.threads[at]) this.showThread(this.threads[at].role);
      event.preventDefault();
    }
  }

  describe(key) {
    const facts = this.facts.get(key);
    if (!key) {
      const hint = this.kernel ? "Hover or click a line: its other side lights up. Numbers at the left are cycles of the engine that works longest on the line; ◆ is a decision, D a value in DST. Keys: ↑ ↓ lines, ← → threads, Esc." : "";
      this.details.replaceChildren(element("span", { class: "soft" }, hint));
      this.details.hidden = !hint;
      return;
    }
    this.details.hidden = false;
    const [file, line] = key.split(":").map(Number);
    const source = this.data.files[file];
    const parts = [element("b", {}, `${source ? source.path.split("/").pop() : ""}:${line} `), element("code", {}, source ? (source.lines[line - 1] || "").trim() : "")];
    if (facts && facts.cycles) parts.push(element("p", {}, "cycles: ", Object.entries(facts.cycles).map(([engine, cycles]) => `${engine} ${number(cycles)}`).join(", ")));
    if (facts && facts.slots.length) {
      const names = facts.slots.map(slot => `${slot.name || slot.value} in DST ${spanText(slot.dst)} (region ${slot.region})`);
      parts.push(element("p", {}, "DST: ", [...new Set(names)].join("; ")));
    }
    if (facts && facts.decisions.length) parts.push(element("ul", {}, facts.decisions.map(made => element("li", {}, element("b", {}, made.title), made.detail ? `: ${made.detail}` : "", element("span", { class: "soft" }, ` (${made.pass})`)))));
    this.details.replaceChildren(...parts);
    if (this.kernel) explainNames(this.details, meaningsOf(this.kernel));
  }
}

// A line of code; where it is broken, it goes on a little further in than it began.
function codeText(line, painted, further) {
  const text = element("span", { class: "text", style: `--hang: ${line.search(/\S|$/) + further}ch` });
  text.innerHTML = painted || "";
  return text;
}

const spanText = numbers => (numbers.length === 1 ? String(numbers[0]) : `${numbers[0]}..${numbers[numbers.length - 1]}`);

function markText(facts) {
  if (!facts) return "";
  return `${facts.decisions.length ? "◆" : ""}${facts.slots.length ? "D" : ""}`;
}

// Lines of highlighted text; an element that goes over a line's end is closed there and opened again.
function highlighted(text, language) {
  const open = [];
  return hl.highlight(text, language).split("\n").map(line => {
    const start = open.join("");
    for (const tag of line.match(/<span[^>]*>|<\/span>/g) || []) {
      if (tag === "</span>") open.pop();
      else open.push(tag);
    }
    return start + line + "</span>".repeat(open.length);
  });
}

// Marks columns of a line whose text is already in elements.
function underline(node, columns) {
  if (!columns) return;
  let at = 0;
  const walker = document.createTreeWalker(node, NodeFilter.SHOW_TEXT);
  const texts = [];
  while (walker.nextNode()) texts.push(walker.currentNode);
  for (const text of texts) {
    const from = Math.max(columns[0] - 1 - at, 0), to = Math.min(columns[1] - 1 - at, text.length);
    at += text.length;
    if (from >= to) continue;
    const marked = from ? text.splitText(from) : text;
    if (to - from < marked.length) marked.splitText(to - from);
    const around = element("span", { class: "under" });
    marked.replaceWith(around);
    around.append(marked);
  }
}
