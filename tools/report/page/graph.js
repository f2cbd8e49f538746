'use strict';
// The network as a graph that can be moved and zoomed: where nodes lie is dagre's choice or, without it, one row
// for each step away from the inputs.

const kNode = {width: 168, height: 40, gap: 26, rank: 46};

function layoutByDagre(nodes, edges) {
  const graph = new dagre.graphlib.Graph({multigraph: true});
  graph.setGraph({rankdir: 'TB', nodesep: kNode.gap, ranksep: kNode.rank, ranker: nodes.length > 150 ? 'longest-path' : 'network-simplex'});
  graph.setDefaultEdgeLabel(() => ({}));
  nodes.forEach((node, i) => graph.setNode(String(i), {width: kNode.width, height: kNode.height}));
  edges.forEach((edge, i) => graph.setEdge(String(edge.from), String(edge.to), {}, String(i)));
  dagre.layout(graph);
  return {
    at: nodes.map((node, i) => graph.node(String(i))),
    paths: edges.map((edge, i) => graph.edge(String(edge.from), String(edge.to), String(i)).points),
  };
}

// Edges lead to later nodes, so one pass in their order finds every node's rank.
function layoutByRank(nodes, edges) {
  const rank = nodes.map(() => 0), places = [];
  const into = nodes.map(() => []);
  for (const edge of edges) into[edge.to].push(edge.from);
  nodes.forEach((node, i) => { for (const from of into[i]) rank[i] = Math.max(rank[i], rank[from] + 1); });
  const at = nodes.map((node, i) => {
    places[rank[i]] = (places[rank[i]] ?? -1) + 1;
    return {place: places[rank[i]], y: rank[i] * (kNode.height + kNode.rank)};
  });
  at.forEach((node, i) => { node.x = (node.place - places[rank[i]] / 2) * (kNode.width + kNode.gap); });
  const paths = edges.map(({from, to}) => [{x: at[from].x, y: at[from].y + kNode.height / 2}, {x: at[to].x, y: at[to].y - kNode.height / 2}]);
  return {at, paths};
}

function pathThrough(points) {
  let path = `M${points[0].x},${points[0].y}`;
  for (let i = 1; i < points.length; ++i) {
    const middle = (points[i - 1].y + points[i].y) / 2;
    path += `C${points[i - 1].x},${middle} ${points[i].x},${middle} ${points[i].x},${points[i].y}`;
  }
  return path;
}

const shortened = (text, most) => text.length <= most ? text : '…' + text.slice(text.length - most + 1);

function nodeMark(node, at, choose) {
  const layout = node.layouts ? node.layouts[1] : null;
  const time = node.measured_seconds ?? node.predicted_seconds;
  const what = [node.template || node.op, time > 0 ? ms(time) + ' ms' : null].filter(Boolean).join(' · ');
  const mark = svg('g', {class: 'node', tabindex: 0, role: 'button', transform: `translate(${at.x - kNode.width / 2},${at.y - kNode.height / 2})`,
                         onkeydown: (event) => { if (event.key === 'Enter' || event.key === ' ') { event.preventDefault(); choose(); } }},
    svg('title', {}, `${node.name}\n${node.op}${layout ? ', ' + node.layouts.join(' → ') : ''}`),
    svg('rect', {width: kNode.width, height: kNode.height, rx: node.op === 'Input' ? 20 : 6, style: `stroke:${layout ? colourOf(layout) : 'var(--muted)'}`,
                 'stroke-dasharray': node.type && node.type !== 'f32' ? '4 3' : null}),
    svg('text', {x: 10, y: 17}, shortened(node.name, 22)),
    svg('text', {x: 10, y: 32, class: 'small'}, what));
  mark.choose = choose;
  return mark;
}

function edgeMarks(edge, points) {
  const path = svg('path', {class: 'edge' + (edge.fused ? ' fused' : edge.read_as ? ' transform' : ''), d: pathThrough(points),
                            style: edge.fused ? null : `stroke:${colourOf(edge.layout)}`});
  if (!edge.read_as) return [path];
  const transform = edge.transform === null ? null : data.transforms[edge.transform];
  const middle = points[Math.floor(points.length / 2)];
  const at = points.length % 2 ? middle : {x: (middle.x + points[points.length / 2 - 1].x) / 2, y: (middle.y + points[points.length / 2 - 1].y) / 2};
  const cost = transform ? `, ${ms(transform.measured_seconds ?? transform.predicted_seconds)} ms` : '';
  return [path, svg('rect', {class: 'mark', x: at.x - 6, y: at.y - 6, width: 12, height: 12, transform: `rotate(45 ${at.x} ${at.y})`},
                    svg('title', {}, `transform ${edge.layout} → ${edge.read_as}${cost}`))];
}

const regionText = (region) => `region ${region}, computed depth first in bands of ${data.plan.regions[region - 1].band_rows} rows`;

// A frame around the nodes of each region and the tensors between them, and its name at the first node.
function regionMarks(nodes, edges, at, paths) {
  const pad = 9;
  return data.plan.regions.flatMap((_, i) => {
    const inside = (node) => nodes[node].region === i + 1;
    const members = nodes.map((_, node) => node).filter(inside);
    if (!members.length) return [];
    const left = (node) => at[node].x - kNode.width / 2 - pad, top = (node) => at[node].y - kNode.height / 2 - pad;
    const frame = svg('g', {class: 'region', style: `--of:var(--c${(i + 2) % 8})`}, svg('title', {}, regionText(i + 1)),
      ...edges.flatMap((edge, e) => inside(edge.from) && inside(edge.to) ? [svg('path', {d: pathThrough(paths[e])})] : []),
      ...members.map((node) => svg('rect', {x: left(node), y: top(node), width: kNode.width + 2 * pad, height: kNode.height + 2 * pad, rx: 12})));
    return [frame, svg('text', {class: 'region-name', x: left(members[0]), y: top(members[0]) - 4}, `region ${i + 1}`)];
  });
}

// Wheel, fingers, buttons and keys move what the drawing's viewBox shows. A click that moved nothing chooses.
function makeZoomable(drawing, bounds, start) {
  let view = {...start};
  const apply = () => drawing.setAttribute('viewBox', `${view.x} ${view.y} ${view.width} ${view.height}`);
  const zoom = (factor, x = 0.5, y = 0.5) => {
    const width = Math.min(Math.max(view.width * factor, 150), 3 * Math.max(bounds.width, bounds.height) + 1000);
    const scale = width / view.width;
    view = {x: view.x + view.width * x * (1 - scale), y: view.y + view.height * y * (1 - scale), width, height: view.height * scale};
    apply();
  };
  const pointers = new Map();
  let moved = 0;
  const place = (event) => {
    const box = drawing.getBoundingClientRect();
    return {x: (event.clientX - box.left) / box.width, y: (event.clientY - box.top) / box.height};
  };
  drawing.addEventListener('wheel', (event) => {
    event.preventDefault();
    const at = place(event);
    zoom(Math.exp(event.deltaY * 0.0015), at.x, at.y);
  }, {passive: false});
  drawing.addEventListener('pointerdown', (event) => {
    pointers.set(event.pointerId, place(event));
    if (pointers.size === 1) moved = 0;
  });
  drawing.addEventListener('pointermove', (event) => {
    const before = pointers.get(event.pointerId);
    if (!before) return;
    const now = place(event), others = [...pointers].filter(([id]) => id !== event.pointerId).map(([, at]) => at);
    pointers.set(event.pointerId, now);
    moved += Math.hypot(now.x - before.x, now.y - before.y);
    if (moved > 0.005 && !drawing.hasPointerCapture(event.pointerId)) drawing.setPointerCapture(event.pointerId);
    if (others.length === 1) {
      const other = others[0], far = (at) => Math.max(0.01, Math.hypot(at.x - other.x, at.y - other.y));
      zoom(far(before) / far(now), other.x, other.y);
    } else if (others.length === 0) {
      view = {...view, x: view.x - (now.x - before.x) * view.width, y: view.y - (now.y - before.y) * view.height};
      apply();
    }
  });
  for (const type of ['pointerup', 'pointercancel']) drawing.addEventListener(type, (event) => pointers.delete(event.pointerId));
  drawing.addEventListener('click', (event) => {
    const mark = event.target.closest('.node');
    if (mark && moved <= 0.005) mark.choose();
  });
  apply();
  const whole = () => {
    const shape = drawing.getBoundingClientRect(), pad = 30;
    const width = Math.max(bounds.width + 2 * pad, (bounds.height + 2 * pad) * shape.width / shape.height);
    view = {x: bounds.x + bounds.width / 2 - width / 2, y: bounds.y - pad, width, height: width * shape.height / shape.width};
    apply();
  };
  const centre = (at) => {
    view = {...view, x: at.x - view.width / 2, y: at.y - view.height / 2};
    apply();
  };
  return {zoom, whole, centre};
}

// `onChoose` gets a node. Returns {choose: name => whether there is such a node}.
function drawNetwork(parent, onChoose) {
  const {nodes, edges} = data;
  const {at, paths} = window.dagre ? layoutByDagre(nodes, edges) : layoutByRank(nodes, edges);
  const drawing = svg('svg', {'data-chart': 'network', 'aria-label': 'The network'});
  const canvas = html('div', {class: 'canvas'}, drawing);
  parent.append(canvas);
  let chosen = null;
  const marks = nodes.map((node, i) => nodeMark(node, at[i], () => {
    if (chosen) chosen.classList.remove('chosen');
    chosen = marks[i];
    chosen.classList.add('chosen');
    onChoose(node);
  }));
  drawing.append(...regionMarks(nodes, edges, at, paths), ...edges.flatMap((edge, i) => edgeMarks(edge, paths[i])), ...marks);
  const xs = at.map((node) => node.x), ys = at.map((node) => node.y);
  const bounds = {x: Math.min(...xs) - kNode.width / 2, y: Math.min(...ys) - kNode.height / 2};
  bounds.width = Math.max(...xs) + kNode.width / 2 - bounds.x;
  bounds.height = Math.max(...ys) + kNode.height / 2 - bounds.y;
  const box = drawing.getBoundingClientRect();
  const start = {x: at[0].x - box.width / 2, y: bounds.y - 24, width: box.width, height: box.height};
  const view = makeZoomable(drawing, bounds, start);
  canvas.append(html('div', {class: 'zoom'},
    html('button', {type: 'button', 'aria-label': 'Closer', onclick: () => view.zoom(0.7)}, '+'),
    html('button', {type: 'button', 'aria-label': 'Farther', onclick: () => view.zoom(1.4)}, '−'),
    html('button', {type: 'button', 'aria-label': 'All of it', onclick: view.whole}, '⤢')));
  return {choose: (name) => {
    const i = nodes.findIndex((node) => node.name === name);
    if (i < 0) return false;
    view.centre(at[i]);
    marks[i].choose();
    return true;
  }};
}

// A lane for each thread; what is longer than a page is scrolled to.
function drawTimeline(parent, events) {
  const threads = [...new Set(events.map((event) => event.thread))].sort((a, b) => a - b);
  const end = Math.max(...events.map((event) => event.begin_seconds + event.seconds));
  const isRegion = (event) => event.kind === 'region';  // around its steps
  const kinds = [...new Set(events.filter((event) => !isRegion(event)).map((event) => event.kind || ''))];
  const frame = html('div', {class: 'scroll'});
  parent.append(frame);
  const width = Math.max(frame.clientWidth, Math.min(6000, events.length / threads.length * 12)), left = 74, lane = 30;
  const x = (seconds) => left + seconds / end * (width - left - 10);
  const drawing = svg('svg', {'data-chart': 'timeline', width, height: threads.length * lane + 34});
  for (const [i, thread] of threads.entries()) {
    drawing.append(svg('g', {class: 'lane'}, svg('text', {x: 0, y: i * lane + 19}, `thread ${thread}`)));
  }
  for (const event of events) {
    const around = isRegion(event) ? 2 : 0, y = threads.indexOf(event.thread) * lane + 3 - around;
    drawing.append(svg('rect', {x: x(event.begin_seconds), y, width: Math.max(0.6, x(event.seconds) - left - 0.4), height: lane - 6 + 2 * around,
                                style: around ? 'fill:none;stroke:var(--text)' : `fill:var(--c${kinds.indexOf(event.kind || '') % 8})`},
      svg('title', {}, `${event.name}\n${event.kind || ''}\n${ms(event.seconds)} ms from ${ms(event.begin_seconds)} ms`)));
  }
  for (let tick = 0; tick <= 5; ++tick) {
    const at = x(end * tick / 5);
    drawing.append(svg('g', {class: 'lane'}, svg('text', {x: at, y: threads.length * lane + 22, 'text-anchor': tick === 5 ? 'end' : 'middle'}, `${ms(end * tick / 5)} ms`)));
  }
  frame.append(drawing);
  parent.append(legend(kinds.map((kind, i) => [kind, `var(--c${i % 8})`])));
}
