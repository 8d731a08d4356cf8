// Series: one figure for each pair of axes, all traces over each other.
import * as Plot from '@observablehq/plot';
import {colours, DASHES, SYMBOLS, THEORY_DASH} from './colours.js';
import {exact, h, power, printable, s, short, token} from './dom.js';
import {choice, figure, swatch} from './figure.js';
import {WAY} from './shares.js';
import * as view from './view.js';

const MOST = 40;  // series of one figure; the colours and markers of more could not be told apart
const FIGURES = 40;
export const THEORY = /[\s,:(·–-]*\b(theory|theoretical|bound|predicted|expected|closed form|law)\b\)?/i;
const STEPS = /\b(t|k|τ|lag|tokens?|words?|characters?|steps?|position|state)\b/i;
const BACK = /\b(back|ago|lag|distance)\b/i;  // an axis that counts from the loss
const withUnit = (label, unit) => unit ? `${printable(label)} (${printable(unit, 20)})` : printable(label);

// What a newcomer may not know, by what is on the axes.
function reading({xLabel, yLabel, lines}, log) {
    const away = BACK.test(xLabel) ? 'to the right' : 'to the left';
    if (lines.some((l) => WAY.test(l.series.name))) return 'What part of each gradient came which way. Shares of one place sum to 1; a negative one pulls against the sum.';
    if (/path/i.test(yLabel)) return `Ops between a place and the loss, by the shortest way. The chain rule multiplies a gradient by a Jacobian at each: a line that climbs ${away} is an ever longer product, a level one has the same few factors whatever the distance.`;
    if (/^‖∂L/.test(yLabel) && STEPS.test(xLabel)) return `${printable(yLabel, 20)}: how far the loss L would move if this place moved a little, so how strongly it still speaks to the loss.${/\(h,c\)/.test(yLabel) ? ' (h,c) is all that an LSTM hands on: the state h that it shows and the cell c that it keeps.' : ''}` + (log
        ? ` A straight fall ${away}: each step back multiplies by the same factor below 1. A level line: nothing is lost with distance.` : '');
    return log ? 'Each power of ten has the same height: on a linear x axis a straight line is a constant factor per unit.' : '';
}

// A place on the axis that is a token has its word.
export function wordAt(trace, x) {
    return Number.isInteger(x) && x >= 1 && x <= trace.tokens.length ? trace.tokens[x - 1] : null;
}
export const countsTokens = (series, trace) => /^(token|word|character|source)\b/i.test(series.xLabel) && trace.tokens.length > 0;

function groups(traces) {
    const found = new Map();
    traces.forEach((trace, at) => trace.series.forEach((series, index) => {
        const key = [series.yLabel, series.yUnit, series.xLabel, series.xUnit].join('|');
        if (!found.has(key)) found.set(key, {...series, key, lines: [], left: 0});
        const group = found.get(key);
        if (group.lines.length < MOST) group.lines.push({series, trace, at, id: `${at}.${index}`, name: printable(series.name, 40)});
        else ++group.left;
    }));
    for (const group of found.values()) {  // a theory has the colour of what it is the theory of
        const names = [];
        const base = (line) => line.series.name.replace(THEORY, '').trim();
        for (const line of group.lines) {
            line.theory = THEORY.test(line.series.name);
            if (!line.theory && !names.includes(line.series.name)) names.push(line.series.name);
        }
        for (const line of group.lines) {
            const of = names.indexOf(line.theory ? base(line) : line.series.name);
            line.colour = of < 0 ? names.length : of;
        }
        group.several = new Set(group.lines.map((l) => l.at)).size > 1;
        for (const line of group.lines) line.label = group.several ? `${line.name} · ${printable(line.trace.title, 24)}` : line.name;
    }
    return [...found.values()];
}

const extent = (lines, of, keep) => {
    let low = Infinity, high = -Infinity;
    for (const line of lines) for (const v of line.series[of]) if (keep(v)) { if (v < low) low = v; if (v > high) high = v; }
    return low > high ? null : [low, high];
};

// At most about four points to a pixel column: its first, least, greatest and last.
export function thinned(x, y, columns) {
    const n = x.length, points = [];
    if (n <= 4 * columns) { for (let i = 0; i < n; ++i) points.push([x[i], y[i], i]); return points; }
    for (let c = 0; c < columns; ++c) {
        const from = Math.floor(c * n / columns), to = Math.floor((c + 1) * n / columns);
        let least = from, most = from;
        for (let i = from; i < to; ++i) { if (y[i] < y[least]) least = i; if (y[i] > y[most]) most = i; }
        for (const i of [...new Set([from, least, most, to - 1])].sort((a, b) => a - b)) points.push([x[i], y[i], i]);
    }
    return points;
}

// Of ln y against x: by what one step back multiplies. Denormal numbers have no digits to fit.
function factorBack({x, y, xLabel}) {
    let n = 0, sx = 0, sy = 0, sxx = 0, sxy = 0;
    for (let i = 0; i < x.length; ++i) {
        if (!(y[i] >= 1e-290 && y[i] < Infinity && Number.isFinite(x[i]))) continue;
        const l = Math.log(y[i]);
        ++n; sx += x[i]; sy += l; sxx += x[i] * x[i]; sxy += x[i] * l;
    }
    const spread = n * sxx - sx * sx;
    const slope = (n * sxy - sx * sy) / spread;
    return n >= 3 && spread > 0 ? Math.exp(BACK.test(xLabel) ? slope : -slope) : null;
}

const logTicks = ([low, high], most) => {
    const from = Math.ceil(Math.log10(low) - 1e-9), to = Math.floor(Math.log10(high) + 1e-9);
    if (to - from < 1) return null;
    const step = Math.ceil((to - from) / most), ticks = [];
    for (let e = Math.ceil(from / step) * step; e <= to; e += step) ticks.push(+`1e${e}`);
    return ticks;
};
const tickText = (v) => { const e = Math.round(Math.log10(v)); return +`1e${e}` === v ? power(e) : short(v); };

export function curves(traces) {
    const all = groups(traces), left = all.length - FIGURES;
    return [...all.slice(0, FIGURES).map((group, at) => curve(group, `curve${at}`)),
        left > 0 && h('p', {class: 'note'}, `${left.toLocaleString('en')} more pairs of axes are not drawn.`)];
}

function curve(group, id) {
    const {lines} = group, K = (what) => `${what}:${group.key}`;
    const positive = (v) => v > 0 && v < Infinity;
    const span = extent(lines, 'y', positive), whole = extent(lines, 'y', Number.isFinite);
    const decades = /^‖∂L/.test(group.yLabel) ? 10 : 100;  // a gradient's norm moves by factors
    const natural = span && whole[0] > 0 && span[1] / span[0] > decades ? 'log' : 'linear';
    // Lengths and sizes that grow by factors, as 10, 100, 1000, stand on a log axis.
    const grows = ({series: {x}}) => x.length > 2 && x[0] > 0 && x.every((v, i) => i === 0 || v >= 1.5 * x[i - 1]);
    const naturalX = lines.every(grows) ? 'log' : 'linear';
    const axis = (of) => view.get(K(of), of === 'y' ? natural : naturalX, ['log', 'linear']);
    const names = lines[0].series.labels, places = Array.from(lines[0].series.x);
    // Named places without an order: no line joins them.
    const named = names.length > 0 && places.length <= 24 && lines.every(({series}) => series.labels.join() === names.join() && series.x.every((v, i) => v === places[i]));
    const shown = () => lines.filter((l) => !l.trace.off && view.get(`off:${group.key}:${l.id}`, false) === false);
    const look = (line) => {
        const {series, ink} = colours();
        return {
            colour: line.colour < 7 * 7 ? series[line.colour % series.length] : ink,
            symbol: SYMBOLS[(line.colour + Math.floor(line.colour / SYMBOLS.length)) % SYMBOLS.length],
            dash: line.theory ? THEORY_DASH : DASHES[line.at % DASHES.length], hollow: line.at > 0,
        };
    };
    const marker = (line) => {
        const {colour, symbol, hollow} = look(line);
        if (line.theory) return null;
        const glyph = Plot.plot({axis: null, width: 14, height: 14, margin: 0, x: {domain: [0, 1], range: [0, 14]}, y: {domain: [0, 1], range: [14, 0]},
            marks: [Plot.dot([[0.5, 0.5]], {symbol, r: 3.5, fill: hollow ? colours().ground : colour, stroke: colour})]}).querySelector('[aria-label="dot"]');
        glyph.setAttribute('transform', 'translate(6,0)');
        return glyph;
    };
    const chooser = (of) => choice(`${of} axis`, [['linear', 'linear'], ['log', 'log']], axis(of), (v) => { view.set(K(of), v, of === 'y' ? natural : naturalX); box.refresh(); });
    const backwards = /^‖∂L/.test(group.yLabel) ? STEPS.test(group.xLabel) : BACK.test(group.xLabel) && /^‖|norm|length/i.test(group.yLabel);

    let left = '';
    const box = figure({
        id, title: `${withUnit(group.yLabel, group.yUnit)} against ${withUnit(group.xLabel, group.xUnit)}`,
        note: () => [reading(group, axis('y') === 'log'), lines.some((l) => l.theory) && 'Dotted lines are what theory expects.', left, group.left ? `${group.left} more series are not drawn.` : ''].filter(Boolean).join(' '),
        controls: [chooser('y'), chooser('x')],
        legend: () => lines.map((line) => {
            const factor = backwards && axis('y') === 'log' && axis('x') === 'linear' ? factorBack(line.series) : null;
            const hidden = !shown().includes(line);
            return {
                label: line.label + (factor ? ` (× ${factor.toPrecision(4)} a step back)` : ''), off: hidden,
                swatch: () => swatch({...look(line), shape: marker(line)}),
                input: h('input', {type: 'checkbox', checked: !hidden, disabled: line.trace.off ? true : null, onchange: (e) => {
                    view.set(`off:${group.key}:${line.id}`, !e.target.checked, false);
                    const at = lines.indexOf(line);
                    box.refresh();
                    box.querySelectorAll('.legend input')[at].focus();
                }}),
            };
        }),
        summary: () => `${shown().length} series: ${shown().slice(0, 8).map((l) => {
            const {x, y} = l.series, n = y.length;
            return n ? `${l.label}, from ${short(y[0])} at ${short(x[0])} to ${short(y[n - 1])} at ${short(x[n - 1])}` : `${l.label}, empty`;
        }).join('; ')}.`,
        data: () => rows(group, shown()),
        draw(width) {
            const here = shown(), logY = axis('y') === 'log', logX = axis('x') === 'log';
            const okX = logX ? positive : Number.isFinite, okY = logY ? positive : Number.isFinite;
            const ex = extent(here, 'x', okX), ey = extent(here, 'y', okY);
            let missing = 0;
            for (const l of here) for (let i = 0; i < l.series.x.length; ++i) if (!okX(l.series.x[i]) || !okY(l.series.y[i])) ++missing;
            left = missing ? `${missing.toLocaleString('en')} value${missing > 1 ? 's are' : ' is'} not drawn (${logX || logY ? 'no logarithm, or ' : ''}not finite): see the table.` : '';
            if (!ex || !ey) left = 'There is nothing that these axes can show.' + (left && ' ' + left);
            const height = Math.round(Math.max(240, Math.min(400, width * 0.42)));
            const {rule, dim} = colours();
            if (logY && ey && ey[1] / ey[0] > 1e3) { ey[0] = +`1e${Math.floor(Math.log10(ey[0]) + 1e-9)}`; ey[1] = +`1e${Math.ceil(Math.log10(ey[1]) - 1e-9)}`; }
            const yTicks = logY && ey ? logTicks(ey, height / 34) : null, xTicks = logX && ex ? logTicks(ex, width / 70) : null;
            const own = (log, ticks, e, room) => ({
                type: log ? 'log' : 'linear', domain: e ?? (log ? [1, 10] : [0, 1]), nice: !log,
                ticks: ticks ?? (log ? 4 : Math.max(2, Math.round(width / room))), ...(log ? {tickFormat: tickText} : {}),
            });
            const [x, y] = [own(logX, xTicks, ex, 90), own(logY, yTicks, ey, 90)];
            if (!logX) x.nice = false;
            if (!logY) { y.ticks = 6; y.tickFormat = (v) => short(v); x.tickFormat = logX ? tickText : (v) => short(v); }
            if (!logX) x.tickFormat = (v) => short(v);
            const whole = !logX && ex && here.every((l) => l.series.x.every(Number.isInteger));
            if (whole && ex[1] - ex[0] < x.ticks) x.ticks = Array.from({length: ex[1] - ex[0] + 1}, (_, i) => ex[0] + i);
            if (named && !logX) { x.ticks = places; x.tickFormat = (v) => token(names[places.indexOf(v)] ?? '', Math.max(4, Math.floor(width / places.length / 8))); x.domain = [ex[0] - 0.5, ex[1] + 0.5]; }
            if (!logY && ey && ey[0] === ey[1]) y.domain = [ey[0] - (Math.abs(ey[0]) || 1), ey[0] + (Math.abs(ey[0]) || 1)];
            if (!logY && ey && ey[0] >= 0 && ey[0] < 0.5 * ey[1]) y.domain = [0, ey[1]];
            if (!logX && ex && ex[0] === ex[1]) x.domain = [ex[0] - 1, ex[0] + 1];
            if (logY && ey && ey[0] === ey[1]) y.domain = [ey[0] / 10, ey[0] * 10];
            if (logX && ex && ex[0] === ex[1]) x.domain = [ex[0] / 10, ex[0] * 10];
            const marks = [Plot.gridY({ticks: y.ticks, stroke: rule, strokeOpacity: 1}), Plot.axisY({ticks: y.ticks, tickFormat: y.tickFormat, label: null, color: dim}), Plot.axisX({ticks: x.ticks, tickFormat: x.tickFormat, label: null, color: dim})];
            if (!logY && ey && ey[0] < 0 && ey[1] > 0) marks.push(Plot.ruleY([0], {stroke: dim}));
            here.forEach((line, order) => {
                const {colour, symbol, dash, hollow} = look(line), {series} = line;
                const points = thinned(series.x, series.y, Math.max(50, width)).map(([a, b, i]) => [okX(a) ? a : NaN, okY(b) ? b : NaN, i]);
                if (!named) marks.push(Plot.line(points, {stroke: colour, strokeWidth: line.theory ? 2.2 : 1.8, strokeDasharray: dash, strokeLinejoin: 'round'}));
                if (line.theory) return;
                const every = points.length <= 12 ? 1 : points.length / 8;
                const dots = points.filter((_, i) => points.length <= 12 || Math.floor((i - order * every / 7) / every) !== Math.floor((i - 1 - order * every / 7) / every));
                marks.push(Plot.dot(dots, {symbol, r: 3.5, fill: hollow ? colours().ground : colour, stroke: colour}));
            });
            const svg = Plot.plot({width, height, marginLeft: 62, marginRight: 14, marginTop: 30, marginBottom: 42, x, y, marks, style: {background: 'none', color: 'currentColor', fontSize: '12px', fontFamily: 'inherit', overflow: 'visible'}});
            svg.append(
                s('text', {x: 4, y: 14, 'font-size': 12, fill: dim, 'text-anchor': 'start'}, `↑ ${withUnit(group.yLabel, group.yUnit)}${logY ? ', log' : ''}`),
                s('text', {x: width - 14, y: height - 6, 'font-size': 12, fill: dim, 'text-anchor': 'end'}, `${withUnit(group.xLabel, group.xUnit)}${logX ? ', log' : ''} →`));
            const sx = svg.scale('x'), sy = svg.scale('y');
            return {svg, ...cursor(here, (v) => sx.apply(v), (v) => sy.apply(v), (x, y) => okX(x) && okY(y))};
        },
    });
    return box;
}

function described(line, i) {
    const {series, trace} = line, word = countsTokens(series, trace) ? wordAt(trace, series.x[i]) : null;
    const label = series.labels[i] ?? word;
    return `${line.label}\n${printable(series.xLabel, 20)} ${exact(series.x[i])}${label === null || label === undefined ? '' : ` “${token(label, 24)}”`}\n${printable(series.yLabel, 30)} = ${exact(series.y[i])}${series.yUnit ? ' ' + printable(series.yUnit, 12) : ''}`;
}

function cursor(lines, px, py, ok) {
    const far = (l, i, x, y) => (px(l.series.x[i]) - x) ** 2 + (py(l.series.y[i]) - y) ** 2;
    const seek = (l, i, by) => { const n = l.series.x.length; for (; i >= 0 && i < n; i += by) if (ok(l.series.x[i], l.series.y[i])) return i; return -1; };
    const closest = (l, x) => {  // in x alone
        let best = -1, least = Infinity;
        for (let i = 0; i < l.series.x.length; ++i) {
            const d = Math.abs(px(l.series.x[i]) - x);
            if (d < least && ok(l.series.x[i], l.series.y[i])) { best = i; least = d; }
        }
        return best;
    };
    return {
        nearest(x, y) {
            let best = null, least = Infinity;
            lines.forEach((l, k) => {
                for (let i = 0; i < l.series.x.length; ++i) {
                    if (!ok(l.series.x[i], l.series.y[i])) continue;
                    const d = far(l, i, x, y);
                    if (d < least) { least = d; best = {k, i}; }
                }
            });
            return least < 60 * 60 ? best : null;
        },
        step(key, dx, dy) {
            if (!key) { const k = lines.findIndex((l) => seek(l, 0, 1) >= 0); return k < 0 ? null : {k, i: seek(lines[k], 0, 1)}; }
            if (dx) {
                const l = lines[key.k], n = l.series.x.length, wanted = Math.max(0, Math.min(n - 1, key.i + dx));
                const i = seek(l, wanted, Math.sign(dx));
                const found = i >= 0 ? i : seek(l, wanted, -Math.sign(dx));
                return found >= 0 ? {k: key.k, i: found} : key;
            }
            const x = px(lines[key.k].series.x[key.i]);
            for (let k = key.k + dy; k >= 0 && k < lines.length; k += dy) { const i = closest(lines[k], x); if (i >= 0) return {k, i}; }
            return key;
        },
        locate: ({k, i}) => ({x: px(lines[k].series.x[i]), y: py(lines[k].series.y[i]), text: described(lines[k], i)}),
    };
}

// A row a place where all series share their x; else a row a point.
function rows(group, lines) {
    const first = lines[0]?.series;
    const x = {name: withUnit(group.xLabel, group.xUnit), number: true};
    if (lines.length && lines.every(({series}) => series.x.length === first.x.length && series.x.every((v, i) => Object.is(v, first.x[i])))) {
        const words = countsTokens(first, lines[0].trace);
        const place = words ? [x, {name: 'token'}] : [x];
        return {
            columns: [...place, ...lines.map((l) => ({name: l.label, number: true}))], length: first.x.length,
            cell: (i, j) => j === 0 ? first.x[i] : words && j === 1 ? token(wordAt(lines[0].trace, first.x[i]) ?? '') : lines[j - place.length].series.y[i],
        };
    }
    const starts = [0];
    for (const l of lines) starts.push(starts.at(-1) + l.series.x.length);
    const find = (i) => { let k = 0; while (starts[k + 1] <= i) ++k; return [lines[k], i - starts[k]]; };
    return {
        columns: [{name: 'series'}, x, {name: withUnit(group.yLabel, group.yUnit), number: true}], length: starts.at(-1),
        cell(i, j) { const [l, at] = find(i); return j === 0 ? l.label : j === 1 ? l.series.x[at] : l.series.y[at]; },
    };
}
