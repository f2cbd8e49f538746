'use strict';
// What is on the page, in its order.

const convs = data.nodes.filter((node) => node.workload);
const layers = data.layers.filter((row) => isNumber(row.ours_seconds)).map((row) => ({...row, shape: row.shape || row.workload || '', count: row.count || 1}))
  .sort((a, b) => b.ours_seconds * b.count - a.ours_seconds * a.count);
const onednnOf = new Map(layers.filter((row) => isNumber(row.onednn_seconds)).map((row) => [row.workload, row.onednn_seconds]));
const withBoth = (entries) => entries.filter((entry) => entry.predicted_seconds > 0 && entry.measured_seconds > 0);

const settingText = (row) => `${row.streams} × ${row.threads} thread${row.threads === 1 ? '' : 's'}, batch ${row.batch}`;

function tiles() {
  const verdict = data.verdict, tile = (figure, label) => html('div', {class: 'tile'}, html('b', {}, figure), html('span', {}, label));
  const interval = isNumber(verdict.onednn_ratio_low) ? ` (95%: ${ratio(verdict.onednn_ratio_low)} to ${ratio(verdict.onednn_ratio_high)})` : '';
  return html('div', {class: 'tiles'},
    isNumber(verdict.ours_seconds) ? tile(`${ms(verdict.ours_seconds)} ms`, 'ours, the whole network') : null,
    isNumber(verdict.onednn_seconds) ? tile(`${ms(verdict.onednn_seconds)} ms`, 'oneDNN') : null,
    isNumber(verdict.onednn_ratio) ? tile(`${ratio(verdict.onednn_ratio)}×`, `as fast as oneDNN${interval}`) : null,
    isNumber(verdict.onnxruntime_ratio) ? tile(`${ratio(verdict.onnxruntime_ratio)}×`, `as fast as ONNX Runtime (${ms(verdict.onnxruntime_seconds)} ms)`) : null,
    isNumber(data.plan.predicted_seconds) ? tile(`${ms(data.plan.predicted_seconds)} ms`, 'predicted by the plan') : null,
    tile(String(data.transforms.length), 'layout transforms left'));
}

// {id, title, note, missing: why there is nothing to show, or null; build: into an element}.
const sections = [
  {
    id: 'layers', title: 'Layer by layer', note: 'Every distinct convolution, ours beside oneDNN, as long as all of its occurrences take; the slowest first.',
    missing: layers.length ? null : 'needs what bench printed as JSON',
    build(parent) {
      const shown = layers.slice(0, 30);
      const drawn = chart(parent, 'layers', 80 + shown.length * 30, layersOption(shown));
      if (shown.length < layers.length) parent.append(html('p', {class: 'note'}, `The ${shown.length} that take longest, of ${layers.length}.`));
      parent.append(numbers([
        {title: 'convolution', of: (row) => row.shape}, {title: 'count', of: (row) => row.count},
        {title: 'ours ms', of: (row) => row.ours_seconds, text: ms}, {title: 'oneDNN ms', of: (row) => row.onednn_seconds, text: ms},
        {title: 'ratio', of: (row) => row.ratio, text: ratio}, {title: 'p10', of: (row) => row.ratio_p10, text: ratio}, {title: 'p90', of: (row) => row.ratio_p90, text: ratio},
        {title: '% of peak', of: (row) => row.peak_share, text: (share) => (share * 100).toFixed(0)},
        {title: 'template', of: (row) => row.template}, {title: 'layouts', of: (row) => row.layouts}, {title: 'oneDNN’s', of: (row) => row.onednn_implementation || row.onednn_algorithm},
        {title: 'config', of: (row) => configText(row.config)},
      ], layers, drawn));
    },
  },
  {
    id: 'improvement', title: 'What tuning gained', note: 'The whole network with default schedules, with the fastest schedule of each convolution, and with schedules and layouts chosen together.',
    missing: data.improvement.length > 1 ? null : 'needs what bench and graph-tune printed as JSON',
    build(parent) {
      const drawn = chart(parent, 'improvement', 320, waterfallOption(data.improvement, data.verdict.onednn_seconds));
      parent.append(numbers([{title: 'plan', of: (step) => step.name}, {title: 'ms', of: (step) => step.seconds, text: ms}], data.improvement, drawn));
    },
  },
  {
    id: 'network-graph', title: 'The network', note: 'Tensors have the colour of their layout; a node has that of the layout it writes. Drag to move, turn the wheel or pinch to zoom, choose a node to see why it is computed so.',
    missing: data.edges.length ? null : data.graph_missing || 'the network has no tensors between nodes',
    build(parent) {
      const aside = html('div', {id: 'node'}, html('p', {class: 'note'}, 'Choose a node.'));
      const left = html('div');
      const names = html('datalist', {id: 'node-names'}, ...data.nodes.map((node) => html('option', {value: node.name})));
      const find = html('input', {type: 'search', list: 'node-names', placeholder: 'find a node', 'aria-label': 'Find a node'});
      parent.append(html('div', {class: 'controls'}, find, names, legend([...[...layoutColours].map(([name, of]) => [`${name}, f32`, of]), ['transform', null, true]])),
                    html('div', {class: 'network'}, left, aside));
      const network = drawNetwork(left, (node) => aside.replaceChildren(...nodeDetails(node)));
      find.addEventListener('change', () => network.choose(find.value));
      const slowest = [...convs].sort((a, b) => b.predicted_seconds - a.predicted_seconds)[0];
      if (slowest) aside.replaceChildren(...nodeDetails(slowest));
    },
  },
  {
    id: 'curves', title: 'How the search went', note: 'The best time so far by trial.',
    missing: data.tasks.some((task) => task.best.length) ? null : 'the log has no successful trial of this machine and thread count',
    build(parent) {
      const tasks = data.tasks.filter((task) => task.best.length);
      const select = html('select', {'aria-label': 'Task'}, html('option', {value: ''}, `all ${tasks.length} tasks, each against its best`),
                          ...tasks.map((task, i) => html('option', {value: i}, task.workload + (task.count > 1 ? ` ×${task.count}` : ''))));
      const optionOf = () => select.value === '' ? allCurvesOption(tasks) : curveOption(tasks[select.value], onednnOf.get(tasks[select.value].workload));
      if (window.echarts) parent.append(html('div', {class: 'controls'}, select));
      const drawn = chart(parent, 'curves', 340, (width) => optionOf()(width));
      select.addEventListener('change', redrawCharts);
      parent.append(numbers([
        {title: 'task', of: (task) => task.workload, wide: true}, {title: 'in the plan', of: (task) => task.count}, {title: 'trials', of: (task) => task.trials},
        {title: 'failed', of: (task) => sum(Object.values(task.failures))}, {title: 'first ms', of: (task) => task.best[0][1], text: ms},
        {title: 'best ms', of: (task) => task.best[task.best.length - 1][1], text: ms}, {title: 'at trial', of: (task) => task.best[task.best.length - 1][0]},
        {title: 'oneDNN ms', of: (task) => onednnOf.get(task.workload), text: ms},
      ], tasks, drawn));
    },
  },
  {
    id: 'roofline', title: 'Roofline', note: 'Each convolution by its arithmetic and the bytes it must move at least; the dashed roof is what this machine was measured to do. Winograd does with less arithmetic than is counted here, so it may lie above.',
    missing: convs.some((node) => node.flops > 0 && (node.measured_seconds ?? node.predicted_seconds) > 0) ? null : 'the plan has no convolution with a time',
    build(parent) {
      const timed = convs.filter((node) => node.flops > 0 && node.bytes > 0 && (node.measured_seconds ?? node.predicted_seconds) > 0);
      const total = sum(timed.map((node) => node.measured_seconds ?? node.predicted_seconds));
      const points = timed.map((node) => {
        const seconds = node.measured_seconds ?? node.predicted_seconds;
        return {name: node.name, template: node.template, intensity: node.flops / node.bytes, gflops: node.flops / seconds * 1e-9, ms: seconds * 1e3, share: seconds / total};
      });
      const drawn = chart(parent, 'roofline', 380, rooflineOption(points, data.peaks));
      if (!data.peaks.flops) parent.append(html('p', {class: 'note'}, 'The machine’s peaks are in what bench printed as JSON.'));
      parent.append(numbers([{title: 'node', of: (point) => point.name}, {title: 'template', of: (point) => point.template}, {title: 'FLOP/byte', of: (point) => point.intensity, text: digits},
        {title: 'GFLOP/s', of: (point) => point.gflops, text: digits}, {title: 'ms', of: (point) => point.ms, text: digits}], points, drawn));
    },
  },
  {
    id: 'histogram', title: 'Runs', note: 'How long single runs took, the slowest percent in the last bar.',
    missing: data.runs.length ? null : 'needs what bench or run printed as JSON',
    build(parent) {
      const drawn = chart(parent, 'histogram', 320, histogramOption(data.runs));
      const sorted = data.runs.map((run) => ({name: run.name, seconds: [...run.seconds].sort((a, b) => a - b)}));
      const at = (q) => ({title: q === 0 ? 'min ms' : `p${q * 100} ms`, of: (run) => quantile(run.seconds, q), text: ms});
      parent.append(numbers([{title: 'of', of: (run) => run.name}, {title: 'samples', of: (run) => run.seconds.length}, at(0), at(0.1), at(0.5), at(0.9), at(0.99),
        {title: 'mean ms', of: (run) => sum(run.seconds) / run.seconds.length, text: ms}], sorted, drawn));
    },
  },
  {
    id: 'settings', title: 'Threads, batch and streams', note: 'What each setting does in a second, and how long a run takes meanwhile: further up and further left is better.',
    missing: data.sweep.some((row) => row.images_per_second > 0 && row.p50_seconds > 0) ? null : 'needs what bench --sweep saved as JSON',
    build(parent) {
      const drawn = chart(parent, 'settings', 340, sweepOption(data.sweep));
      parent.append(numbers([{title: 'setting', of: settingText}, {title: 'images/s', of: (row) => row.images_per_second, text: digits}, {title: 'ONNX Runtime', of: (row) => row.onnxruntime_images_per_second, text: digits},
        {title: 'ratio', of: (row) => row.ratio, text: ratio}, {title: 'p50 ms', of: (row) => row.p50_seconds, text: ms}, {title: 'p99 ms', of: (row) => row.p99_seconds, text: ms},
        {title: 'its p50 ms', of: (row) => row.onnxruntime_p50_seconds, text: ms}, {title: 'schedule', of: (row) => row.schedule}], data.sweep, drawn));
    },
  },
  {
    id: 'prediction', title: 'Predicted against measured', note: 'Every node and transform of the plan; on the dashed line they are the same.',
    missing: withBoth([...data.nodes, ...data.transforms]).length ? null : 'needs what bench or run --profile printed as JSON',
    build(parent) {
      const points = withBoth([...data.nodes, ...data.transforms]).map((entry) => ({
        name: entry.name || `${entry.tensor}: ${entry.from} → ${entry.to}`, predicted: entry.predicted_seconds * 1e3, measured: entry.measured_seconds * 1e3}));
      const drawn = chart(parent, 'prediction', 380, predictionOption(points));
      parent.append(numbers([{title: 'of', of: (point) => point.name}, {title: 'predicted ms', of: (point) => point.predicted, text: digits},
        {title: 'measured ms', of: (point) => point.measured, text: digits}, {title: 'ratio', of: (point) => point.measured / point.predicted, text: ratio}], points, drawn));
    },
  },
  {
    id: 'timeline', title: 'One run', note: 'What each thread did, from the trace.',
    missing: data.timeline.length ? null : 'needs a trace, as run --trace writes it',
    build: (parent) => drawTimeline(parent, data.timeline),
  },
  {
    id: 'plan', title: 'The plan', note: 'Every node; a click on a column’s title sorts.', missing: null,
    build(parent) {
      const search = html('input', {type: 'search', placeholder: 'search', 'aria-label': 'Search the plan'});
      const made = table([
        {title: 'node', of: (node) => node.name, wide: true}, {title: 'op', of: (node) => node.op}, {title: 'template', of: (node) => node.template},
        {title: 'layouts', of: (node) => node.fused_into ? `in ${node.fused_into}` : [...new Set(node.layouts)].join(' → ')},
        {title: 'predicted ms', of: (node) => node.predicted_seconds, text: ms}, {title: 'measured ms', of: (node) => node.measured_seconds, text: ms},
        ...(data.plan.regions.length ? [{title: 'region', of: (node) => node.region}] : []), {title: 'workload', of: (node) => node.workload}, {title: 'config', of: (node) => configText(node.config)},
      ], data.nodes);
      const texts = made.lines.map((line) => line.textContent.toLowerCase());
      search.addEventListener('input', () => made.lines.forEach((line, i) => { line.hidden = !texts[i].includes(search.value.toLowerCase()); }));
      parent.append(html('div', {class: 'controls'}, search), made.element);
      if (data.transforms.length) parent.append(numbers([
        {title: 'transform of', of: (transform) => transform.tensor, wide: true}, {title: 'from', of: (transform) => transform.from}, {title: 'to', of: (transform) => transform.to},
        {title: 'predicted ms', of: (transform) => transform.predicted_seconds, text: ms}, {title: 'measured ms', of: (transform) => transform.measured_seconds, text: ms},
      ], data.transforms, true));
    },
  },
  {
    id: 'how', title: 'How it was measured', missing: null,
    note: 'Ours and oneDNN alternate in one process on the same cores; a ratio is the median of paired ratios. ONNX Runtime runs in a process of its own, by turns with ours.',
    build(parent) {
      parent.append(definitions([
        ['machine', data.verdict.machine], ['threads', String(data.verdict.threads)],
        ['solver', `${data.plan.solver} (${data.plan.certificate})`], ['graph', data.plan.graph_hash], ['plan by', `tilesmith ${data.plan.version}`],
        ['peaks', data.peaks.flops ? `${digits(data.peaks.flops * 1e-9)} GFLOP/s` + (data.peaks.bytes_per_second ? `, ${digits(data.peaks.bytes_per_second * 1e-9)} GB/s read from memory` : '') : null],
        ['records in the log', String(data.log.records)], ['disturbed', isNumber(data.verdict.disturbed_share) ? `${Math.round(data.verdict.disturbed_share * 100)}% of the time` : null], ['page made', `${data.made.date}, commit ${data.made.commit}`],
        ['by', html('code', {}, data.made.command)],
      ]));
      for (const origin of data.origins) parent.append(definitions([
        ['command', origin.command ? html('code', {}, origin.command) : null], ['date', origin.date], ['commit', origin.commit], ['oneDNN', origin.onednn], ['weights', origin.weights]]));
      if (data.missing.length) parent.append(html('p', {class: 'note'}, 'Not in this page: ' + data.missing.join('; ')));
    },
  },
];

// What the page has not, in one section behind what it has.
function absent() {
  const missing = sections.filter((section) => section.missing);
  return missing.length ? [{
    id: 'absent', title: 'Not shown', note: 'What the files that this page was made of do not hold.',
    build: (parent) => parent.append(definitions(missing.map((section) => [section.title, section.missing]))),
  }] : [];
}

function nodeDetails(node) {
  const why = data.explanations.find((entry) => entry.node === node.name);
  const tensor = node.shape ? node.shape.join('×') + (node.type ? ` ${node.type}` : '') : null;
  const parts = [html('h3', {}, node.name), definitions([
    ['op', node.op], ['tensor', tensor], ['layouts', node.fused_into ? `computed in ${node.fused_into}` : node.layouts && [...new Set(node.layouts)].join(' → ')],
    ['predicted', node.predicted_seconds > 0 ? `${ms(node.predicted_seconds)} ms` : null], ['measured', node.measured_seconds > 0 ? `${ms(node.measured_seconds)} ms` : null],
    ['template', node.template], ['computed', node.region ? `in ${regionText(node.region)}` : null]])];
  if (why) parts.push(html('h3', {}, 'Why so'));
  if (why && !why.why) parts.push(html('p', {}, 'There is no other way to compute it.'));
  if (why && why.why) parts.push(html('p', {}, `${why.best}, of ${why.choices} choices. ${why.other_is_plan ? 'The plan has' : 'Next comes'} ${why.other}, with which the network takes ${ms(why.off_seconds)} ms more:`),
                  html('p', {}, html('code', {}, why.why)));
  if (node.workload) parts.push(html('h3', {}, 'Schedule'), definitions([
    ['workload', html('code', {}, node.workload)], ['config', html('code', {}, configText(node.config))]]));
  return parts;
}

function chooseTheme(theme) {
  document.documentElement.dataset.theme = theme;
  redrawCharts();
}

// The browser shows each section before the next one is drawn.
async function start() {
  const dark = window.matchMedia('(prefers-color-scheme: dark)');
  document.documentElement.dataset.theme = dark.matches ? 'dark' : 'light';
  document.title = `${data.verdict.network} – tilesmith`;
  $('network').textContent = data.verdict.network;
  $('verdict').textContent = data.verdict.text;
  $('verdict').after(tiles());
  $('licences').hidden = !$('licences').querySelector('pre');
  dark.addEventListener('change', () => chooseTheme(dark.matches ? 'dark' : 'light'));
  $('theme').addEventListener('click', () => chooseTheme(document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark'));
  let width = window.innerWidth, before = null;
  window.addEventListener('resize', () => {
    if (window.innerWidth !== width) redrawCharts();
    width = window.innerWidth;
  });
  window.addEventListener('beforeprint', () => { before = document.documentElement.dataset.theme; chooseTheme('light'); });
  window.addEventListener('afterprint', () => chooseTheme(before));
  for (const section of [...sections.filter((one) => !one.missing), ...absent()]) {
    const element = html('section', {id: section.id}, html('h2', {}, section.title), html('p', {class: 'note'}, section.note));
    $('sections').append(element);
    $('contents').append(html('a', {href: '#' + section.id}, section.title));
    section.build(element);
    await new Promise((drawn) => setTimeout(drawn));
  }
  if (location.hash) $(location.hash.slice(1))?.scrollIntoView();  // which was not there yet
  document.body.dataset.ready = 'yes';
}

start();
