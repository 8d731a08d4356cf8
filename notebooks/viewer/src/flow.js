// The gradient-flow map: how ∂L/∂h_t came to each state. Through the values that attention averages, through its scores, or through
// the next state. A share is ⟨part, g⟩/‖g‖², so the three sum to 1.
import {colours} from './colours.js';
import {countsTokens} from './curves.js';
import {announce, exact, h, printable, s, short, token} from './dom.js';
import {figure, swatch} from './figure.js';
import {shareSets} from './shares.js';
import * as view from './view.js';

export function flows(trace) { return shareSets(trace).slice(0, 12).map((set, at) => flow(trace, set, `flow${at}`)); }

function flow(trace, set, id) {
    const {ways, series} = set, T = series[0].y.length, x = series[0].x;
    const t = () => view.get('t', 0, (i) => Number.isInteger(i) && i >= 0 && i < T);
    const word = (i) => countsTokens(series[0], trace) && trace.tokens[x[i] - 1] !== undefined ? token(trace.tokens[x[i] - 1], 24) : null;
    const share = (way, i) => { const k = ways.indexOf(way); return k < 0 ? 0 : series[k].y[i]; };
    const colour = (way) => colours().series[{value: 0, score: 1, recurrence: 3}[way]];  // told apart by all eyes
    const percent = (v) => `${v < 0 ? '−' : ''}${(100 * Math.abs(v)).toFixed(1)} %`;
    const told = (i) => `t = ${exact(x[i])}${word(i) === null ? '' : ` “${word(i)}”`}: ${ways.map((w) => `${named(w, i)} ${percent(share(w, i))}`).join(', ')}`;
    const named = (way, i) => way === 'recurrence' && i === T - 1 ? 'as the query' : way;  // after the last state none follows
    const move = (i, aloud = true) => { view.set('t', i, 0); if (aloud) announce(told(i)); };

    const said = h('output', {class: 'said'});
    const slider = h('input', {type: 'range', min: 0, max: T - 1, step: 1, value: t(), oninput: (e) => move(+e.target.value)});
    const box = figure({
        id, title: `How ∂L/∂h_t came to each state${set.name ? ', ' + printable(set.name, 40) : ''}`,
        note: 'The gradient flows from the loss L to the context c, and from c to each state straight down (value, score) or from the state after it (recurrence); at the last state, recurrence stands for its part as the query. The width of a line is its share of the gradient at its lower or left end, not a strength: shares of one state sum to 100 %, and a dashed line is a negative share, which the others exceed. Where not all places have room, those around the chosen t are drawn; the bars below hold the same for all t.',
        controls: [h('label', {class: 'wide'}, 't', slider), said],
        legend: () => ways.map((w) => ({label: `through the ${w}`, swatch: () => swatch({colour: colour(w), block: true})})),
        summary: () => `${T} states. ${told(t())}.`,
        data: () => ({
            columns: [{name: 't', number: true}, {name: 'token'}, ...ways.map((w) => ({name: `${w} share`, number: true}))], length: T,
            cell: (i, j) => j === 0 ? x[i] : j === 1 ? word(i) ?? '–' : series[j - 2].y[i],
        }),
        draw(width) {
            const {ink, dim, rule, ground} = colours(), at = t();
            said.textContent = told(at);
            slider.value = at;
            slider.setAttribute('aria-valuetext', told(at));
            const margin = 44, pitch = Math.max(26, Math.min(64, (width - 2 * margin) / T)), count = Math.max(1, Math.min(T, Math.floor((width - 2 * margin) / pitch)));
            const from = Math.max(0, Math.min(T - count, at - Math.floor(count / 2)));
            const X = (i) => margin + (i - from + 0.5) * pitch, row = 190, mid = margin + count * pitch / 2;
            const bars = 330, height = 462;
            const svg = s('svg', {width, height, viewBox: `0 0 ${width} ${height}`, 'font-size': 12, fill: ink});
            const edge = (d, way, i) => {
                const v = share(way, i), on = i === at;
                if (!Number.isFinite(v)) return;
                svg.append(s('path', {d, fill: 'none', stroke: colour(way), 'stroke-width': Math.max(1, Math.min(14, 12 * Math.abs(v))), 'stroke-dasharray': v < 0 ? '5 4' : 'none', opacity: on ? 1 : 0.35, 'data-way': way, 'data-t': i}));
            };
            const order = Array.from({length: count}, (_, k) => from + k).filter((i) => i !== at).concat(at);
            for (const i of order) {
                const a = X(i), pull = (a - mid) * 0.15;
                edge(`M${mid - 3},66 C${mid + pull - 4},120 ${a - 4},120 ${a - 4},${row - 10}`, 'value', i);
                edge(`M${mid + 3},66 C${mid + pull + 8},130 ${a + 6},130 ${a + 6},${row - 10}`, 'score', i);
                if (i + 1 < T) {
                    edge(`M${X(i + 1) - 8},${row + 5} Q${(X(i) + X(i + 1)) / 2},${row + 24} ${X(i) + 8},${row + 5}`, 'recurrence', i);
                    svg.append(s('path', {d: `M${X(i) + 6},${row + 3} l8,2 l-5,6 z`, fill: colour('recurrence'), opacity: i === at ? 1 : 0.5, 'data-t': i}));  // it flows back
                }
                else edge(`M${mid + 12},60 C${a + 26},90 ${a + 26},140 ${a + 8},${row - 6}`, 'recurrence', i);
            }
            const node = (cx, cy, r, name, on) => svg.append(s('circle', {cx, cy, r, fill: ground, stroke: on ? ink : dim, 'stroke-width': on ? 2.5 : 1.2}), s('text', {x: cx, y: cy + 4, 'text-anchor': 'middle'}, name));
            svg.append(s('line', {x1: mid, x2: mid, y1: 26, y2: 44, stroke: dim, 'stroke-width': 3}));
            svg.append(s('path', {d: `M${mid},47 l-6,-9 h12 z`, fill: dim}));
            node(mid, 16, 12, 'L'); node(mid, 56, 12, 'c');
            for (let i = from; i < from + count; ++i) {
                const on = i === at;
                svg.append(s('circle', {cx: X(i), cy: row, r: on ? 10 : 7, fill: on ? ink : ground, stroke: on ? ink : dim, 'stroke-width': 1.5}));
                svg.append(s('text', {x: X(i) + 3, y: row + 30, transform: `rotate(60 ${X(i) + 3} ${row + 30})`, 'font-weight': on ? 'bold' : 'normal', fill: on ? ink : dim}, token(word(i) ?? String(x[i]), 11)));
            }
            // the shares of every t, stacked away from zero
            const W = width - 2 * margin, bw = W / T;
            let high = 1, low = 0;
            for (let i = 0; i < T; ++i) {
                let up = 0, down = 0;
                for (const one of series) if (one.y[i] > 0) up += one.y[i]; else if (one.y[i] < 0) down += one.y[i];
                if (Number.isFinite(up)) high = Math.max(high, up);
                if (Number.isFinite(down)) low = Math.min(low, down);
            }
            const Y = (v) => bars + 100 * (high - v) / (high - low);
            const step = Math.max(1, Math.floor(T / W));  // one bar a pixel at most
            for (let i = 0; i < T; i += step) {
                let up = 0, down = 0;
                ways.forEach((w, k) => {
                    const v = series[k].y[i];
                    if (!Number.isFinite(v) || v === 0) return;
                    const start = v > 0 ? up : down;
                    if (v > 0) up += v; else down += v;
                    svg.append(s('rect', {x: margin + i * bw, width: Math.max(bw * step - (bw > 5 ? 1 : 0), 0.7), y: Math.min(Y(start), Y(start + v)), height: Math.abs(Y(v) - Y(0)), fill: colour(w), 'fill-opacity': i === at ? 1 : 0.75}));
                });
            }
            for (const v of [0, 1]) svg.append(s('line', {x1: margin, x2: width - margin, y1: Y(v), y2: Y(v), stroke: v ? rule : dim}), s('text', {x: margin - 6, y: Y(v) + 4, 'text-anchor': 'end', fill: dim}, v ? '100 %' : '0'));
            svg.append(s('path', {d: `M${margin + (at + 0.5) * bw},${Y(high) - 2} l-5,-8 h10 z`, fill: ink}),
                s('text', {x: margin, y: bars - 18, fill: dim}, '↑ share of ∂L/∂h_t'), s('text', {x: width - margin, y: height - 4, fill: dim, 'text-anchor': 'end'}, `${printable(series[0].xLabel, 20)}, ${short(x[0])} to ${short(x[T - 1])} →`));
            return {
                svg,
                nearest(px, py) {
                    const i = py < bars - 30 ? from + Math.floor((px - margin) / pitch) : Math.floor((px - margin) / bw);
                    return i >= 0 && i < T && (py > bars - 30 || i < from + count) ? i : null;
                },
                step: (key, dx) => Math.max(0, Math.min(T - 1, (key ?? t()) + dx)),
                locate(i) {
                    const inside = i >= from && i < from + count;
                    return {x: inside ? X(i) : margin + (i + 0.5) * bw, y: inside ? row : Y(1), text: [`t = ${exact(x[i])}${word(i) === null ? '' : ` “${word(i)}”`}`, ...ways.map((w) => `${w}: ${exact(share(w, i))}`)].join('\n')};
                },
                choose: (i) => move(i),
            };
        },
    });
    view.listen('t', () => box.refresh());
    return box;
}
