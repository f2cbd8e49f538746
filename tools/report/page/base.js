'use strict';
// The data, and small things that the rest of the page is made of. Whatever is text in the data gets into the
// page as text, never as HTML.

// Characters that would not be seen, or would change how others are shown.
function visible(text) {
  const hidden = /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;
  return text.replace(hidden, (c) => '\\u' + c.charCodeAt(0).toString(16).padStart(4, '0'));
}

const data = JSON.parse(document.getElementById('data').textContent,
                        (key, value) => typeof value === 'string' ? visible(value) : value);

const $ = (id) => document.getElementById(id);

function append(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined) node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}
const html = (tag, attributes, ...children) => append(document.createElement(tag), attributes, children);
const svg = (tag, attributes, ...children) =>
  append(document.createElementNS('http://www.w3.org/2000/svg', tag), attributes, children);

// For the tooltips of charts, which are HTML.
const escapeHtml = (text) => String(text).replace(/[&<>"']/g, (c) => '&#' + c.charCodeAt(0) + ';');

const isNumber = (value) => typeof value === 'number' && Number.isFinite(value);
const digits = (value) => {
  const size = Math.abs(value);
  return value.toFixed(size >= 1000 ? 0 : size >= 100 ? 1 : size >= 10 ? 2 : size >= 1 ? 3 : 4);
};
const ms = (seconds) => isNumber(seconds) ? digits(seconds * 1e3) : '–';
const ratio = (value) => isNumber(value) ? value.toFixed(2) : '–';
const sum = (values) => values.reduce((total, value) => total + value, 0);

function quantile(sorted, q) {
  const at = (sorted.length - 1) * q, below = Math.floor(at);
  const above = Math.min(below + 1, sorted.length - 1);
  return sorted[below] + (sorted[above] - sorted[below]) * (at - below);
}

// Columns: {title, of: row => value, text: value => shown, wide}. A click on a title sorts.
function table(columns, rows) {
  const body = html('tbody');
  const cells = columns.map((column) => rows.map(column.of));
  const isNumeric = cells.map((values) => values.some(isNumber) && values.every((v) => v == null || isNumber(v)));
  let order = rows.map((row, i) => i), last = null;
  const lines = rows.map((row, r) => html('tr', {}, ...columns.map((column, c) => {
    const value = cells[c][r];
    const shown = value == null || value === '' ? '–' : column.text ? column.text(value) : String(value);
    return html('td', {class: isNumeric[c] ? 'number' : column.wide ? 'wide' : null}, shown);
  })));
  const fill = () => body.replaceChildren(...order.map((i) => lines[i]));
  const sortBy = (c) => {
    const sign = last === c ? 1 : -1;
    last = last === c ? null : c;
    const compare = (a, b) => isNumeric[c] ? (a ?? -Infinity) - (b ?? -Infinity) : String(b ?? '').localeCompare(String(a ?? ''));
    order.sort((a, b) => sign * compare(cells[c][a], cells[c][b]));
    fill();
  };
  fill();
  const head = html('tr', {}, ...columns.map((column, c) =>
    html('th', {class: isNumeric[c] ? 'number' : null, onclick: () => sortBy(c)}, column.title)));
  return {element: html('div', {class: 'scroll'}, html('table', {}, html('thead', {}, head), body)), lines};
}

// Folded away where a chart shows the same.
function numbers(columns, rows, chartDrawn) {
  const details = html('details', {}, html('summary', {}, `The numbers (${rows.length})`), table(columns, rows).element);
  details.open = !chartDrawn;
  return details;
}

function definitions(pairs) {
  const list = html('dl');
  for (const [term, text] of pairs)
    if (text !== null && text !== undefined && text !== '') list.append(html('dt', {}, term), html('dd', {}, text));
  return list;
}

const legend = (entries) => html('div', {class: 'legend'}, ...entries.map(([name, colour, hollow]) =>
  html('span', {}, html('i', {class: hollow ? 'hollow' : null, style: colour ? `background:${colour}` : null}), name)));

// Layouts have the colours of the page's palette, the most frequent ones first.
const layoutColours = (() => {
  const counts = new Map();
  for (const node of data.nodes) if (node.layouts) counts.set(node.layouts[1], (counts.get(node.layouts[1]) || 0) + 1);
  for (const edge of data.edges) for (const layout of [edge.layout, edge.read_as]) if (layout) counts.set(layout, counts.get(layout) || 0);
  const names = [...counts.keys()].sort((a, b) => counts.get(b) - counts.get(a) || a.localeCompare(b));
  return new Map(names.map((name, i) => [name, `var(--c${i % 8})`]));
})();
const colourOf = (layout) => layoutColours.get(layout) || 'var(--muted)';
const configText = (config) => typeof config === 'string' ? config : Object.entries(config || {}).map(([knob, value]) => `${knob}=${value}`).join(' ');
