// A matrix as a heat map: attention weights, and the shares of gradients that series hold.
import {along, colours, css, isDark} from './colours.js';
import {exact, h, printable, s, short, textWidth, token} from './dom.js';
import {choice, figure} from './figure.js';
import {shareSets} from './shares.js';
import * as view from './view.js';

const MOST = 800;  // pixels of a picture's side; larger matrices are pooled

// The matrices of a trace, and those made of its share series.
export function matrices(trace) {
    return [...trace.matrices, ...shareSets(trace).map((set) => ({
        name: `gradient shares${set.name ? ', ' + set.name : ''}`, rowLabel: 'way', columnLabel: set.series[0].xLabel,
        rows: set.ways, columns: Array.from(set.series[0].x, (x) => trace.tokens[x - 1] ?? String(x)),
        shape: [set.series.length, set.series[0].y.length], data: Float64Array.from(set.series.flatMap((one) => [...one.y])),
    }))];
}

export function heat(trace) {
    const all = matrices(trace).filter((m) => m.data.length);
    if (!all.length) return null;
    const which = () => view.get('heat', 0, (i) => Number.isInteger(i) && i >= 0 && i < all.length);
    const m = () => all[which()];
    const range = (matrix) => matrix.range ??= (() => {
        let low = Infinity, high = -Infinity, least = Infinity;
        for (const v of matrix.data) if (Number.isFinite(v)) { if (v < low) low = v; if (v > high) high = v; if (v > 0 && v < least) least = v; }
        return low > high ? {low: 0, high: 1, least: 1} : {low, high, least};
    })();
    const scale = () => range(m()).low < 0 ? 'linear' : view.get('heat-scale', 'linear', ['linear', 'log']);
    const painter = () => {
        const {low, high, least} = range(m()), {ramp, ends} = colours();
        if (low < 0) { const most = Math.max(-low, high); return {low: -most, high: most, stops: ends, place: (v) => 0.5 + v / most / 2}; }
        if (scale() === 'log') return {low: least, high, stops: ramp, place: (v) => v <= 0 ? 0 : high > least ? Math.log(v / least) / Math.log(high / least) : 1};
        return {low: 0, high: high || 1, stops: ramp, place: (v) => v / (high || 1)};
    };
    const rowName = (i) => m().rows[i] ?? String(i + 1), columnName = (j) => m().columns[j] ?? String(j + 1);
    const controls = [];
    if (all.length > 1) controls.push(choice('matrix', all.slice(0, 500).map((one, i) => [String(i), printable(one.name, 40)]), String(which()), (v) => { view.set('heat', +v, 0); box.retitle(); }));
    controls.push(choice('colours', [['linear', 'linear'], ['log', 'log']], scale(), (v) => { view.set('heat-scale', v, 'linear'); box.refresh(); }));
    const title = () => `${printable(m().name)}${m().rowLabel || m().columnLabel ? `: ${printable(m().rowLabel || 'row', 20)} × ${printable(m().columnLabel || 'column', 20)}` : ''}`;

    const box = figure({
        id: 'heat', title: title(), controls,
        note: () => range(m()).low < 0 ? 'Blue is positive, orange negative, the ground colour is zero.' : 'The stronger the colour against the ground, the larger the value.',
        summary: () => {
            const {data, shape} = m();
            let at = 0;
            for (let i = 1; i < data.length; ++i) if (data[i] > data[at] || Number.isNaN(data[at])) at = i;
            return `${shape[0]} rows and ${shape[1]} columns; the largest value, ${short(data[at])}, is at row ${token(rowName(Math.floor(at / shape[1])))}, column ${token(columnName(at % shape[1]))}.`;
        },
        data: () => {
            const {shape: [R, C], data} = m();
            if (C <= 60) return {columns: [{name: printable(m().rowLabel || 'row', 20)}, ...Array.from({length: C}, (_, j) => ({name: token(columnName(j)), number: true}))], length: R,
                cell: (i, j) => j ? data[i * C + j - 1] : token(rowName(i), 40)};
            return {columns: [{name: 'row'}, {name: 'column'}, {name: 'value', number: true}], length: R * C,
                cell: (i, j) => j === 0 ? token(rowName(Math.floor(i / C))) : j === 1 ? `${i % C + 1} ${token(columnName(i % C))}` : data[i]};
        },
        draw(width) {
            const {shape: [R, C], data} = m(), {ink, dim, ground} = colours(), paint = painter();
            const labels = Array.from({length: Math.min(R, 1000)}, (_, i) => token(rowName(i), width < 500 ? 8 : 16));
            const left = Math.min(130, 26 + Math.max(...labels.map((l) => textWidth(l, 11)))), right = 12;
            const cellWide = Math.min(44, (width - left - right) / C);
            const cellTall = R * cellWide > 1.5 * width ? Math.max(1.5 * width / R, 0.2) : Math.min(32, Math.max(cellWide, R <= 40 ? 16 : 0.2));
            const wide = C * cellWide, tall = R * cellTall;
            const names = Array.from({length: Math.min(C, 1000)}, (_, j) => token(columnName(j), 12));
            const turned = names.some((n) => textWidth(n, 11) > cellWide - 2);
            const top = 22 + (turned ? Math.min(90, 8 + Math.max(...names.map((n) => textWidth(n, 11)))) : 16);
            const height = Math.ceil(top + tall + 54);
            const svg = s('svg', {width, height, viewBox: `0 0 ${width} ${height}`, 'font-size': 11, fill: ink});
            svg.append(s('image', {x: left, y: top, width: wide, height: tall, href: picture(m(), paint, ground), preserveAspectRatio: 'none', style: 'image-rendering: pixelated'}));
            if (m().columnLabel) svg.append(s('text', {x: left, y: 12, fill: dim}, printable(m().columnLabel, 40) + ' →'));
            if (m().rowLabel) svg.append(s('text', {x: 10, y: top, fill: dim, transform: `rotate(90 10 ${top})`}, printable(m().rowLabel, 30) + ' →'));
            const everyRow = Math.ceil(12 / cellTall), everyColumn = Math.ceil((turned ? 12 : 1) / cellWide);
            for (let i = 0; i < R; i += everyRow) svg.append(s('text', {x: left - 5, y: top + (i + 0.5) * cellTall + 4, 'text-anchor': 'end'}, labels[i] ?? token(rowName(i), 12)));
            for (let j = 0; j < C; j += everyColumn) {
                const x = left + (j + 0.5) * cellWide, text = names[j] ?? token(columnName(j), 12);
                svg.append(turned ? s('text', {x: x + 4, y: top - 5, transform: `rotate(-90 ${x + 4} ${top - 5})`}, text) : s('text', {x, y: top - 6, 'text-anchor': 'middle'}, text));
            }
            if (cellWide >= 36 && cellTall >= 16 && R * C <= 400)
                for (let i = 0; i < R; ++i) for (let j = 0; j < C; ++j) {
                    const v = data[i * C + j], on = along(paint.stops, Number.isFinite(v) ? paint.place(v) : 0.5);
                    const light = 0.299 * on[0] + 0.587 * on[1] + 0.114 * on[2] > 140;
                    svg.append(s('text', {x: left + (j + 0.5) * cellWide, y: top + (i + 0.5) * cellTall + 4, 'text-anchor': 'middle', 'font-size': 10, fill: light ? '#10151a' : '#fff'}, brief(v)));
                }
            const y = top + tall + 16, bar = Math.min(200, width - left - 40);  // the key
            for (let i = 0; i < 40; ++i) svg.append(s('rect', {x: left + i * bar / 40, y, width: bar / 40 + 0.5, height: 10, fill: css(along(paint.stops, i / 39))}));
            svg.append(s('text', {x: left, y: y + 24, fill: dim}, short(+paint.low.toPrecision(3))), s('text', {x: left + bar, y: y + 24, fill: dim, 'text-anchor': 'end'}, short(+paint.high.toPrecision(3)) + (scale() === 'log' ? ', log' : '')));
            const clamp = (v, n) => Math.max(0, Math.min(n - 1, v));
            return {
                svg,
                nearest: (x, y) => x >= left && x < left + wide && y >= top && y < top + tall ? {i: Math.floor((y - top) / cellTall), j: Math.floor((x - left) / cellWide)} : null,
                step: (key, dx, dy) => key ? {i: clamp(key.i + dy, R), j: clamp(key.j + dx, C)} : {i: 0, j: 0},
                locate: ({i, j}) => ({x: left + (j + 0.5) * cellWide, y: top + (i + 0.5) * cellTall, text: `row ${i + 1} “${token(rowName(i), 24)}”\ncolumn ${j + 1} “${token(columnName(j), 24)}”\n${exact(data[i * C + j])}`}),
            };
        },
    });
    box.retitle = () => { box.querySelector('h3').textContent = title(); box.refresh(); };
    return box;
}

const brief = (v) => !Number.isFinite(v) ? '·' : Number.isInteger(v) ? String(v) : v.toFixed(2);

// One pixel a value, or the value farthest from zero of each block of a large matrix.
function picture({shape: [R, C], data}, paint, ground) {
    const rows = Math.min(R, MOST), columns = Math.min(C, MOST);
    const canvas = h('canvas', {width: columns, height: rows}), context = canvas.getContext('2d');
    const image = context.createImageData(columns, rows), pooled = new Float64Array(rows * columns).fill(NaN);
    for (let i = 0; i < R; ++i) {
        const row = Math.floor(i * rows / R) * columns;
        for (let j = 0; j < C; ++j) {
            const at = row + Math.floor(j * columns / C), v = data[i * C + j];
            if (Number.isNaN(pooled[at]) || Math.abs(v) > Math.abs(pooled[at])) pooled[at] = v;
        }
    }
    const steps = Array.from({length: 256}, (_, k) => along(paint.stops, k / 255)), nan = isDark() ? [90, 90, 90] : [160, 160, 160];
    pooled.forEach((v, at) => {
        const place = paint.place(v), colour = Number.isNaN(place) ? nan : steps[Math.round(255 * Math.max(0, Math.min(1, place)))];
        image.data.set([...colour, 255], 4 * at);
    });
    context.putImageData(image, 0, 0);
    return canvas.toDataURL();
}
