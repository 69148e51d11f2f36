"use strict";
(async () => {
  const began = performance.now();
  const page = JSON.parse(document.getElementById("data").textContent);
  const box = document.getElementById("charts");
  const status = document.getElementById("range");
  const GUTTER = 62, RIGHT = 14, HEIGHT = 132, STRIP = 18, FEWEST_PIXELS = 200, MOST_SAID = 3, FEW_POINTS = 25;

  // ---- Columns.

  const bytes = await inflate(document.getElementById("columns").textContent);
  const columns = unpack(page.columns, bytes);

  function decodeBase64(text) {
    if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
    return Uint8Array.from(atob(text), letter => letter.charCodeAt(0));
  }

  async function inflate(text) {
    const stream = new Blob([decodeBase64(text)]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  }

  function unpack(described, packed) {
    let at = 0;
    return described.map(({rows, low, step, unknown}) => {
      const values = new Float64Array(rows);
      if (step === undefined) {  // moments: milliseconds since the one before
        let moment = 0;
        for (let row = 0; row < rows; row++) {
          const [a, b, c, d] = [0, 1, 2, 3].map(place => packed[at + place * rows + row]);
          moment += a + 256 * b + 65536 * c + 16777216 * d;
          values[row] = moment / 1000;
        }
        at += 4 * rows;
      } else {
        for (let row = 0; row < rows; row++) {
          const level = packed[at + row] + 256 * packed[at + rows + row];
          values[row] = level === unknown ? NaN : low + step * level;
        }
        at += 2 * rows;
      }
      return values;
    });
  }

  const charts = page.charts.map(chart => ({
    ...chart,
    lines: chart.lines.map(line => ({
      label: line.label,
      start: columns[line.start], end: columns[line.end], mean: columns[line.mean],
      low: columns[line.low ?? line.mean], high: columns[line.high ?? line.mean],
    })),
  }));

  // ---- Figures of a range, and bins of equal time.

  function firstAtLeast(values, wanted) {
    let low = 0, high = values.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (values[middle] < wanted) low = middle + 1; else high = middle;
    }
    return low;
  }

  function rowsOf(line, from, to) {
    const first = firstAtLeast(line.end, from);
    let last = firstAtLeast(line.start, to);
    while (last < line.start.length && line.start[last] <= to) last++;
    return [first, last];
  }

  // Metrics are; of samples only the first may be one, which counts for nothing beside the others.
  const isOfInstants = line => line.start.at(-1) === line.end.at(-1);

  function summarize(line, from, to) {
    const [first, last] = rowsOf(line, from, to);
    const ofInstant = isOfInstants(line) ? 1 : 0;
    let sum = 0, seconds = 0, high = -Infinity;
    for (let row = first; row < last; row++) {
      if (Number.isNaN(line.mean[row])) continue;
      const share = Math.min(line.end[row], to) - Math.max(line.start[row], from);
      const weight = line.end[row] > line.start[row] ? Math.max(0, share) : ofInstant;
      if (!weight) continue;
      sum += weight * line.mean[row];
      seconds += weight;
      high = Math.max(high, line.high[row]);
    }
    return seconds ? {mean: sum / seconds, high} : null;
  }

  function rawPoints(line, first, last) {
    const points = noPoints();
    for (let row = first; row < last; row++) {
      if (row > first && line.start[row] - line.end[row - 1] > 1e-3 && line.start[row] < line.end[row]) {
        push(points, line.end[row - 1], line.start[row], null, null, null);  // nothing was measured
      }
      const known = !Number.isNaN(line.mean[row]);
      push(points, line.start[row], line.end[row], known ? line.mean[row] : null,
        known ? line.low[row] : null, known ? line.high[row] : null);
    }
    return points;
  }

  const noPoints = () => ({x: [], from: [], to: [], mean: [], low: [], high: []});

  function push(points, from, to, mean, low, high) {
    points.x.push((from + to) / 2); points.from.push(from); points.to.push(to);
    points.mean.push(mean); points.low.push(low); points.high.push(high);
  }

  function binPoints(line, from, to, count) {
    const [first, last] = rowsOf(line, from, to);
    if (last - first <= 2 * count) return rawPoints(line, first, last);
    const width = (to - from) / count;
    const sum = new Float64Array(count), seconds = new Float64Array(count);
    const low = new Float64Array(count).fill(Infinity), high = new Float64Array(count).fill(-Infinity);
    for (let row = first; row < last; row++) {
      if (Number.isNaN(line.mean[row])) continue;
      const start = Math.max(line.start[row], from), end = Math.min(line.end[row], to);
      const begin = Math.min(count - 1, Math.max(0, Math.floor((start - from) / width)));
      const stop = Math.min(count - 1, Math.max(begin, Math.ceil((end - from) / width) - 1));
      for (let bin = begin; bin <= stop; bin++) {
        const edge = from + bin * width;
        const weight = Math.max(1e-9, Math.min(end, edge + width) - Math.max(start, edge));
        sum[bin] += weight * line.mean[row];
        seconds[bin] += weight;
        if (line.low[row] < low[bin]) low[bin] = line.low[row];
        if (line.high[row] > high[bin]) high[bin] = line.high[row];
      }
    }
    const points = noPoints(), hasNoGaps = isOfInstants(line);
    for (let bin = 0; bin < count; bin++) {
      const edge = from + bin * width, known = seconds[bin] > 0;
      if (!known && hasNoGaps) continue;  // between two of them nothing is missing
      push(points, edge, edge + width, known ? sum[bin] / seconds[bin] : null, known ? low[bin] : null, known ? high[bin] : null);
    }
    return points;
  }

  // ---- Words.

  const SCALES = ["", "k", "M", "G", "T", "P"];

  function threeDigits(value) {
    if (value === 0) return "0";
    const size = Math.abs(value);
    return size >= 100 ? value.toFixed(0) : String(Number(value.toPrecision(3)));
  }

  function scaled(value, unit) {
    let place = 0;
    while (Math.abs(value) >= 999.5 && place < SCALES.length - 1) { value /= 1000; place++; }
    return `${threeDigits(value)} ${SCALES[place]}${unit}`;
  }

  function say(value, unit) {
    if (value === null || value === undefined || Number.isNaN(value)) return "not measured";
    switch (unit) {
      case "bytes": return scaled(value, "B");
      case "bytes per second": return scaled(value, "B/s");
      case "percent": return `${value.toFixed(0)} %`;
      case "watts": return `${value.toFixed(0)} W`;
      case "cores": return `${threeDigits(value)} cores`;
      default: return threeDigits(value);
    }
  }

  function sayTime(seconds) {
    if (seconds < 120) return `${Number(seconds.toPrecision(4))} s`;
    if (seconds < 7200) return `${Number((seconds / 60).toPrecision(4))} min`;
    if (seconds < 172800) return `${Number((seconds / 3600).toPrecision(4))} h`;
    return `${Number((seconds / 86400).toPrecision(4))} d`;
  }

  const STEPS = [1e-3, 2e-3, 5e-3, 1e-2, 2e-2, 5e-2, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800,
    3600, 7200, 10800, 21600, 43200, 86400, 172800, 432000, 864000, 1728000, 2592000, 7776000, 31536000];

  // ---- State.

  const whole = [0, Math.max(page.seconds, ...charts.flatMap(chart => chart.lines.map(line => line.end.at(-1) ?? 0)), 1e-3)];
  let range = whole;
  const views = [], peaks = {};

  function setRange(from, to) {
    const least = (whole[1] - whole[0]) / 1e6;
    from = Math.max(whole[0], from);
    to = Math.min(whole[1], to);
    if (to - from < least) return;
    range = [from, to];
    for (const view of views) view.draw();
    showRange();
  }

  function showRange() {
    const isWhole = range[0] === whole[0] && range[1] === whole[1];
    const parts = charts.flatMap(chart => {
      const found = chart.lines.map(line => ({line: line.label, ...summarize(line, ...range)})).filter(one => "mean" in one);
      if (found.length > MOST_SAID) {
        const mean = found.reduce((sum, one) => sum + one.mean, 0) / found.length;
        return [{name: `${short(chart)} of ${found.length}`, unit: chart.unit, chart: chart.name, line: "",
          mean, high: Math.max(...found.map(one => one.high))}];
      }
      return found.map(one => ({...one, unit: chart.unit, chart: chart.name,
        name: chart.lines.length > 1 ? `${short(chart)} ${one.line}` : short(chart)}));
    });
    status.replaceChildren(
      element("button", {type: "button", disabled: isWhole, onclick: () => setRange(...whole)}, "Whole run"),
      element("b", {}, `${sayTime(range[0])} – ${sayTime(range[1])}`),
      ...parts.map(part => element("span", {
        "data-chart": part.chart, "data-line": part.line, "data-mean": part.mean, "data-high": part.high,
      }, `${part.name} ${say(part.mean, part.unit)} (max ${say(part.high, part.unit)})`)),
    );
  }

  function short(chart) {
    return {cpu: "CPU", ram: "RAM", gpu_busy: "busy", gpu_ram: "GPU RAM", power: "power", io: "storage"}[chart.name] ?? chart.title;
  }

  function element(name, attributes, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      if (key.startsWith("on")) made[key] = value;
      else if (value === true) made.setAttribute(key, "");
      else if (value !== false && value !== null && value !== undefined) made.setAttribute(key, value);
    }
    made.append(...children);
    return made;
  }

  const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const PALETTE = ["--blue", "--orange", "--green", "--red", "--violet", "--brown", "--teal", "--grey"];
  const plotWidth = () => Math.max(FEWEST_PIXELS, box.clientWidth);

  // ---- Lines.

  function figure(title, legend, note, label) {
    return element("figure", {class: "chart", "aria-label": label},
      element("figcaption", {}, element("strong", {}, title), element("span", {class: "legend"}, ...legend, element("span", {}, note))));
  }

  function describe(chart) {
    const parts = chart.lines.map(line => {
      const found = summarize(line, ...whole);
      return found ? `${line.label}: mean ${say(found.mean, chart.unit)}, largest ${say(found.high, chart.unit)}` : `${line.label}: not measured`;
    });
    return `${chart.title}. ${parts.join("; ")}${chart.capacity ? `; of ${say(chart.capacity, chart.unit)}` : ""}`;
  }

  function drawLines(chart) {
    const isSingle = chart.lines.length === 1;
    const legend = isSingle ? [] : chart.lines.flatMap((line, number) =>
      [element("i", {style: `border-color:var(${PALETTE[number]})`}), line.label]);
    const top = Math.max(...chart.lines.map(line => summarize(line, ...whole)?.high ?? 0), chart.peak?.[1] ?? 0);
    const showsCapacity = chart.capacity && top > 0.25 * chart.capacity;
    if (showsCapacity) legend.push(element("i", {class: "dash", style: "border-color:var(--red)"}));
    const note = [chart.capacityLabel, chart.note].filter(Boolean).join(" · ");
    const frame = figure(chart.title, legend, note, describe(chart));
    box.append(frame);
    let plot = null;

    function data() {
      const points = chart.lines.map(line => binPoints(line, ...range, Math.max(FEWEST_PIXELS, plotWidth() - GUTTER - RIGHT)));
      const series = points.map((found, number) => [found.x, ...(number < 2 ? [found.mean, found.low, found.high] : [found.mean])]);
      return series.length === 1 ? series[0] : uPlot.join(series);
    }

    function options() {
      const axis = {stroke: css("--soft"), grid: {stroke: css("--grid"), width: 1}, ticks: {show: false}, font: "11px system-ui, sans-serif"};
      const series = [{}], bands = [];
      chart.lines.forEach((line, number) => {
        const colour = css(PALETTE[number]);
        const isAlone = (plot, index, first, last) => last - first < FEW_POINTS;
        series.push({label: line.label, stroke: colour, width: 1.5, points: {show: isAlone, size: 4}, spanGaps: false});
        if (number < 2) {
          series.push({stroke: "transparent", points: {show: false}}, {stroke: "transparent", points: {show: false}});
          bands.push({series: [series.length - 1, series.length - 2], fill: colour + "2e"});
        }
      });
      return {
        width: plotWidth(), height: HEIGHT, padding: [8, RIGHT, 0, 0], legend: {show: false},
        cursor: {sync: {key: "time"}, drag: {x: true, y: false, setScale: false}, y: false, points: {size: 6}},
        scales: {
          x: {time: false, range: () => range},
          y: {range: (_, low, high) => yRange(chart, low, high, showsCapacity)},
        },
        axes: [
          {...axis, size: 22, incrs: STEPS, values: (_, splits) => splits.map(sayTime), space: 70},
          {...axis, size: GUTTER, space: 28, values: (_, splits) => splits.map(value => tick(value, chart.unit))},
        ],
        series, bands,
        hooks: {
          draw: [plot => { if (showsCapacity) drawCapacity(plot, chart.capacity); if (chart.peak) drawPeak(plot, chart); }],
          setSelect: [plot => {
            const {left, width} = plot.select;
            if (width < 4) return;
            plot.setSelect({left: 0, width: 0, top: 0, height: 0}, false);
            setRange(plot.posToVal(left, "x"), plot.posToVal(left + width, "x"));
          }],
        },
      };
    }

    views.push({
      draw() { plot.setData(data(), false); plot.setScale("x", {min: range[0], max: range[1]}); plot.redraw(); },
      build() {
        plot?.destroy();
        plot = new uPlot(options(), data(), frame);
        plot.over.addEventListener("dblclick", () => setRange(...whole));
        if (chart.peak) {
          plot.over.addEventListener("click", event => openPeak(plot, chart, event));
          peaks[chart.name] = () => placeOfPeak(plot, chart);
        }
      },
    });
  }

  function yRange(chart, low, high, showsCapacity) {
    const top = Math.max(high ?? 0, chart.peak ? chart.peak[1] : 0, showsCapacity ? chart.capacity : 0);
    const bottom = Math.min(0, low ?? 0);
    return [bottom < 0 ? bottom * 1.05 : 0, top > 0 ? top * 1.06 : bottom < 0 ? 0 : 1];
  }

  function tick(value, unit) {
    if (unit === "bytes") return scaled(value, "B");
    if (unit === "bytes per second") return scaled(value, "B/s");
    return threeDigits(value);
  }

  function drawCapacity(plot, capacity) {
    const {ctx, bbox} = plot, y = plot.valToPos(capacity, "y", true);
    ctx.save();
    ctx.strokeStyle = css("--red");
    ctx.lineWidth = devicePixelRatio;
    ctx.setLineDash([6 * devicePixelRatio, 4 * devicePixelRatio]);
    ctx.beginPath(); ctx.moveTo(bbox.left, y); ctx.lineTo(bbox.left + bbox.width, y); ctx.stroke();
    ctx.restore();
  }

  function drawPeak(plot, chart) {
    const [at, size] = chart.peak;
    if (at < range[0] || at > range[1]) return;
    const {ctx, bbox} = plot, ratio = devicePixelRatio;
    const x = plot.valToPos(at, "x", true), y = plot.valToPos(size, "y", true);
    ctx.save();
    ctx.fillStyle = css("--text");
    ctx.beginPath(); ctx.arc(x, y, 3.5 * ratio, 0, 7); ctx.fill();
    ctx.font = `${11 * ratio}px system-ui, sans-serif`;
    const words = `peak ${say(size, chart.unit)}`, isRight = x > bbox.left + bbox.width * 0.7;
    ctx.textAlign = isRight ? "right" : "left";
    ctx.textBaseline = y - bbox.top < 16 * ratio ? "top" : "bottom";
    ctx.fillText(words, x + (isRight ? -7 : 7) * ratio, y + (ctx.textBaseline === "top" ? 3 : -2) * ratio);
    ctx.restore();
  }

  function placeOfPeak(plot, chart) {
    const area = plot.over.getBoundingClientRect();
    return [area.left + plot.valToPos(chart.peak[0], "x"), area.top + plot.valToPos(chart.peak[1], "y")];
  }

  function openPeak(plot, chart, event) {
    const [x, y] = placeOfPeak(plot, chart);
    const far = Math.hypot(event.clientX - x, event.clientY - y);
    const details = document.getElementById(`peak-${chart.name}`);
    if (far < 16 && details) { details.open = true; details.querySelector("summary").focus(); }
  }

  // ---- Strips: how busy each device was, and the calls of regions.

  function drawStrips(title, names, note, label, paint) {
    const frame = figure(title, [], note, label);
    const canvas = element("canvas", {class: "strip", role: "img", "aria-label": label});
    frame.append(canvas);
    box.append(frame);
    const draw = () => {
      const ratio = devicePixelRatio, width = plotWidth(), height = names.length * (STRIP + 3);
      canvas.width = width * ratio; canvas.height = height * ratio; canvas.style.height = `${height}px`;
      const context = canvas.getContext("2d");
      context.scale(ratio, ratio);
      context.font = "11px system-ui, sans-serif";
      context.textBaseline = "middle";
      names.forEach((name, number) => {
        const y = number * (STRIP + 3);
        paint(context, number, GUTTER, y, width - GUTTER - RIGHT);
        context.fillStyle = css("--soft");
        context.textAlign = "right";
        context.fillText(fit(context, name, GUTTER - 8), GUTTER - 6, y + STRIP / 2);
      });
    };
    canvas.addEventListener("dblclick", () => setRange(...whole));
    views.push({draw, build: draw});
  }

  function fit(context, name, width) {
    if (context.measureText(name).width <= width) return name;
    const parts = name.split("/");
    let text = parts.length > 1 ? "…/" + parts.at(-1) : name;
    while (text.length > 1 && context.measureText(text + "…").width > width) text = text.slice(0, -1);
    return context.measureText(text).width <= width && text.startsWith("…/") ? text : text + "…";
  }

  function mix(share) {
    const [from, to] = ["--empty", "--deep"].map(name => css(name).match(/[\da-f]{2}/gi).map(part => parseInt(part, 16)));
    return `rgb(${from.map((value, place) => Math.round(value + (to[place] - value) * Math.min(1, Math.max(0, share)))).join(",")})`;
  }

  function drawHeat(chart) {
    const top = chart.capacity ?? Math.max(...chart.lines.map(line => summarize(line, ...whole)?.high ?? 0), 1e-12);
    const note = `light 0, dark ${say(top, chart.unit)}`;
    drawStrips(chart.title, chart.lines.map(line => line.label), note, describe(chart), (context, number, x, y, width) => {
      const points = binPoints(chart.lines[number], ...range, Math.floor(width));
      const scale = width / (range[1] - range[0]);
      points.mean.forEach((value, index) => {
        if (value === null) return;
        const left = Math.max(range[0], points.from[index]), right = Math.min(range[1], points.to[index]);
        context.fillStyle = mix(value / top);
        context.fillRect(x + (left - range[0]) * scale, y, Math.max(1, (right - left) * scale + 0.5), STRIP);
      });
      context.strokeStyle = css("--rule");
      context.strokeRect(x + 0.5, y + 0.5, width - 1, STRIP - 1);
    });
  }

  function drawLanes(lanes) {
    const label = lanes.map(lane => `${lane.path}: ${lane.spans.length} calls${lane.isComplete ? "" : ", the longest of more"}`).join("; ");
    const note = lanes.every(lane => lane.isComplete) ? "" : "of regions with very many calls, the longest";
    drawStrips("Regions", lanes.map(lane => lane.path), note, `Regions over time. ${label}`, (context, number, x, y, width) => {
      const scale = width / (range[1] - range[0]);
      context.fillStyle = css("--empty");
      context.fillRect(x, y, width, STRIP);
      context.fillStyle = css(PALETTE[number % PALETTE.length]);
      for (const [start, end] of lanes[number].spans) {
        if (end < range[0] || start > range[1]) continue;
        const left = Math.max(0, (start - range[0]) * scale), right = Math.min(width, (end - range[0]) * scale);
        context.globalAlpha = 0.75;
        context.fillRect(x + left, y + 2, Math.max(1, right - left - 0.5), STRIP - 4);
      }
      context.globalAlpha = 1;
    });
  }

  // ---- All together.

  if (!box) { document.documentElement.dataset.ready = "0"; return; }
  for (const chart of charts) (chart.kind === "heat" ? drawHeat : drawLines)(chart);
  if (page.lanes.length) drawLanes(page.lanes);
  const build = () => { for (const view of views) view.build(); };
  build();
  showRange();

  box.tabIndex = 0;
  box.setAttribute("role", "group");
  box.setAttribute("aria-label", "Charts. Arrow keys move, plus and minus zoom, Escape shows the whole run.");
  box.addEventListener("keydown", event => {
    const [from, to] = range, length = to - from;
    const moves = {
      ArrowLeft: [from - Math.min(from - whole[0], length / 5), to - Math.min(from - whole[0], length / 5)],
      ArrowRight: [from + Math.min(whole[1] - to, length / 5), to + Math.min(whole[1] - to, length / 5)],
      "+": [from + length / 4, to - length / 4], "=": [from + length / 4, to - length / 4],
      "-": [from - length / 2, to + length / 2], Escape: whole, "0": whole,
    };
    if (moves[event.key]) { setRange(...moves[event.key]); event.preventDefault(); }
  });
  let width = box.clientWidth;
  new ResizeObserver(() => { if (box.clientWidth !== width) { width = box.clientWidth; build(); } }).observe(box);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", build);
  window.gpuTrackerPage = {setRange, range: () => range, findPeak: name => peaks[name]?.(), summarize: (chart, line, from, to) => {
    const found = charts.find(one => one.name === chart)?.lines.find(one => one.label === line);
    return found ? summarize(found, from, to) : null;
  }};
  document.documentElement.dataset.ready = (performance.now() - began).toFixed(0);
})();
