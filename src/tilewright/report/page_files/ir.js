// IR after every stage as the difference to the one before; passes that changed nothing are folded.
"use strict";

const AROUND = 3;

function irView(kernel, stages = kernel.stages) {
  const node = element("section", { id: "ir" }, element("h2", {}, "IR after every pass"));
  const made = kernel.decisions || [];
  let before = [], quiet = [];
  const flush = () => {
    if (!quiet.length) return;
    const list = element("p", { class: "soft" }, quiet.map(stage => stage.name).join(", "));
    node.append(element("details", { class: "quiet" }, element("summary", {}, `${counted(quiet.length, "pass").replace("passs", "passes")} changed nothing`), list));
    quiet = [];
  };
  for (const stage of stages) {
    const own = made.filter(decision => decision.pass === stage.name);
    if (!stage.edits.length && !own.length) {
      quiet.push(stage);
      continue;
    }
    flush();
    const old = before;
    before = applied(before, stage.edits);
    node.append(stageNode(stage, own, old, before, kernel));
  }
  flush();
  return node;
}

function applied(before, edits) {
  const after = [];
  let done = 0;
  for (const [at, gone, lines] of edits) {
    after.push(...before.slice(done, at), ...lines);
    done = at + gone;
  }
  return [...after, ...before.slice(done)];
}

function stageNode(stage, decisions, before, after, kernel) {
  const plus = stage.edits.reduce((sum, edit) => sum + edit[2].length, 0), minus = stage.edits.reduce((sum, edit) => sum + edit[1], 0);
  const summary = element("summary", {}, element("b", {}, stage.name), " ", stage.edits.length ? [element("span", { class: "plus" }, `+${plus}`), " ", element("span", { class: "minus" }, `−${minus}`)] : element("span", { class: "soft" }, "decided, changed nothing"), element("span", { class: "soft" }, ` ${d3.format(".2f")(stage.seconds * 1000)} ms`));
  const node = element("details", { class: "stage", "data-stage": stage.name }, summary);
  if (decisions.length) node.append(element("ul", {}, decisions.map(made => element("li", {}, element("b", {}, made.title), made.detail ? `: ${made.detail}` : ""))));
  node.addEventListener("toggle", () => {
    if (!node.open || node.dataset.drawn) return;
    node.dataset.drawn = "yes";
    if (!stage.edits.length) return;
    const text = element("div", { class: "ir", tabindex: 0 });
    const show = whole => {
      text.replaceChildren(...(whole ? after.map(line => element("div", {}, line || " ")) : difference(before, stage.edits)));
      if (kernel.buffers) explainNames(text, meaningsOf(kernel));
      button.textContent = whole ? "show the difference" : "show the whole IR";
      button.setAttribute("aria-pressed", whole);
    };
    let whole = !before.length;
    const button = element("button", { onclick: () => show((whole = !whole)) });
    node.append(button, text);
    show(whole);
  });
  return node;
}

function difference(before, edits) {
  const rows = [];
  let done = 0;
  const same = (from, to, first, last) => {
    const lead = first ? 0 : AROUND, trail = last ? 0 : AROUND;
    if (to - from <= lead + trail + 1) {
      for (const line of before.slice(from, to)) rows.push(element("div", {}, `  ${line}`));
      return;
    }
    for (const line of before.slice(from, from + lead)) rows.push(element("div", {}, `  ${line}`));
    rows.push(element("div", { class: "skip" }, `… ${to - from - lead - trail} lines`));
    for (const line of before.slice(to - trail, to)) rows.push(element("div", {}, `  ${line}`));
  };
  for (const [at, gone, lines] of edits) {
    same(done, at, done === 0, false);
    for (const line of before.slice(at, at + gone)) rows.push(element("div", { class: "gone" }, `- ${line}`));
    for (const line of lines) rows.push(element("div", { class: "added" }, `+ ${line}`));
    done = at + gone;
  }
  same(done, before.length, false, true);
  return rows;
}
