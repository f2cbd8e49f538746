'use strict';
// Charts by ECharts, drawn anew when the theme, the width or the medium changes. Where the library is missing
// there are none, and the tables under them are open.

const charts = [];

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim();

// `option` makes the chart's options of the width it has; false when there is no library.
function chart(parent, name, height, option) {
  if (!window.echarts) return false;
  const box = html('div', {class: 'chart', 'data-chart': name, style: `height:${height}px`});
  parent.append(box);
  const entry = {box, instance: echarts.init(box, null, {renderer: 'svg'}), option};
  charts.push(entry);
  draw(entry);
  return true;
}

function draw({box, instance, option}) {
  const text = colour('text'), muted = colour('muted'), line = colour('line'), grid = colour('grid');
  const made = option(box.clientWidth);
  const axis = (given) => ({
    nameLocation: 'middle', nameTextStyle: {color: muted}, axisLine: {lineStyle: {color: line}}, axisTick: {show: false},
    splitLine: {lineStyle: {color: grid}}, minorSplitLine: {show: false}, ...given,
    axisLabel: {color: muted, ...given.axisLabel},
  });
  instance.setOption({
    animation: false, textStyle: {color: text, fontFamily: getComputedStyle(document.body).fontFamily},
    tooltip: {backgroundColor: colour('card'), borderColor: line, textStyle: {color: text, fontSize: 13}, confine: true, ...made.tooltip},
    legend: {top: 0, left: 0, icon: 'roundRect', itemWidth: 12, itemHeight: 12, itemGap: 18, textStyle: {color: muted}, ...made.legend},
    grid: {left: 60, right: 20, top: 36, bottom: 48, ...made.grid},
    ...Object.fromEntries(Object.entries(made).filter(([key]) => !['tooltip', 'legend', 'grid', 'xAxis', 'yAxis'].includes(key))),
    xAxis: axis(made.xAxis), yAxis: axis(made.yAxis),
  }, true);
}

function redrawCharts() {
  for (const entry of charts) {
    entry.instance.resize();
    draw(entry);
  }
}

const lines = (...texts) => texts.filter((text) => text !== null).map(escapeHtml).join('<br>');
const dashed = (name, at, label) => ({
  symbol: 'none', silent: true, lineStyle: {type: 'dashed', color: colour(name), width: 2},
  label: {formatter: () => label, color: colour(name), position: 'insideEndTop'}, data: [at],
});

// "256x14x14 -> 256, 3x3": a convolution's output without the sizes that follow from the rest.
const shortShape = (shape) => shape.replace(/-> (\d+)(x\d+)+/g, '-> $1');

function layersOption(rows) {
  return (width) => {
    const narrow = width < 700;
    const room = narrow ? Math.min(190, width * 0.46) : 300;
    const bar = (key, name, title) => ({
      type: 'bar', name: title, data: rows.map((row) => isNumber(row[key]) ? row[key] * row.count * 1e3 : null),
      itemStyle: {color: colour(name), borderRadius: [0, 3, 3, 0]}, barMaxWidth: 11, barGap: '15%',
    });
    return {
      grid: {left: room + 12, top: 30, bottom: 40},
      tooltip: {trigger: 'axis', axisPointer: {type: 'shadow'}, formatter: ([at]) => {
        const row = rows[at.dataIndex];
        return lines(row.shape + (row.count > 1 ? `, ${row.count} times` : ''), `ours ${ms(row.ours_seconds)} ms each (${row.template}, ${row.layouts})`,
                     isNumber(row.onednn_seconds) ? `oneDNN ${ms(row.onednn_seconds)} ms each (${row.onednn_algorithm})` : 'oneDNN cannot',
                     isNumber(row.ratio) ? `ratio ${ratio(row.ratio)}` : null);
      }},
      xAxis: {type: 'value', name: 'ms in the network', nameGap: 26},
      yAxis: {type: 'category', inverse: true, data: rows.map((row, i) => i), splitLine: {show: false},
              axisLabel: {width: room, overflow: 'break', fontSize: narrow ? 11 : 12, lineHeight: 13, interval: 0,
                          formatter: (i) => (narrow ? shortShape(rows[i].shape) : rows[i].shape) + (rows[i].count > 1 ? ` ×${rows[i].count}` : '')}},
      series: [bar('ours_seconds', 'ours', 'ours'), bar('onednn_seconds', 'onednn', 'oneDNN')],
    };
  };
}

// Totals stand on the ground; between two of them hangs what the step gained or lost.
function waterfallOption(steps, onednnSeconds) {
  const bars = [];
  steps.forEach((step, i) => {
    if (i > 0) {
      const before = steps[i - 1].seconds, gain = before - step.seconds;
      const what = step.name === 'tuned' ? 'tuning' : steps[i - 1].name === 'tuned' ? 'graph tuning' : 'all tuning';
      bars.push({name: what, base: Math.min(before, step.seconds), size: Math.abs(gain),
                 colour: gain >= 0 ? 'good' : 'bad', text: (gain >= 0 ? '−' : '+') + ms(Math.abs(gain))});
    }
    bars.push({name: step.name, base: 0, size: step.seconds, colour: 'ours', text: ms(step.seconds)});
  });
  return (width) => ({
    legend: {show: false}, grid: {top: 24, bottom: 44, left: 52, right: 12},
    tooltip: {trigger: 'item', formatter: (at) => lines(bars[at.dataIndex].name, bars[at.dataIndex].text + ' ms')},
    xAxis: {type: 'category', data: bars.map((bar) => width < 500 ? bar.name.replace(/[ -]/, '\n') : bar.name), axisLabel: {interval: 0, fontSize: width < 500 ? 10 : 12, lineHeight: 14}},
    yAxis: {type: 'value', name: 'ms', nameGap: 38, max: onednnSeconds ? (range) => Math.max(range.max, onednnSeconds * 1e3) * 1.08 : null, axisLabel: {showMaxLabel: false, formatter: (v) => +v.toPrecision(3)}},
    series: [
      {type: 'bar', stack: 'all', silent: true, itemStyle: {color: 'transparent'}, data: bars.map((bar) => bar.base * 1e3), tooltip: {show: false}},
      {type: 'bar', stack: 'all', barMaxWidth: 70, label: {show: true, position: 'top', fontSize: width < 500 ? 10 : 12, color: colour('text'), formatter: (at) => bars[at.dataIndex].text},
       data: bars.map((bar) => ({value: bar.size * 1e3, itemStyle: {color: colour(bar.colour), borderRadius: 3}})),
       markLine: onednnSeconds ? dashed('onednn', {yAxis: onednnSeconds * 1e3}, `oneDNN ${ms(onednnSeconds)}`) : undefined},
    ],
  });
}

const untilTheEnd = (task) => [...task.best, [task.trials, task.best[task.best.length - 1][1]]];

// All tasks, each against the best that was found for it.
function allCurvesOption(tasks) {
  return () => ({
    legend: {show: false}, grid: {top: 16},
    tooltip: {trigger: 'item', formatter: (at) => lines(tasks[at.seriesIndex].workload, `trial ${at.value[0]}: ${ratio(at.value[1])} times its best`)},
    xAxis: {type: 'log', name: 'trials', nameGap: 28, min: 1},
    yAxis: {type: 'value', name: 'times the best found', nameGap: 40, min: 1, max: (range) => Math.min(6, range.max), axisLabel: {showMaxLabel: false}},
    series: tasks.map((task, i) => {
      const best = task.best[task.best.length - 1][1];
      return {type: 'line', step: 'end', symbolSize: 5, showSymbol: true, lineStyle: {width: 1.5}, color: colour('c' + i % 8),
              data: untilTheEnd(task).map(([trial, seconds]) => [trial, seconds / best])};
    }),
  });
}

function curveOption(task, onednnSeconds) {
  return () => ({
    legend: {show: false}, grid: {top: 20},
    tooltip: {trigger: 'item', formatter: (at) => lines(`trial ${at.value[0]}`, `${digits(at.value[1])} ms`)},
    xAxis: {type: 'value', name: 'trials', nameGap: 28, minInterval: 1},
    yAxis: {type: 'value', name: 'best so far, ms', nameGap: 46, min: 0,
            max: onednnSeconds ? (range) => Math.max(range.max, onednnSeconds * 1e3) * 1.1 : null, axisLabel: {showMaxLabel: false, formatter: (v) => +v.toPrecision(3)}},
    series: [{type: 'line', step: 'end', symbolSize: 7, color: colour('ours'), data: untilTheEnd(task).map(([trial, seconds]) => [trial, seconds * 1e3]),
              markLine: onednnSeconds ? dashed('onednn', {yAxis: onednnSeconds * 1e3}, `oneDNN ${ms(onednnSeconds)}`) : undefined}],
  });
}

// Points: {name, intensity, gflops, ms}.
function rooflineOption(points, peaks) {
  const reach = points.map((point) => point.intensity);
  const low = 10 ** Math.floor(Math.log10(Math.min(...reach) / 1.5)), high = 10 ** Math.ceil(Math.log10(Math.max(...reach) * 1.5));
  const roof = (x) => Math.min(peaks.flops, x * (peaks.bytes_per_second || Infinity)) * 1e-9;
  const ridge = peaks.bytes_per_second ? peaks.flops / peaks.bytes_per_second : low;
  const corners = [low, ...(ridge > low && ridge < high ? [ridge] : []), high].map((x) => [x, roof(x)]);
  const lowest = Math.min(...points.map((point) => point.gflops), ...(peaks.flops ? corners.map((corner) => corner[1]) : []));
  return () => ({
    grid: {left: 64},
    tooltip: {trigger: 'item', formatter: (at) => at.seriesIndex > 0 ? '' :
      lines(points[at.dataIndex].name, `${digits(points[at.dataIndex].ms)} ms, ${digits(points[at.dataIndex].gflops)} GFLOP/s`,
            peaks.flops ? `${Math.round(100 * points[at.dataIndex].gflops / roof(points[at.dataIndex].intensity))}% of the roof` : null)},
    xAxis: {type: 'log', name: 'FLOP per byte that must be moved', nameGap: 28, min: low, max: high},
    yAxis: {type: 'log', name: 'GFLOP/s', nameGap: 46, min: 10 ** Math.floor(Math.log10(lowest))},
    series: [
      {type: 'scatter', name: 'convolutions', color: colour('ours'), itemStyle: {opacity: 0.75}, data: points.map((point) => [point.intensity, point.gflops]),
       symbolSize: (value, at) => 6 + 18 * Math.sqrt(points[at.dataIndex].share)},
      ...(peaks.flops ? [{type: 'line', name: 'measured peaks', silent: true, symbol: 'none', color: colour('muted'), lineStyle: {width: 2, type: 'dashed'}, data: corners}] : []),
    ],
  });
}

const kBins = 30;
function histogramOption(runs) {
  const all = runs.flatMap((run) => run.seconds).sort((a, b) => a - b);
  const low = all[0], high = Math.max(quantile(all, 0.99), low * 1.001), width = (high - low) / kBins;
  const count = (run) => {
    const bins = new Array(kBins + 1).fill(0);
    for (const seconds of run.seconds) ++bins[Math.min(kBins, Math.floor((seconds - low) / width))];
    return bins.map((n) => n / run.seconds.length * 100);
  };
  const names = runs.map((run) => ({ours: 'ours', oneDNN: 'onednn'})[run.name] || 'onnxruntime');
  const edge = (bin) => ms(low + bin * width);
  return () => ({
    tooltip: {trigger: 'axis', axisPointer: {type: 'shadow'}, formatter: (at) => lines(at[0].dataIndex < kBins ? `${edge(at[0].dataIndex)} to ${edge(at[0].dataIndex + 1)} ms` : `above ${edge(kBins)} ms`,
      ...at.filter((entry) => entry.value > 0).map((entry) => `${entry.seriesName}: ${entry.value.toFixed(1)}%`))},
    xAxis: {type: 'category', name: 'ms', nameGap: 28, data: Array.from({length: kBins + 1}, (_, bin) => bin < kBins ? edge(bin) : 'more'), axisLabel: {interval: 'auto', hideOverlap: true}},
    yAxis: {type: 'value', name: '% of its runs', nameGap: 40},
    series: runs.map((run, i) => ({type: 'bar', name: run.name, data: count(run), barGap: '-100%', barCategoryGap: '4%', itemStyle: {color: colour(names[i]), opacity: 0.65}})),
  });
}

// Settings of a sweep by what each does in a second and how long a run takes meanwhile.
function sweepOption(rows) {
  const series = (name, of, p50, images) => {
    const shown = rows.filter((row) => row[images] > 0 && row[p50] > 0);
    return {type: 'scatter', name, color: colour(of), symbolSize: 10, itemStyle: {opacity: 0.8}, data: shown.map((row) => [row[p50] * 1e3, row[images], settingText(row)])};
  };
  return () => ({
    grid: {left: 64}, legend: {show: rows.some((row) => row.onnxruntime_images_per_second > 0)},
    tooltip: {trigger: 'item', formatter: (at) => lines(`${at.seriesName}: ${at.value[2]}`, `${digits(at.value[1])} images/s`, `${digits(at.value[0])} ms`)},
    xAxis: {type: 'log', name: 'median latency, ms', nameGap: 28, axisLabel: {hideOverlap: true}}, yAxis: {type: 'value', name: 'images/s', nameGap: 46},
    series: [series('ours', 'ours', 'p50_seconds', 'images_per_second'), series('ONNX Runtime', 'onnxruntime', 'onnxruntime_p50_seconds', 'onnxruntime_images_per_second')].filter((one) => one.data.length),
  });
}

// Points: {name, predicted, measured} in milliseconds.
function predictionOption(points) {
  const all = points.flatMap((point) => [point.predicted, point.measured]);
  const low = Math.min(...all) / 1.3, high = Math.max(...all) * 1.3;
  const axis = {type: 'log', min: low, max: high, axisLabel: {formatter: (v) => +v.toPrecision(1), hideOverlap: true}};
  return () => ({
    legend: {show: false}, grid: {left: 64, top: 16},
    tooltip: {trigger: 'item', formatter: (at) => at.seriesIndex > 0 ? '' :
      lines(points[at.dataIndex].name, `predicted ${digits(points[at.dataIndex].predicted)} ms`, `measured ${digits(points[at.dataIndex].measured)} ms`)},
    xAxis: {...axis, name: 'predicted, ms', nameGap: 28}, yAxis: {...axis, name: 'measured, ms', nameGap: 46},
    series: [
      {type: 'scatter', color: colour('ours'), itemStyle: {opacity: 0.75}, symbolSize: 9, data: points.map((point) => [point.predicted, point.measured])},
      {type: 'line', silent: true, symbol: 'none', lineStyle: {type: 'dashed', width: 1.5}, color: colour('muted'), data: [[low, low], [high, high]]},
    ],
  });
}
