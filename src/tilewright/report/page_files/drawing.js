// What the views share: elements, colours, numbers, the tip that follows the mouse.
"use strict";

const SVG = "http://www.w3.org/2000/svg"; // a name, not an address that is asked

function element(name, properties = {}, ...children) {
  return filled(document.createElement(name), properties, children);
}

function shape(name, properties = {}, ...children) {
  return filled(document.createElementNS(SVG, name), properties, children);
}

function filled(node, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "tip") attachTip(node, value);
    else node.setAttribute(name, value);
  }
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined && child !== false) node.append(child);
  }
  return node;
}

const number = d3.format(",.0f");
const short = value => (value < 1000 ? d3.format(".0f")(value) : d3.format(value < 99500 ? ".2s" : ".3s")(value));
const percent = d3.format(".0%");
const counted = (count, word) => `${number(count)} ${word}${count === 1 ? "" : "s"}`;
const by = sizes => sizes.join("x");

function bytes(count) {
  if (count < 1024) return `${count} B`;
  if (count < 1024 * 1024) return `${d3.format(".4~g")(count / 1024)} KiB`;
  return `${d3.format(".3~f")(count / 1048576)} MiB`;
}

// One colour per name; both themes can read black or white on them.
const PALETTE = ["#4c8fd6", "#e08a2e", "#4fa65b", "#c75a9b", "#8a6fd1", "#3aa6a0", "#c4573f", "#9a8b2d", "#6d87a3", "#b0743c", "#5f9e2e", "#a85fc0"];

function colours(names) {
  const found = new Map();
  for (const name of names) if (!found.has(name)) found.set(name, PALETTE[found.size % PALETTE.length]);
  return name => found.get(name) || PALETTE[0];
}

// Reasons of the same kind look alike in every kernel.
const STALLS = [
  [/^buffer empty/, "#e3a21a"], [/^buffer full/, "#c7621b"], [/source registers/, "#8a6fd1"], [/operands not/, "#b18be0"],
  [/DST taken/, "#c75a9b"], [/math not done/, "#d98cba"], [/reads/, "#3aa6a0"], [/writes/, "#7bc4a4"], [/network|path/, "#c4573f"],
  [/other core/, "#a33b3b"], [/start-up/, "#9aa3ad"],
];
const stallColour = reason => (STALLS.find(([pattern]) => pattern.test(reason)) || [0, "#8b8b8b"])[1];

function attachTip(node, text) {
  node.addEventListener("mousemove", event => showTip(event, typeof text === "function" ? text() : text));
  node.addEventListener("mouseleave", hideTip);
}

function showTip(event, text) {
  const tip = document.getElementById("tip");
  if (!text) return hideTip();
  tip.textContent = text;
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(4, Math.min(event.clientX + 14, innerWidth - box.width - 6))}px`;
  tip.style.top = `${event.clientY + 18 + box.height > innerHeight ? event.clientY - box.height - 10 : event.clientY + 18}px`;
}

function hideTip() {
  document.getElementById("tip").hidden = true;
}

// Names the compiler made are explained where they stand: every text below a node. Pictures have tips of their own.
function explainNames(node, meanings) {
  const names = Object.keys(meanings);
  if (!names.length) return node;
  const pattern = new RegExp(`\\b(${names.map(name => name.replace(/\W/g, "\\$&")).sort((a, b) => b.length - a.length).join("|")})\\b`);
  const walker = document.createTreeWalker(node, NodeFilter.SHOW_TEXT);
  const texts = [];
  while (walker.nextNode()) if (pattern.test(walker.currentNode.data) && !(walker.currentNode.parentNode instanceof SVGElement)) texts.push(walker.currentNode);
  for (const text of texts) {
    const parts = text.data.split(pattern);
    text.replaceWith(...parts.map((part, i) => (i % 2 ? element("abbr", { tip: `${part}: ${meanings[part]}`, class: "made" }, part) : part)));
  }
  return node;
}

function meaningsOf(kernel) {
  return Object.fromEntries(kernel.buffers.filter(buffer => buffer.meaning).map(buffer => [buffer.name, buffer.meaning]));
}

// The size of a picture that gets a little smaller before it has to be scrolled.
function shrinking(width, height) {
  return { width, height, viewBox: `0 0 ${width} ${height}`, style: `max-width: 100%; min-width: ${Math.round(0.82 * width)}px; height: auto` };
}

function arrowHead(id) {
  const path = shape("path", { d: "M0,0 L7,3.5 L0,7 z", fill: "context-stroke" });
  return shape("defs", {}, shape("marker", { id, markerWidth: 8, markerHeight: 8, refX: 6.5, refY: 3.5, orient: "auto" }, path));
}
