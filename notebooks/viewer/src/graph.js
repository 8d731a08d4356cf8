// The tape as it was recorded: from left to right in the order of its records, in height the ops from each to the loss.
import * as Plot from '@observablehq/plot';
import {along, colours, css} from './colours.js';
import {announce, exact, h, printable, s, short} from './dom.js';
import {choice, figure, swatch} from './figure.js';
import {table} from './table.js';
import * as view from './view.js';

// A number of paths by its log₂: as it is, if a number holds it.
const howMany = (log2) => log2 < 50 ? Math.round(2 ** log2).toLocaleString('en') : `2^${short(+log2.toPrecision(5))}`;

const MOST = 4000;  // records in one picture; of more, those around the chosen one

export function graph(trace) {
    const g = trace.graph;
    if (!g || !g.records.length) return null;
    const n = g.records.length;
    const height = () => view.get('graph', 'shortest', ['shortest', 'longest']);
    const farthest = () => { let best = 0; for (let i = 0; i < n; ++i) if (g.longest[i] > g.longest[best]) best = i; return best; };
    const start = farthest(), at = () => view.get('record', start, (i) => Number.isInteger(i) && i >= 0 && i < n);
    const lost = g.shortest.filter((d) => d < 0).length;
    const name = (i) => `${i} ${printable(g.records[i].op, 30)}${g.records[i].label ? ` “${printable(g.records[i].label, 24)}”` : ''}`;
    const paths = (i) => { const c = g.log2Count[i]; return c === -Infinity ? 'no path' : `${howMany(c)} path${c ? 's' : ''}`; };
    const told = (i) => {
        const r = g.records[i];
        return [`record ${name(i)}, shape (${r.shape.join(',')})`, g.shortest[i] < 0 ? 'no path to the loss' : `${g.shortest[i]} ops to the loss, the longest way ${g.longest[i]}, ${paths(i)}`,
            r.norm === undefined ? '' : `‖y‖ = ${short(r.norm)}`, r.barNorm === undefined ? '' : `‖ȳ‖ = ${short(r.barNorm)}`].filter(Boolean).join('; ');
    };
    const move = (i) => { view.set('record', i, start); announce(told(i)); box.refresh(); };
    const way = (i) => { const next = height() === 'shortest' ? g.next : g.nextLongest, all = [i]; while (next[all.at(-1)] >= 0) all.push(next[all.at(-1)]); return all; };
    let low = Infinity, high = 0;
    for (const r of g.records) if (r.barNorm > 0 && r.barNorm < Infinity) { low = Math.min(low, r.barNorm); high = Math.max(high, r.barNorm); }
    const strength = (v) => !(v > 0) ? 0 : high > low ? Math.log(v / low) / Math.log(high / low) : 1;

    const said = h('output', {class: 'said'});
    const slider = h('input', {type: 'range', min: 0, max: n - 1, step: 1, value: at(), oninput: (e) => move(+e.target.value)});
    const box = figure({
        id: 'graph', title: `The recorded tape${g.name ? ' of ' + printable(g.name, 40) : ''}, and how far each record is from the loss`,
        note: () => `Each mark is a record, in the order in which the tape was written; its height is the number of ops from it to the loss. Strong colour: a strong gradient ‖ȳ‖, from ${short(high)} down to ${short(low === Infinity ? 0 : low)}, on a log scale. The thick line is the ${height()} path from the chosen record to the loss.` +
            (lost ? ` ${lost.toLocaleString('en')} ${lost > 1 ? 'records have' : 'record has'} no path to the loss and ${lost > 1 ? 'are' : 'is'} not drawn.` : '') +
            (n > MOST ? ` Of ${n.toLocaleString('en')} records the ${MOST.toLocaleString('en')} around the chosen one are drawn.` : ''),
        controls: [choice('height', [['shortest', 'shortest path'], ['longest', 'longest path']], height(), (v) => { view.set('graph', v, 'shortest'); box.refresh(); }),
            h('label', {class: 'wide'}, 'record', slider), said],
        legend: () => [
            {label: 'leaf or parameter', swatch: () => swatch({colour: 'transparent', shape: s('rect', {x: 9, y: 3, width: 8, height: 8, fill: colours().series[5]})})},
            {label: 'op', swatch: () => swatch({colour: 'transparent', shape: s('circle', {cx: 13, cy: 7, r: 4, fill: colours().series[5]})})},
            {label: `${height()} path to the loss`, swatch: () => swatch({colour: colours().series[1]})}],
        summary: () => `${n} records. Chosen: ${told(at())}.`,
        data: () => ({
            columns: [{name: 'record', number: true}, {name: 'op'}, {name: 'label'}, {name: 'shape'}, {name: 'inputs'}, {name: 'ops to the loss, shortest', number: true}, {name: 'longest', number: true}, {name: 'log₂ of paths', number: true}, {name: '‖y‖', number: true}, {name: '‖ȳ‖', number: true}], length: n,
            cell(i, j) {
                const r = g.records[i];
                return [i, r.op, r.label || '–', `(${r.shape.join(',')})`, r.inputs.length > 12 ? `${r.inputs.slice(0, 12).join(' ')} … ${r.inputs.length} inputs` : r.inputs.join(' ') || '–', g.shortest[i] < 0 ? 'none' : g.shortest[i], g.longest[i] < 0 ? 'none' : g.longest[i], g.log2Count[i], r.norm ?? '–', r.barNorm ?? '–'][j];
            },
        }),
        draw(width) {
            const depth = height() === 'shortest' ? g.shortest : g.longest, {ramp, series, dim, rule, ink} = colours(), chosen = at();
            said.textContent = told(chosen);
            slider.value = chosen;
            slider.setAttribute('aria-valuetext', told(chosen));
            const from = n > MOST ? Math.max(0, Math.min(n - MOST, chosen - MOST / 2)) : 0, to = Math.min(n, from + MOST);
            const here = [];
            for (let i = from; i < to; ++i) if (depth[i] >= 0) here.push(i);
            const edges = [];
            for (const i of here) for (const input of g.records[i].inputs) if (input >= from && depth[input] >= 0 && edges.length < 4 * MOST) edges.push([input, i]);
            const path = way(chosen).filter((i) => i >= from && i < to), isLeaf = (i) => !g.records[i].inputs.length;
            const colour = (i) => css(along(ramp, 0.25 + 0.75 * strength(g.records[i].barNorm)));
            const tall = Math.round(Math.max(260, Math.min(420, width * 0.42)));
            const svg = Plot.plot({
                width, height: tall, marginLeft: 46, marginRight: 14, marginTop: 26, marginBottom: 42, x: {domain: [from, Math.max(to - 1, from + 1)], label: null, ticks: Math.max(2, Math.round(width / 100)), tickFormat: (v) => Number.isInteger(v) ? String(v) : ''},
                y: {domain: [0, Math.max(1, ...here.map((i) => depth[i]))], nice: true, ticks: Math.min(10, Math.max(1, ...here.map((i) => depth[i]))), label: null, tickFormat: (v) => Number.isInteger(v) ? String(v) : ''},
                style: {background: 'none', color: 'currentColor', fontSize: '12px', fontFamily: 'inherit', overflow: 'visible'},
                marks: [
                    Plot.gridY({stroke: rule, strokeOpacity: 1}),
                    Plot.link(edges, {x1: (e) => e[0], y1: (e) => depth[e[0]], x2: (e) => e[1], y2: (e) => depth[e[1]], stroke: dim, strokeOpacity: 0.28, strokeWidth: 0.8}),
                    Plot.line(path, {x: (i) => i, y: (i) => depth[i], stroke: series[1], strokeWidth: 3}),
                    Plot.dot(here.filter((i) => !isLeaf(i)), {x: (i) => i, y: (i) => depth[i], r: n > 800 ? 2 : 3.2, fill: colour, stroke: dim, strokeWidth: 0.4}),
                    Plot.dot(here.filter(isLeaf), {x: (i) => i, y: (i) => depth[i], r: n > 800 ? 2.4 : 3.6, symbol: 'square', fill: colour, stroke: dim, strokeWidth: 0.4}),
                    Plot.dot(path.slice(0, 1), {x: (i) => i, y: (i) => depth[i], r: 7, stroke: series[1], strokeWidth: 2.5}),
                ],
            });
            const X = (i) => svg.scale('x').apply(i), Y = (i) => svg.scale('y').apply(depth[i]);
            svg.append(s('text', {x: 4, y: 12, 'font-size': 12, fill: dim, 'text-anchor': 'start'}, `↑ ops to the loss, ${height()} path`), s('text', {x: width - 14, y: tall - 4, 'font-size': 12, fill: dim, 'text-anchor': 'end'}, 'record, in order of creation →'));
            if (path.length) svg.append(s('text', {x: Math.min(width - 120, X(path[0]) + 10), y: Math.max(38, Y(path[0]) - 8), 'font-size': 12, 'text-anchor': 'start', fill: ink, stroke: colours().ground, 'stroke-width': 3, 'paint-order': 'stroke'}, `${printable(g.records[path[0]].op, 14)}: ${depth[path[0]]} ops`));
            return {
                svg,
                nearest(x, y) {
                    let best = null, least = 900;
                    for (const i of here) { const d = (X(i) - x) ** 2 + (Y(i) - y) ** 2; if (d < least) { least = d; best = i; } }
                    return best;
                },
                step(key, dx, dy) {
                    if (!here.length) return null;
                    const k = key === null ? here.findIndex((i) => i >= chosen) : here.indexOf(key) + (dx || -dy);
                    return here[Math.max(0, Math.min(here.length - 1, k))];
                },
                locate: (i) => ({x: X(i), y: Y(i), text: told(i).replaceAll('; ', '\n')}),
                choose: move,
            };
        },
    });
    return box;
}

export function pathTable(trace) {
    if (!trace.paths.length) return null;
    return table({
        caption: 'Paths on the tape, in ops', length: trace.paths.length,
        columns: [{name: 'from'}, {name: 'to'}, {name: 'shortest (ops)', number: true}, {name: 'longest (ops)', number: true}, {name: 'number of paths', number: true}],
        cell: (i, j) => { const p = trace.paths[i]; return [printable(p.from, 40), printable(p.to, 40), p.reached ? p.shortest : 'no path', p.reached ? p.longest : 'no path', p.reached ? howMany(p.log2Count) : '–'][j]; },
    });
}
