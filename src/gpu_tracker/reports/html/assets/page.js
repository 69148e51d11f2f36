"use strict";
(async () => {
  const began = performance.now();
  // What is shown, and where: a run that goes on changes all of it.
  let charts = [], lanes = [], lanesNote = "", whole = [0, 1], range = whole, box = null, status = null, views = [], peaks = {};
  const GUTTER = 62, RIGHT = 30, HEIGHT = 132, STRIP = 18, FEWEST_PIXELS = 200, MOST_SAID = 3, FEW_POINTS = 25, LABEL = 14, AXIS = 16, SPACE = 70;
  const FONT = "11px system-ui, sans-serif";

  // ---- Columns.

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

  async function read(drawn, packed) {
    const columns = unpack(drawn.columns, await inflate(packed));
    const made = drawn.charts.map(chart => ({
      ...chart,
      lines: chart.lines.map(line => ({
        label: line.label, wholeMean: line.wholeMean, wholeHigh: line.wholeHigh,
        start: columns[line.start], end: columns[line.end], mean: columns[line.mean],
        low: columns[line.low ?? line.mean], high: columns[line.high ?? line.mean],
      })),
    }));
    return {seconds: drawn.seconds, lanes: drawn.lanes, lanesNote: drawn.lanesNote, charts: made};
  }

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

  // Metrics are; an instant among intervals counts for nothing beside them.
  const isOfInstants = line => line.start === line.end;

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
    if (!seconds) return null;
    // Of the whole run, the report knows more than its samples tell.
    const isWhole = from <= whole[0] && to >= whole[1];
    const most = Math.max(high, (isWhole ? line.wholeHigh : null) ?? high);
    // Rounding must not put the mean above the largest value.
    return {mean: Math.min((isWhole ? line.wholeMean : null) ?? sum / seconds, most), high: most};
  }

  // A cell is what was measured from one moment to another: a row, or a bin of equal time.

  const noCells = () => ({from: [], to: [], mean: [], low: [], high: []});

  function pushCell(cells, from, to, mean, low, high) {
    const isKnown = !Number.isNaN(mean);
    cells.from.push(from); cells.to.push(to);
    cells.mean.push(isKnown ? Math.min(mean, high) : null); cells.low.push(isKnown ? low : null); cells.high.push(isKnown ? high : null);
  }

  function pushRows(cells, line, first, last) {
    for (let row = Math.max(0, first); row < Math.min(last, line.end.length); row++) {
      const before = row > first ? line.end[row - 1] : line.start[row];
      if (line.start[row] - before > 1e-3 && line.start[row] < line.end[row]) {
        pushCell(cells, before, line.start[row], NaN);  // nothing was measured
      }
      pushCell(cells, line.start[row], line.end[row], line.mean[row], line.low[row], line.high[row]);
    }
  }

  function binRows(line, [first, last], from, to, count) {
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
    return {width, mean: sum.map((value, bin) => value / seconds[bin]), low, high};
  }

  // With one row before the range and one after it, so that the line does not begin or end inside.
  function cellsOf(line, from, to, count) {
    const [first, last] = rowsOf(line, from, to), cells = noCells();
    if (last - first <= 2 * count) {
      pushRows(cells, line, first - 1, last + 1);
      return cells;
    }
    const bins = binRows(line, [first, last], from, to, count), hasNoGaps = isOfInstants(line);
    if (hasNoGaps) pushRows(cells, line, first - 1, first);
    for (let bin = 0; bin < count; bin++) {
      if (hasNoGaps && Number.isNaN(bins.mean[bin])) continue;  // between two of them nothing is missing
      const edge = from + bin * bins.width;
      pushCell(cells, edge, edge + bins.width, bins.mean[bin], bins.low[bin], bins.high[bin]);
    }
    if (hasNoGaps) pushRows(cells, line, last, last + 1);
    return cells;
  }

  // A cell that is wide enough to be seen is level from its begin to its end: nobody knows of a slope in it.
  function pointsOf(cells, pixelSeconds) {
    const points = {x: [], mean: [], low: [], high: []};
    cells.from.forEach((from, index) => {
      const to = cells.to[index], isLevel = to - from > 2 * pixelSeconds;
      for (const x of isLevel ? [from + pixelSeconds / 2, to - pixelSeconds / 2] : [(from + to) / 2]) {
        points.x.push(x);
        for (const name of ["mean", "low", "high"]) points[name].push(cells[name][index]);
      }
    });
    return points;
  }

  // Each with those before it; where one is unknown, all are.
  function pileUp(columns) {
    let below = columns[0].map(value => value === null ? null : 0);
    return columns.map(column => below = column.map((value, index) => value === null ? null : below[index] + value));
  }

  // Known values without a known neighbour, of which a line shows nothing; undefined stands for no point at all.
  function findLonely(values) {
    const there = [...values.keys()].filter(index => values[index] !== undefined);
    const isKnown = place => place >= 0 && place < there.length && values[there[place]] !== null;
    return there.filter((_, place) => isKnown(place) && !isKnown(place - 1) && !isKnown(place + 1));
  }

  // ---- Words.

  const SCALES = ["", "k", "M", "G", "T", "P"];

  function threeDigits(value) {
    if (value === 0) return "0";
    const size = Math.abs(value);
    return size >= 100 && size < 1e15 ? value.toFixed(0) : String(Number(value.toPrecision(3)));
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
      case "cores": return `${threeDigits(value)} core${threeDigits(value) === "1" ? "" : "s"}`;
      default: return threeDigits(value);
    }
  }

  // With as many digits as tell moments of the range apart.
  const sayMoment = seconds =>
    sayTime(seconds, Math.min(12, Math.max(4, Math.ceil(Math.log10(seconds / (range[1] - range[0]))) + 2)));

  const CLOCK = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];

  // As people say it: `4 min 22 s`, `2 h 5 min`; with more digits down to parts of a second.
  function sayTime(seconds, digits = 4) {
    if (seconds < 60) return `${Number(seconds.toPrecision(digits))} s`;
    const first = CLOCK.findIndex(([length]) => seconds >= length), isFine = digits > 4;
    const parts = isFine ? CLOCK.slice(first) : CLOCK.slice(first, first + 2), step = parts.at(-1)[0];
    let left = isFine ? Number(seconds.toPrecision(digits)) : Math.round(seconds / step) * step;
    const words = parts.map(([length, unit], place) => {
      const whole = place < parts.length - 1 ? Math.floor(left / length) : Number((left / length).toPrecision(digits));
      left -= whole * length;
      return whole > 1e-9 ? `${whole} ${unit}` : "";
    });
    return words.filter(Boolean).join(" ");
  }

  const STEPS = [1e-3, 2e-3, 5e-3, 1e-2, 2e-2, 5e-2, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800,
    3600, 7200, 10800, 21600, 43200, 86400, 172800, 432000, 864000, 1728000, 2592000, 7776000, 31536000];

  // ---- State.

  const endOf = read => Math.max(read.seconds, ...read.charts.flatMap(chart => chart.lines.map(line => line.end.at(-1) ?? 0)), 1e-3);

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
    const parts = charts.filter(chart => chart.kind !== "stack").flatMap(chart => {
      const found = chart.lines.map(line => ({line: line.label, ...summarize(line, ...range)})).filter(one => "mean" in one);
      if (found.length > MOST_SAID) {
        const mean = found.reduce((sum, one) => sum + one.mean, 0) / found.length;
        return [{name: `${short(chart)}, mean of ${found.length}:`, unit: chart.unit, chart: chart.name, line: "",
          mean, high: Math.max(...found.map(one => one.high))}];
      }
      return found.map(one => ({...one, unit: chart.unit, chart: chart.name,
        name: chart.lines.length > 1 ? `${short(chart)} ${one.line}` : short(chart)}));
    });
    status.replaceChildren(
      element("button", {type: "button", disabled: isWhole, onclick: () => setRange(...whole)}, "Whole run"),
      element("b", {}, range.map(sayMoment).join(" – ")),
      ...parts.map(part => element("span", {
        "data-chart": part.chart, "data-line": part.line, "data-mean": part.mean, "data-high": part.high,
      }, `${part.name} ${say(part.mean, part.unit)} (max ${say(part.high, part.unit)})`)),
    );
  }

  function short(chart) {
    return {cpu: "CPU", ram: "RAM", gpu_busy: "busy", gpu_ram: "GPU RAM", power: "power", links: "links", io: "storage"}[chart.name] ?? chart.title;
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
    const said = note ? [...legend, element("span", {}, note)] : legend;
    return element("figure", {class: "chart", "aria-label": label},
      element("figcaption", {}, element("strong", {}, title), element("span", {class: "legend"}, ...said)));
  }

  function key(colour, label, look = "line") {
    return element("span", {class: "key", title: label}, element("i", {class: look, style: `color:var(${colour})`}), label);
  }

  function describe(chart) {
    const parts = chart.lines.map(line => {
      const found = summarize(line, ...whole);
      return found ? `${line.label}: mean ${say(found.mean, chart.unit)}, largest ${say(found.high, chart.unit)}` : `${line.label}: not measured`;
    });
    return `${chart.title}. ${parts.join("; ")}${chart.capacity ? `; of ${say(chart.capacity, chart.unit)}` : ""}`;
  }

  const highsOf = chart => chart.lines.map(line => summarize(line, ...whole)?.high ?? 0);

  function showsCapacityOf(chart) {
    const highs = highsOf(chart);
    const top = chart.kind === "stack" ? highs.reduce((sum, high) => sum + high, 0) : Math.max(...highs, chart.peak?.[1] ?? 0);
    return Boolean(chart.capacity) && top > 0.25 * chart.capacity;
  }

  const hasFewPoints = line => isOfInstants(line) && line.end.length < FEW_POINTS;

  function drawLines(chart) {
    const isSingle = chart.lines.length === 1;
    const legend = isSingle ? [] : chart.lines.map((line, number) => key(PALETTE[number], line.label, chart.kind === "stack" ? "area" : "line"));
    const isStack = chart.kind === "stack", showsCapacity = showsCapacityOf(chart);
    const note = [showsCapacity ? "" : chart.capacityLabel, chart.note].filter(Boolean).join(" · ");
    if (showsCapacity) legend.push(key("--red", chart.capacityLabel, "dash"));
    const frame = figure(chart.title, legend, note, describe(chart));
    box.append(frame);
    let plot = null;

    function data() {
      const count = Math.max(FEWEST_PIXELS, plotWidth() - GUTTER - RIGHT);
      const points = chart.lines.map(line => pointsOf(cellsOf(line, ...range, count), (range[1] - range[0]) / count));
      if (isStack) return [points[0].x, ...pileUp(points.map(found => found.mean))];
      const series = points.map((found, number) => [found.x, ...(number < 2 ? [found.mean, found.low, found.high] : [found.mean])]);
      return series.length === 1 ? series[0] : uPlot.join(series);
    }

    function options() {
      const axis = {stroke: css("--soft"), grid: {stroke: css("--grid"), width: 1}, ticks: {show: false}, font: FONT};
      const series = [{}], bands = [];
      chart.lines.forEach((line, number) => {
        const colour = css(PALETTE[number]);
        if (isStack) {
          series.push({label: line.label, stroke: colour, width: 1, points: {show: false}, ...(number ? {} : {fill: colour + "b0"})});
          if (number) bands.push({series: [number + 1, number], fill: colour + "b0"});
          return;
        }
        const isFew = hasFewPoints(line);
        const points = {show: isFew, size: 4, filter: (plot, index) => isFew ? null : findLonely(plot.data[index])};
        series.push({label: line.label, stroke: colour, width: 1.5, points, spanGaps: false});
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
          {...axis, size: 22, incrs: STEPS, values: (_, splits) => splits.map(sayMoment), space: SPACE},
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
      describe() { frame.setAttribute("aria-label", describe(chart)); },
      drop() { plot?.destroy(); },
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
    const room = chart.peak && chart.peak[1] > top * 0.85 ? 1.2 : 1.06;  // the words of the peak are above it
    return [bottom < 0 ? bottom * 1.05 : 0, top > 0 ? top * room : bottom < 0 ? 0 : 1];
  }

  function tick(value, unit) {
    if (unit === "bytes") return scaled(value, "B");
    if (unit === "bytes per second") return scaled(value, "B/s");
    return unit === "watts" ? `${threeDigits(value)} W` : threeDigits(value);
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
    const words = `peak ${say(size, chart.unit)}`, half = ctx.measureText(words).width / 2;
    ctx.textAlign = "center";
    ctx.textBaseline = "bottom";
    const middle = Math.min(Math.max(x, bbox.left + half), bbox.left + bbox.width - half);
    ctx.fillText(words, middle, y - 5 * ratio);
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

  function drawStrips(title, names, legend, note, label, paint) {
    const frame = figure(title, legend, note, label());
    const canvas = element("canvas", {class: "strip", role: "img", "aria-label": label()});
    frame.append(canvas);
    box.append(frame);
    const draw = () => {
      const ratio = devicePixelRatio, width = plotWidth(), context = canvas.getContext("2d");
      context.font = FONT;
      // Names that do not fit beside their strips are above them.
      const above = names.some(name => context.measureText(name).width > GUTTER - 8) ? LABEL : 0;
      const step = above + STRIP + 3, height = names.length * step + AXIS;
      canvas.width = width * ratio; canvas.height = height * ratio; canvas.style.height = `${height}px`;
      context.scale(ratio, ratio);
      context.font = FONT;
      context.textBaseline = "middle";
      names.forEach((name, number) => {
        const y = number * step + above;
        paint(context, number, GUTTER, y, width - GUTTER - RIGHT);
        context.fillStyle = css("--soft");
        context.textAlign = above ? "left" : "right";
        if (above) context.fillText(fit(context, name, width - GUTTER - RIGHT), GUTTER, y - LABEL / 2);
        else context.fillText(name, GUTTER - 6, y + STRIP / 2);
      });
      drawTimes(context, GUTTER, height - AXIS / 2, width - GUTTER - RIGHT);
    };
    canvas.addEventListener("dblclick", () => setRange(...whole));
    views.push({draw, build: draw, drop() {}, describe() {
      for (const one of [frame, canvas]) one.setAttribute("aria-label", label());
    }});
  }

  // Below the strips, as far apart as under the lines.
  function drawTimes(context, x, y, width) {
    const [from, to] = range, scale = width / (to - from);
    const step = STEPS.find(step => step * scale >= SPACE) ?? STEPS.at(-1);
    for (let moment = Math.ceil(from / step) * step; moment <= to * (1 + 1e-9); moment += step) {
      const words = sayMoment(moment), half = context.measureText(words).width / 2, at = x + (moment - from) * scale;
      context.textAlign = "center";
      context.fillText(words, Math.min(at, x + width + RIGHT - half), y);
    }
  }

  function fit(context, name, width) {
    if (context.measureText(name).width <= width) return name;
    let kept = name.length;  // begin and end stay: of names that begin alike, the end tells more
    const text = () => name.slice(0, Math.ceil(kept / 2)) + "…" + name.slice(name.length - Math.floor(kept / 2));
    while (kept > 2 && context.measureText(text()).width > width) kept--;
    return text();
  }

  function mix(share) {
    const [from, to] = ["--empty", "--deep"].map(name => css(name).match(/[\da-f]{2}/gi).map(part => parseInt(part, 16)));
    return `rgb(${from.map((value, place) => Math.round(value + (to[place] - value) * Math.min(1, Math.max(0, share)))).join(",")})`;
  }

  // A metric may change little, far from zero: its strips begin at its smallest value.
  const lowestOf = line => line.low.reduce((least, value) => value < least ? value : least, Infinity);
  const bottomOf = chart => chart.unit === "number" ? Math.min(...chart.lines.map(lowestOf)) : 0;
  const topOf = chart => chart.capacity ?? Math.max(...highsOf(chart), bottomOf(chart) + 1e-12);
  const edgesOf = chart => [bottomOf(chart) ? say(bottomOf(chart), chart.unit) : "0", say(topOf(chart), chart.unit)];

  // As the strips themselves: what is dark on a light page is bright on a dark one.
  function shades(chart) {
    const [least, most] = edgesOf(chart);
    return element("span", {class: "key"}, least, element("i", {class: "shades", role: "img", "aria-label": "to"}), most);
  }

  function drawHeat(chart) {
    const bottom = bottomOf(chart), top = topOf(chart);
    drawStrips(chart.title, chart.lines.map(line => line.label), [shades(chart)], "", () => describe(chart), (context, number, x, y, width) => {
      const line = chart.lines[number], cells = cellsOf(line, ...range, Math.floor(width));
      const scale = width / (range[1] - range[0]);
      cells.mean.forEach((value, index) => {
        // What was logged holds until it is logged again.
        const to = (isOfInstants(line) ? cells.from[index + 1] : null) ?? cells.to[index];
        if (value === null || to < range[0] || cells.from[index] > range[1]) return;
        const left = Math.round((Math.max(range[0], cells.from[index]) - range[0]) * scale);
        const right = Math.round((Math.min(range[1], to) - range[0]) * scale);
        context.fillStyle = mix((value - bottom) / (top - bottom));
        context.fillRect(x + left, y, Math.max(1, right - left), STRIP);
      });
      context.strokeStyle = css("--rule");
      context.strokeRect(x + 0.5, y + 0.5, width - 1, STRIP - 1);
    });
  }

  function drawLanes() {
    const label = () => "Regions over time. " + lanes.map(lane => `${lane.path}: ${lane.spans.length} ${lane.spans.length === 1 ? "call" : "calls"}${lane.band ? " of more" : ""}`).join("; ");
    drawStrips("Regions", lanes.map(lane => lane.path), [], lanesNote, label, (context, number, x, y, width) => {
      const scale = width / (range[1] - range[0]);
      context.fillStyle = css("--empty");
      context.fillRect(x, y, width, STRIP);
      context.fillStyle = css(PALETTE[number % PALETTE.length]);
      const fill = (start, end, alpha) => {
        if (end < range[0] || start > range[1]) return;
        const left = Math.max(0, (start - range[0]) * scale), right = Math.min(width, (end - range[0]) * scale);
        context.globalAlpha = alpha;
        context.fillRect(x + left, y + 2, Math.max(1, right - left - 0.5), STRIP - 4);
      };
      const {spans, band} = lanes[number];
      if (band) fill(band[0], band[1], 0.1 + 0.35 * band[2]);
      for (const [start, end] of spans) fill(start, end, 0.75);
      context.globalAlpha = 1;
    });
  }

  // ---- All together.

  const build = () => { for (const view of views) view.build(); };

  // What the frames around the drawings depend on.
  const shapeOf = () => JSON.stringify([
    charts.map(chart => [chart.name, chart.title, chart.kind, chart.unit, chart.capacityLabel, chart.note, Boolean(chart.peak),
      chart.kind === "heat" ? edgesOf(chart) : showsCapacityOf(chart), chart.lines.map(line => [line.label, hasFewPoints(line)])]),
    lanes.map(lane => lane.path), lanesNote,
  ]);
  let shape = "";

  // A range that ends where the run did ends there still; any other stays where it is.
  function moveRange(end) {
    const [from, to] = range, before = whole[1];
    whole = [0, end];
    if (from <= 0 && to >= before) range = whole;
    else if (to >= before) range = [from + end - to, end];
    else range = [Math.min(from, end), Math.min(to, end)];
  }

  function adopt(read) {
    const before = charts;
    [charts, lanes, lanesNote] = [read.charts.map(chart => ({...chart})), read.lanes, read.lanesNote];
    moveRange(endOf(read));
    const place = document.getElementById("charts"), wanted = place ? shapeOf() : "";
    if (place !== box || wanted !== shape) return start(place, wanted);
    // The same frames: whatever the pointer is doing in them goes on.
    charts = before.map((chart, number) => Object.assign(chart, charts[number]));
    for (const view of views) { view.draw(); view.describe(); }
    if (box) showRange();
  }

  function start(place, wanted) {
    for (const view of views) view.drop();
    [views, peaks, shape] = [[], {}, wanted];
    if (place !== box) prepare(place);
    if (!box) return;
    box.replaceChildren();
    for (const chart of charts) (chart.kind === "heat" ? drawHeat : drawLines)(chart);
    if (lanes.length) drawLanes();
    build();
    showRange();
  }

  function prepare(place) {
    [box, status] = [place, document.getElementById("range")];
    if (!box) return;
    box.tabIndex = 0;
    box.setAttribute("role", "group");
    box.setAttribute("aria-label", "Charts. Arrow keys move, plus and minus zoom, Escape shows the whole run.");
    box.addEventListener("keydown", press);
    let width = box.clientWidth;
    new ResizeObserver(() => { if (place === box && box.clientWidth !== width) { width = box.clientWidth; build(); } }).observe(box);
  }

  function press(event) {
    const [from, to] = range, length = to - from;
    const moves = {
      ArrowLeft: [from - Math.min(from - whole[0], length / 5), to - Math.min(from - whole[0], length / 5)],
      ArrowRight: [from + Math.min(whole[1] - to, length / 5), to + Math.min(whole[1] - to, length / 5)],
      "+": [from + length / 4, to - length / 4], "=": [from + length / 4, to - length / 4],
      "-": [from - length / 2, to + length / 2], Escape: whole, "0": whole,
    };
    if (moves[event.key]) { setRange(...moves[event.key]); event.preventDefault(); }
  }

  const packedColumns = document.getElementById("columns").textContent;
  let base = await read(JSON.parse(document.getElementById("data").textContent), packedColumns);
  adopt(base);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", build);

  // On paper: one width, no colours of a dark screen, and nothing that has to be opened first.
  let opened = [];
  function show(isPaper) {
    if (isPaper) opened = [...document.querySelectorAll("details:not([open]):not(.whole)")];
    for (const details of opened) details.open = isPaper;
    document.documentElement.classList.toggle("paper", isPaper);
    build();
  }
  addEventListener("beforeprint", () => show(true));
  addEventListener("afterprint", () => show(false));

  window.gpuTrackerPage = {setRange, range: () => range, findPeak: name => peaks[name]?.(), summarize: (chart, line, from, to) => {
    const found = charts.find(one => one.name === chart)?.lines.find(one => one.label === line);
    return found ? summarize(found, from, to) : null;
  }};

  // ---- News of a run that goes on, or of the list of runs: a whole page, or the rows since then.

  const RETRY_MS = 2000, PAUSE_MS = 300;
  const live = document.getElementById("live");
  let source = null, isOver = false, toldAt = 0, wholeAt = 0, work = Promise.resolve(), waiting = 0;

  // As little as possible is replaced: what is open, ticked, focused or selected stays so.
  function morph(shown, wanted) {
    if (shown.nodeType === Node.TEXT_NODE) { if (shown.data !== wanted.data) shown.data = wanted.data; return; }
    if (shown.nodeType !== Node.ELEMENT_NODE || ["range", "charts", "live"].includes(shown.id)) return;
    for (const {name} of [...shown.attributes]) if (name !== "open" && !wanted.hasAttribute(name)) shown.removeAttribute(name);
    for (const {name, value} of wanted.attributes) if (shown.getAttribute(name) !== value) shown.setAttribute(name, value);
    morphChildren(shown, wanted);
  }

  const keyOf = node => node.dataset?.key ?? node.id;
  const isAlike = (one, other) => one && one.nodeName === other.nodeName && keyOf(one) === keyOf(other);

  function morphChildren(shown, wanted) {
    const keyed = new Map([...shown.children].filter(keyOf).map(child => [keyOf(child), child]));
    let at = shown.firstChild;
    for (const child of [...wanted.childNodes]) {
      const match = keyOf(child) ? keyed.get(keyOf(child)) : isAlike(at, child) ? at : null;
      if (!isAlike(match, child)) { shown.insertBefore(document.importNode(child, true), at); continue; }
      if (match === at) at = at.nextSibling; else shown.insertBefore(match, at);
      morph(match, child);
    }
    while (at) { const next = at.nextSibling; at.remove(); at = next; }
  }

  function extend(one, more) {
    const joined = new Float64Array(one.length + more.length);
    joined.set(one); joined.set(more, one.length);
    return joined;
  }

  // Lines that end before the others do until the next whole page: nobody knows yet whether they go on.
  function extendChart(chart, chartsOfRows) {
    const found = chartsOfRows.find(one => one.name === chart.name && one.title === chart.title);
    const more = chart.lines.map(line => found?.lines.find(one => one.label === line.label));
    if (!found || (chart.kind === "stack" && more.includes(undefined))) return chart;
    return {...chart, lines: chart.lines.map((line, number) => {
      if (!more[number]) return line;
      const start = extend(line.start, more[number].start);
      const end = isOfInstants(line) ? start : extend(line.end, more[number].end);
      return {...line, wholeMean: null, start, end, ...Object.fromEntries(["mean", "low", "high"].map(name => [name, extend(line[name], more[number][name])]))};
    })};
  }

  async function takePage(frame) {
    const wanted = new DOMParser().parseFromString(frame.body, "text/html").body;
    base = await read(frame.data, frame.columns);
    document.title = frame.title;
    morphChildren(document.getElementById("page"), wanted);
    adopt(base);
    wholeAt = Date.now();
  }

  async function takeRows(frame) {
    const rows = await read(frame.data, frame.columns);
    adopt({seconds: rows.seconds, lanes: base.lanes, lanesNote: base.lanesNote, charts: base.charts.map(chart => extendChart(chart, rows.charts))});
  }

  function hear(take) {
    return event => {
      const frame = JSON.parse(event.data);
      work = work.then(() => take(frame)).then(() => { toldAt = Date.now(); showState(); });
    };
  }

  const sayAge = at => at && Date.now() - at > 1500 ? `${sayTime(Math.round((Date.now() - at) / 1000))} ago` : "now";

  function showState(words) {
    if (!live) return;
    const isLost = !isOver && source?.readyState !== EventSource.OPEN;
    live.className = isOver ? "over" : isLost ? "lost" : "on";
    live.textContent = words ?? (isOver ? live.textContent : isLost ? "Connection lost; trying again" : toldAt && box ? `Live: charts ${sayAge(toldAt)}, figures ${sayAge(wholeAt)}` : "Live");
  }

  function finish(words) {
    isOver = true;
    source?.close();
    clearTimeout(waiting);
    work = work.then(() => {
      showState(words);
      // A server that was started after the run was deleted has no last page for it.
      const line = document.querySelector("header p");
      if (line?.textContent.includes("still running")) line.textContent = line.textContent.replace("still running", "cut off");
    });
  }

  // A browser asks again by itself if the network fails, but not after an answer such as that of a proxy.
  function connect() {
    clearTimeout(waiting);
    source?.close();
    if (isOver || document.hidden) return;
    source = new EventSource(document.body.dataset.news);
    source.addEventListener("page", hear(takePage));
    source.addEventListener("rows", hear(takeRows));
    source.addEventListener("over", event => finish(JSON.parse(event.data)));
    source.onopen = () => showState();
    source.onerror = () => { showState(); if (source.readyState === EventSource.CLOSED) waiting = setTimeout(connect, RETRY_MS); };
  }

  if (document.body.dataset.news) {
    const form = document.getElementById("search");
    const search = () => {
      const query = new URLSearchParams(new FormData(form)).toString();
      history.replaceState(null, "", `?${query}`);
      document.body.dataset.news = `news?${query}`;
      connect();
    };
    form?.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(search, PAUSE_MS); });
    form?.addEventListener("submit", event => { event.preventDefault(); search(); });
    document.addEventListener("visibilitychange", connect);
    setInterval(() => { if (!isOver) showState(); }, 1000);
    connect();
  }
  document.documentElement.dataset.ready = (performance.now() - began).toFixed(0);
})();
