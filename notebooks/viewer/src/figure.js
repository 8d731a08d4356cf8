// What every figure has: a title, a way to read it, controls, a legend, the picture with a cursor that mouse and arrow keys
// move, the same as a table, and export. A figure is drawn when it comes near the screen.
import {colours, themes, isDark} from './colours.js';
import {announce, download, fileName, FONT, h, s, textWidth} from './dom.js';
import {table} from './table.js';

const all = new Set();
export function redrawAll() { for (const figure of all) figure.redraw(); }
export function dropFigures() { for (const figure of all) figure.leave(); all.clear(); }

// draw(width) → {svg, nearest(x, y) → key or null, step(key or null, dx, dy) → key, locate(key) → {x, y, text}}
// legend() → [{label, swatch() → svg element, input?}]; summary() → what a screen reader hears; data() → what table() takes.
export function figure({id, title, note, controls = [], legend = () => [], draw, summary, data}) {
    let drawn = null, key = null, visible = false, width = 0;
    const legendBox = h('div', {class: 'legend', role: 'group', 'aria-label': 'legend'});
    const picture = h('div', {class: 'picture', tabindex: 0, role: 'img', id: `${id}-picture`});
    const tip = h('div', {class: 'tip', 'aria-hidden': 'true', hidden: true});
    const tableBox = h('details', {class: 'data'}, h('summary', null, 'Table'));
    const noteBox = h('p', {class: 'note'});
    const box = h('figure', {id, class: 'figure', 'data-figure': title},
        h('figcaption', null, h('h3', null, title), noteBox),
        controls.length ? h('div', {class: 'controls'}, controls) : null,
        legendBox, h('div', {class: 'stage'}, picture, tip),
        h('div', {class: 'below'}, tableBox, h('span', {class: 'export'},
            h('button', {type: 'button', 'aria-label': `${title}: save as SVG`, onclick: () => saveSvg()}, 'SVG'),
            h('button', {type: 'button', 'aria-label': `${title}: save as PNG`, onclick: () => savePng()}, 'PNG'))));

    const drawLegend = () => legendBox.replaceChildren(...legend().map(({label, swatch, input}) =>
        input ? h('label', null, input, swatch(), label) : h('span', null, swatch(), label)));

    function redraw() {
        const now = Math.floor(picture.clientWidth);
        if (!visible || !now) return;
        width = now;
        drawn = draw(width);
        noteBox.textContent = typeof note === 'function' ? note() : note ?? '';
        drawn.svg.setAttribute('aria-hidden', 'true');
        picture.replaceChildren(drawn.svg);
        picture.setAttribute('aria-label', `${title}. ${summary()} The arrow keys move over the values; the table below holds them all.`);
        if (tableBox.open) fillTable();
        point(null);
    }
    function fillTable() { tableBox.replaceChildren(tableBox.firstElementChild, table({caption: title, ...data()})); }
    tableBox.addEventListener('toggle', () => tableBox.open && visible && fillTable());

    function point(to, aloud = false) {
        key = to;
        drawn?.svg.querySelector('.cursor')?.remove();
        tip.hidden = key === null;
        if (key === null) return;
        const {x, y, text} = drawn.locate(key);
        drawn.svg.append(s('circle', {class: 'cursor', cx: x, cy: y, r: 6, fill: 'none', stroke: colours().ink, 'stroke-width': 2}));
        tip.replaceChildren(...text.split('\n').map((line) => h('div', null, line)));
        if (aloud) announce(text);
        const room = picture.getBoundingClientRect(), size = tip.getBoundingClientRect();
        const left = x + 12 + size.width > room.width ? x - 12 - size.width : x + 12;
        tip.style.left = `${Math.max(0, Math.min(left, room.width - size.width))}px`;
        tip.style.top = `${y - size.height - 10 < -30 ? y + 14 : y - size.height - 10}px`;
    }
    const place = (event) => { const at = picture.getBoundingClientRect(); return [event.clientX - at.left, event.clientY - at.top]; };
    picture.addEventListener('pointermove', (event) => drawn && point(drawn.nearest(...place(event))));
    picture.addEventListener('pointerdown', (event) => { if (drawn) { point(drawn.nearest(...place(event))); if (key !== null) drawn.choose?.(key); } });
    picture.addEventListener('pointerleave', () => point(null));
    picture.addEventListener('blur', () => point(null));
    const MOVES = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1], PageUp: [-10, 0], PageDown: [10, 0], Home: [-Infinity, 0], End: [Infinity, 0]};
    picture.addEventListener('keydown', (event) => {
        if (!drawn || event.ctrlKey || event.metaKey || event.altKey) return;
        if (event.key === 'Escape') return point(null);
        if (event.key === 'Enter' && key !== null && drawn.choose) { event.preventDefault(); return drawn.choose(key); }
        const move = MOVES[event.key];
        if (!move) return;
        event.preventDefault();
        const to = drawn.step(key, ...move);
        if (to !== null) point(to, true);
    });

    // The figure alone: title, legend and picture in one SVG that needs nothing else.
    function alone() {
        const {ground, ink} = colours(), plot = drawn.svg.cloneNode(true);
        plot.querySelector('.cursor')?.remove();
        const height = +drawn.svg.getAttribute('height'), margin = 16, rows = [];
        let x = margin, y = margin + 36;
        for (const {label, swatch, off} of legend()) {
            if (off) continue;
            const wide = 34 + textWidth(label, 12) + 14;
            if (x > margin && x + wide > width + margin) { x = margin; y += 20; }
            rows.push(s('g', {transform: `translate(${x},${y - 11})`}, swatch(), s('text', {x: 30, y: 11, 'font-size': 12}, label)));
            x += wide;
        }
        const top = rows.length ? y + 14 : margin + 24;
        plot.setAttribute('x', margin);
        plot.setAttribute('y', top);
        const [w, tall] = [width + 2 * margin, top + height + margin];
        return s('svg', {xmlns: 'http://www.w3.org/2000/svg', width: w, height: tall, viewBox: `0 0 ${w} ${tall}`, 'font-family': FONT, fill: ink, color: ink, role: 'img', 'aria-label': title},
            s('title', null, title), s('rect', {width: w, height: tall, fill: ground}),
            s('text', {x: margin, y: margin + 12, 'font-size': 15, 'font-weight': 'bold'}, title), rows, plot);
    }
    const text = () => { force(); return new XMLSerializer().serializeToString(alone()); };
    const saveSvg = () => download(fileName(title) + '.svg', [text()], 'image/svg+xml');
    async function savePng() {
        const image = new Image(), source = text();
        image.src = 'data:image/svg+xml;charset=utf-8,' + encodeURIComponent(source);
        await image.decode();
        const canvas = h('canvas', {width: 2 * image.width, height: 2 * image.height}), context = canvas.getContext('2d');
        context.scale(2, 2);
        context.drawImage(image, 0, 0);
        canvas.toBlob((blob) => download(fileName(title) + '.png', [blob], 'image/png'));
    }

    function force() { if (!visible) { visible = true; redraw(); } }
    const near = new IntersectionObserver((entries) => { if (entries.some((e) => e.isIntersecting)) force(); }, {rootMargin: '300px'});
    const size = new ResizeObserver(() => { if (visible && Math.floor(picture.clientWidth) !== width) redraw(); });
    near.observe(box);
    size.observe(picture);
    addEventListener('beforeprint', force);
    all.add({redraw() { drawLegend(); redraw(); }, leave() { near.disconnect(); size.disconnect(); removeEventListener('beforeprint', force); }});
    drawLegend();
    box.svg = text;  // for the gallery and the tests
    box.refresh = () => { drawLegend(); redraw(); };
    return box;
}

// A short line with a marker, as the legend and an exported picture show it.
export function swatch({colour, dash = 'none', shape = null, block = false}) {
    if (block) return s('svg', {width: 26, height: 14, class: 'swatch'}, s('rect', {x: 5, y: 1, width: 16, height: 12, fill: colour}));
    return s('svg', {width: 26, height: 14, class: 'swatch'},
        s('line', {x1: 1, x2: 25, y1: 7, y2: 7, stroke: colour, 'stroke-width': 2, 'stroke-dasharray': dash}), shape);
}

export function choice(label, options, value, onchange) {
    return h('label', null, label, h('select', {onchange: (e) => onchange(e.target.value)},
        options.map(([v, name]) => h('option', {value: v, selected: v === value}, name))));
}
