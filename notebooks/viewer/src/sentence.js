// The text, and under each of its tokens a bar for each chosen series: how strongly it still speaks.
import {colours} from './colours.js';
import {countsTokens, THEORY} from './curves.js';
import {exact, power, printable, s, short, textWidth, token, h} from './dom.js';
import {choice, figure, swatch} from './figure.js';
import * as view from './view.js';

const PAGE = 400, TALL = 56;

export function sentence(trace) {
    const found = new Map();
    for (const series of trace.series) {
        if (!countsTokens(series, trace) || !series.x.length || THEORY.test(series.name)) continue;
        if (!series.x.every((x) => Number.isInteger(x) && x >= 1 && x <= trace.tokens.length)) continue;
        const group = found.get(series.yLabel) ?? [];
        if (group.length < 8) group.push(series);
        found.set(series.yLabel, group);
    }
    if (!found.size) return null;
    const names = [...found.keys()], what = () => view.get('sentence', names[0], names);
    const chosen = () => {
        const group = found.get(what()), start = group[0], partner = group.find((g) => g.name === `${start.name}+attention`) ?? group[1];
        return group.filter((g) => view.get(`sentence:${g.name}`, g === start || g === partner));
    };
    const natural = (group) => { const [low, high] = ends(group, (v) => v > 0); return group.every((g) => g.y.every((v) => v >= 0)) && high / low > 30 ? 'log' : 'linear'; };
    const scale = () => view.get('sentence-axis', natural(found.get(what())), ['log', 'linear']);
    const ends = (group, keep) => {
        let low = Infinity, high = -Infinity;
        for (const g of group) for (const v of g.y) if (Number.isFinite(v) && keep(v)) { low = Math.min(low, v); high = Math.max(high, v); }
        return low > high ? [0, 0] : [low, high];
    };
    const span = (group, log) => {  // the smallest has a bar, too: only 0 has none
        const [low, high] = ends(group, log ? (v) => v > 0 : () => true);
        return [log && low > 0 ? +`1e${Math.ceil(Math.log10(low)) - 1}` || low : low, high];
    };
    const colour = (series) => colours().series[found.get(what()).indexOf(series) % 7];
    const pages = Math.ceil(trace.tokens.length / PAGE);
    const page = () => view.get('sentence-page', 0, (p) => Number.isInteger(p) && p >= 0 && p < pages);
    const redo = (key, otherwise) => (v) => { view.set(key, v, otherwise); box.refresh(); };

    const controls = [];
    if (names.length > 1) controls.push(choice('bars show', names.map((n) => [n, printable(n)]), what(), redo('sentence', names[0])));
    controls.push(choice('bar height', [['linear', 'linear'], ['log', 'log']], scale(), (v) => redo('sentence-axis', natural(found.get(what())))(v)));
    if (pages > 1) controls.push(choice('tokens', Array.from({length: Math.min(pages, 2000)}, (_, p) => [String(p), `${p * PAGE + 1} to ${Math.min(trace.tokens.length, (p + 1) * PAGE)}`]), String(page()), (v) => redo('sentence-page', 0)(+v)));

    const at = (series) => (series.places ??= new Map(Array.from(series.x, (x, i) => [x - 1, i])));
    const box = figure({
        id: 'sentence', title: `${printable(what())} under each token`, controls,
        note: () => {
            const [low, high] = span(chosen(), scale() === 'log');
            return scale() === 'log' ? `Bar height is logarithmic, from ${short(low)} (no bar) to ${short(high)} (full); a faint line stands at each ${stride(low, high) === 1 ? 'power' : `${stride(low, high)} powers`} of ten.`
                : `Bar height is linear, from 0 to ${short(Math.max(Math.abs(low), Math.abs(high)))}; a hollow bar is negative.`;
        },
        legend: () => found.get(what()).map((series) => ({
            label: printable(series.name, 40), off: !chosen().includes(series), swatch: () => swatch({colour: colour(series), block: true}),
            input: h('input', {type: 'checkbox', checked: chosen().includes(series), onchange: (e) => {
                const group = found.get(what()), partner = group.find((g) => g.name === `${group[0].name}+attention`) ?? group[1];
                view.set(`sentence:${series.name}`, e.target.checked, series === group[0] || series === partner);
                box.refresh();
                box.querySelectorAll('.legend input')[group.indexOf(series)].focus();
            }}),
        })),
        summary: () => `${trace.tokens.length} tokens with bars of ${chosen().map((c) => printable(c.name, 40)).join(', ') || 'nothing'}.`,
        data: () => {
            const here = chosen();
            return {
                columns: [{name: 'place', number: true}, {name: 'token'}, ...here.map((c) => ({name: printable(c.name, 40), number: true}))], length: trace.tokens.length,
                cell: (i, j) => j === 0 ? i + 1 : j === 1 ? token(trace.tokens[i], 40) : at(here[j - 2]).has(i) ? here[j - 2].y[at(here[j - 2]).get(i)] : '–',
            };
        },
        draw(width) {
            const here = chosen(), log = scale() === 'log', {ink, rule, dim} = colours();
            const [low, high] = span(here, log), most = Math.max(Math.abs(low), Math.abs(high)) || 1;
            const size = (v) => !Number.isFinite(v) ? (v > 0 ? TALL : 0) : log ? (v > 0 ? TALL * (high > low ? Math.log(v / low) / Math.log(high / low) : 1) : 0) : TALL * Math.abs(v) / most;
            const bar = here.length > 4 ? 4 : 8, group = here.length * (bar + 1), gutter = 40;
            const svg = s('svg', {width, 'font-size': 12, fill: ink}), hits = [], lines = [[]];
            let x = gutter;
            for (let i = page() * PAGE; i < Math.min(trace.tokens.length, (page() + 1) * PAGE); ++i) {
                const text = token(trace.tokens[i], 18), wide = Math.max(textWidth(text), group) + 10;
                if (x + wide > width && lines.at(-1).length) { lines.push([]); x = gutter; }
                lines.at(-1).push({i, text, x, wide});
                x += wide;
            }
            let y = 4;
            for (const line of lines) {
                const base = y + 24 + TALL;
                if (log && high > low) {
                    const step = stride(low, high);
                    for (let e = Math.ceil(Math.log10(low) / step) * step; e <= Math.log10(high) + 1e-9; e += step) {
                        const at = base - size(+`1e${e}`);
                        svg.append(s('line', {x1: gutter - 4, x2: width, y1: at, y2: at, stroke: rule}), s('text', {x: gutter - 8, y: at + 3, 'font-size': 9, fill: dim, 'text-anchor': 'end'}, power(e)));
                    }
                } else svg.append(s('line', {x1: gutter - 4, x2: width, y1: base - TALL, y2: base - TALL, stroke: rule}), s('text', {x: gutter - 8, y: base - TALL + 3, 'font-size': 9, fill: dim, 'text-anchor': 'end'}, short(+most.toPrecision(2))));
                svg.append(s('line', {x1: gutter - 4, x2: width, y1: base + 0.5, y2: base + 0.5, stroke: dim}));
                for (const {i, text, x, wide} of line) {
                    svg.append(s('text', {x: x + wide / 2, y: y + 13, 'text-anchor': 'middle'}, text));
                    here.forEach((series, k) => {
                        const place = at(series).get(i);
                        if (place === undefined) return;
                        const v = series.y[place], tall = size(v), left = x + (wide - group) / 2 + k * (bar + 1), c = colour(series);
                        svg.append(s('rect', {x: left, y: base - tall, width: bar, height: Math.max(tall, 0), fill: v < 0 ? 'none' : c, stroke: v < 0 ? c : 'none'}));
                        hits.push({x: left + bar / 2, y: base - tall, left, bar, top: y, base, i, k, text: `${i + 1} “${token(trace.tokens[i], 24)}”\n${printable(series.name, 40)}\n${printable(series.yLabel, 30)} = ${exact(v)}`});
                    });
                }
                y = base + 16;
            }
            svg.setAttribute('height', y);
            svg.setAttribute('viewBox', `0 0 ${width} ${y}`);
            return {
                svg,
                nearest(px, py) {
                    let best = null, least = 30;
                    hits.forEach((hit, at) => { if (py >= hit.top && py <= hit.base + 8) { const d = Math.abs(hit.x - px); if (d < least) { least = d; best = at; } } });
                    return best;
                },
                step(key, dx, dy) {
                    if (!hits.length) return null;
                    if (key === null) return 0;
                    if (!dx) { const to = key + dy; return hits[to]?.i === hits[key].i ? to : key; }
                    return Math.max(0, Math.min(hits.length - 1, key + (Number.isFinite(dx) ? dx * here.length : dx)));
                },
                locate: (key) => hits[key],
            };
        },
    });
    return box;
}

const stride = (low, high) => Math.max(1, Math.ceil(Math.log10(high / low) / 4));
