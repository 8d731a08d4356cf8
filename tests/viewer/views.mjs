// Each view shows the data of its trace: values are read back from the page and compared.
import {readFileSync} from 'node:fs';
import {browser} from '../../notebooks/viewer/browser.mjs';
import {check, date, drawAll, empty, equal, holds, near, PAGE, quiet, report, series, source, tableOf, tour, visit, work, write} from './harness.mjs';

const groups = new Map();
for (const s of tour.series) { const key = [s.y_label, s.x_label].join('|'); groups.set(key, [...(groups.get(key) ?? []), s]); }
const T = tour.tokens.length - 1;
const affine = (xs, ys, by, what) => {  // y = a + b x for all
    const lo = xs.indexOf(Math.min(...xs)), hi = xs.indexOf(Math.max(...xs)), b = (ys[hi] - ys[lo]) / (xs[hi] - xs[lo]);
    xs.forEach((x, i) => near(ys[i], ys[lo] + b * (x - xs[lo]), by, `${what}[${i}]`));
    return b;
};
const points = (d) => [...d.matchAll(/[ML]?(-?[\d.]+),(-?[\d.]+)/g)].map((m) => [+m[1], +m[2]]);
const lines = (page, id) => page.$$eval(`#${id} .picture [aria-label="line"] path`, (all) => all.map((p) => p.getAttribute('d')));
const hashOf = (page) => page.evaluate(() => location.hash);

export async function views(context) {
    const page = await visit(context, 'file://' + work + '/tour/00_tour.html');  // the report that the lesson itself wrote
    await drawAll(page);

    await check('a report that a lesson wrote opens: its title, its verdict', async () => {
        equal(await page.textContent('#title'), '00 tour');
        equal(await page.textContent('#verdict'), `${tour.checks.filter((c) => c.pass).length} of ${tour.checks.length} checks hold`);
        equal(await page.$$eval('nav a', (all) => all.map((a) => a.textContent)), ['Curves', 'Word by word', 'Gradient flow', 'Heat maps', 'Tape and paths', 'Checks', 'This run', 'Words']);
    });
    await check('curves: every value of every series stands in the tables, to the last digit', async () => {
        equal(await page.$$eval('#curves figure', (all) => all.length), groups.size);
        for (const [at, all] of [...groups.values()].entries()) {
            const {head, rows} = await tableOf(page, `#curve${at}`);
            equal(head, ['token' + (all[0].x_unit ? ` (${all[0].x_unit})` : ''), 'token', ...all.map((s) => s.name)]);
            equal(rows, all[0].x.map((x, i) => [String(x), tour.tokens[i], ...all.map((s) => String(s.y[i]))]));
        }
    });
    await check('curves: the lines are where the values are, on the log axis', async () => {
        const all = [...groups.values()][0], drawn = await lines(page, 'curve0');
        equal(drawn.length, all.length);
        all.forEach((s, k) => {
            const at = points(drawn[k]);
            equal(at.length, s.x.length);
            affine(s.x, at.map((p) => p[0]), 0.02, `x of ${s.name}`);
            affine(s.y.map(Math.log10), at.map((p) => p[1]), 0.02, `y of ${s.name}`);
        });
    });
    await check('curves: the legend tells by what a step back multiplies, as the lesson does', async () => {
        const text = await page.textContent('#curve0 .legend'), printed = readFileSync(work + '/tour.txt', 'utf8');
        const rate = /^RNN +× ([\d.]+)/m.exec(printed)[1];
        holds(text.includes(`RNN (× ${rate} a step back)`), `${rate} is not in ${text}`);
    });
    await check('curves: a theory is dashed, has the colour of what it is the theory of, and no markers', async () => {
        const [of, theory] = await page.$$eval('#curve0 .picture [aria-label="line"]', (all) => [all[0], all.at(-1)].map((g) => [g.getAttribute('stroke'), g.getAttribute('stroke-dasharray')]));
        equal(of[0], theory[0]);
        holds(theory[1] && theory[1] !== 'none' && (!of[1] || of[1] === 'none'), `${of} ${theory}`);
        equal(await page.$$eval('#curve0 .picture [aria-label="dot"]', (all) => all.length), [...groups.values()][0].length - 1);
    });
    await check('curves: linear and log axes, by the controls', async () => {
        await page.selectOption('#curve0 .controls label:has-text("y axis") select', 'linear');
        const all = [...groups.values()][0], at = points((await lines(page, 'curve0'))[2]);
        affine(all[2].y, at.map((p) => p[1]), 0.02, 'linear y');
        await page.selectOption('#curve0 .controls label:has-text("x axis") select', 'log');
        affine(all[2].x.map(Math.log), points((await lines(page, 'curve0'))[2]).map((p) => p[0]), 0.02, 'log x');
        await page.selectOption('#curve0 .controls label:has-text("x axis") select', 'linear');
        await page.selectOption('#curve0 .controls label:has-text("y axis") select', 'log');
    });
    await check('curves: the mouse over a point shows its exact values', async () => {
        const all = [...groups.values()][0], at = points((await lines(page, 'curve0'))[0]);
        await page.hover('#curve0 .picture', {position: {x: at[7][0], y: at[7][1]}});
        const tip = await page.textContent('#curve0 .tip');
        for (const part of ['RNN', `token 8 “${tour.tokens[7]}”`, String(all[0].y[7])]) holds(tip.includes(part), `${part} is not in ${tip}`);
    });
    await check('words: a bar under each token, its height the logarithm of the norm', async () => {
        const words = await page.$$eval('#sentence .picture text[text-anchor="middle"]', (all) => all.map((t) => t.textContent));
        equal(words, tour.tokens);
        const tall = await page.$$eval('#sentence .picture rect', (all) => all.map((r) => +r.getAttribute('height')));
        const [rnn, attention] = ['RNN', 'RNN+attention'].map((n) => tour.series.find((s) => s.name === n));
        equal(tall.length, 2 * T);
        affine([...rnn.y, ...attention.y].map(Math.log), [...rnn.y.map((_, i) => tall[2 * i]), ...rnn.y.map((_, i) => tall[2 * i + 1])], 1e-6, 'height');
        const {rows} = await tableOf(page, '#sentence');
        equal(rows[4], ['5', tour.tokens[4], String(rnn.y[4]), String(attention.y[4])]);
    });
    const share = (way) => tour.series.find((s) => s.name === `RNN+attention ${way} share`).y;
    await check('flow: line widths and bars are the shares; the table holds them', async () => {
        const widths = await page.$$eval('#flow0 path[data-way]', (all) => all.map((p) => [p.dataset.way, +p.dataset.t, +p.getAttribute('stroke-width'), p.getAttribute('stroke-dasharray')]));
        holds(widths.length >= 90, `${widths.length} lines`);
        for (const [way, t, width, dash] of widths) {
            near(width, Math.max(1, 12 * Math.abs(share(way)[t])), 1e-9, `${way} ${t}`);
            equal(dash !== 'none', share(way)[t] < 0);
        }
        const {rows} = await tableOf(page, '#flow0');
        equal(rows, tour.series[0].x.map((x, i) => [String(x), tour.tokens[i], ...['value', 'score', 'recurrence'].map((w) => String(share(w)[i]))]));
    });
    await check('flow: the slider over t, by the keyboard', async () => {
        await page.focus('#flow0 input[type=range]');
        for (let i = 0; i < 5; ++i) await page.keyboard.press('ArrowRight');
        const said = await page.textContent('#flow0 output');
        equal(said, `t = 6 “${tour.tokens[5]}”: ` + ['value', 'score', 'recurrence'].map((w) => `${w} ${share(w)[5] < 0 ? '−' : ''}${(100 * Math.abs(share(w)[5])).toFixed(1)} %`).join(', '));
        equal(await page.getAttribute('#flow0 input[type=range]', 'aria-valuetext'), said);
        equal(await page.$$eval('#flow0 path[opacity="1"]', (all) => [...new Set(all.map((p) => p.dataset.t))]), ['5']);
        await page.keyboard.press('End');
        holds((await page.textContent('#flow0 output')).startsWith(`t = ${T} `), 'End goes to the last');
        await page.keyboard.press('Home');
    });
    await check('heat maps: attention weights with their tokens; gradient shares; by mouse and keyboard', async () => {
        const alpha = tour.matrices[0];
        const {head, rows} = await tableOf(page, '#heat');
        equal(head.slice(1), tour.tokens.slice(0, T));
        equal(rows, [[alpha.rows[0], ...alpha.data.map(String)]]);
        await page.selectOption('#heat .controls label:has-text("matrix") select', {label: 'gradient shares, RNN+attention'});
        const shares = await tableOf(page, '#heat');
        equal(shares.rows, ['value', 'score', 'recurrence'].map((w) => [w, ...share(w).map(String)]));
        await page.focus('#heat .picture');
        for (const key of ['ArrowRight', 'ArrowDown', 'ArrowRight', 'ArrowRight']) await page.keyboard.press(key);
        equal(await page.textContent('#announcer'), `row 2 “score”\ncolumn 3 “${tour.tokens[2]}”\n${share('score')[2]}`);
        const cell = await page.$eval('#heat image', (e) => ({x: +e.getAttribute('x') + 3, y: +e.getAttribute('y') + 3}));
        await page.hover('#heat .picture', {position: cell});
        holds((await page.textContent('#heat .tip')).includes(String(share('value')[0])), 'the exact value under the mouse');
        await page.selectOption('#heat .controls label:has-text("matrix") select', '0');
    });
    await check('what was run stands at the top, and each word of the page is explained', async () => {
        const about = await page.textContent('#about');
        for (const words of ['Gradients look back', tour.tokens[0], 'L = ', 'nothing has been learned']) holds(about.includes(words), words);
        equal(await page.$$eval('#words-used dt', (all) => all.length), await page.$$eval('#words-used dd', (all) => all.length));
        holds((await page.textContent('#words-used')).includes('∂L/∂y'), 'ȳ');
    });
    await check('flow, heat maps and tape say which model they show', async () => {
        holds((await page.textContent('#flow0 h3')).endsWith(', RNN+attention'), 'flow');
        holds((await page.textContent('#heat h3')).includes(', RNN+attention'), 'heat maps');
        holds((await page.textContent('#graph h3')).startsWith('The recorded tape of RNN+attention'), 'tape');
    });
    await check('tape: distances to the loss are those of an independent search, and of the lesson', async () => {
        const {records} = tour.graph, n = records.length, far = Array(n).fill(null), longest = Array(n).fill(null);
        far[n - 1] = 0;
        for (let queue = [n - 1]; queue.length;) { const i = queue.shift(); for (const j of records[i].inputs) if (j >= 0 && far[j] === null) { far[j] = far[i] + 1; queue.push(j); } }
        longest[n - 1] = 0;
        for (let i = n - 1; i >= 0; --i) if (longest[i] !== null) for (const j of records[i].inputs) if (j >= 0) longest[j] = Math.max(longest[j] ?? 0, longest[i] + 1);
        const {rows} = await tableOf(page, '#graph');
        equal(rows.length, n);
        rows.forEach((row, i) => {
            equal(row.slice(0, 2), [String(i), records[i].op]);
            equal(row.slice(5, 7), [far[i] === null ? 'none' : String(far[i]), longest[i] === null ? 'none' : String(longest[i])], `record ${i}`);
            equal(row.slice(8), [records[i].norm, records[i].bar_norm].map((v) => v === undefined ? '–' : String(v)));
        });
        const told = tour.paths.find((p) => p.from === 'L (RNN+attention)' && p.to === 'token 1');
        holds(rows.some((r) => r[5] === String(told.shortest) && r[6] === String(told.longest) && Math.abs(r[7] - told.log2_count) < 1e-9), 'the path that the lesson counted');
    });
    await check('tape: marks stand at their distance; the slider chooses, and the shortest path is drawn', async () => {
        const at = await page.$$eval('#graph [aria-label="dot"]', (all) => all.map((g) => g.children.length));
        const reached = (await tableOf(page, '#graph')).rows.filter((r) => r[5] !== 'none').length;
        equal(at[0] + at[1], reached);
        holds((await page.textContent('#graph .note')).includes(`${tour.graph.records.length - reached} record`), 'the rest is named');
        await page.focus('#graph input[type=range]');
        await page.keyboard.press('Home');
        const first = await page.textContent('#graph output');
        holds(/^record 0 /.test(first), first);
        const length = +/(\d+) ops to the loss/.exec(first)[1];
        equal(points((await lines(page, 'graph'))[0]).length, length + 1);
        await page.selectOption('#graph .controls label:has-text("height") select', 'longest');
        holds((await page.textContent('#graph .picture')).includes('longest path'), 'the axis names the longest path');
        await page.selectOption('#graph .controls label:has-text("height") select', 'shortest');
    });
    await check('tape: the lesson\'s path reports', async () => {
        const {rows} = await tableOf(page, '#tape > .table');
        const count = (p) => (p.log2_count < 50 ? Math.round(2 ** p.log2_count).toLocaleString('en') : `2^${Number(p.log2_count.toPrecision(5))}`);
        equal(rows, tour.paths.map((p) => [p.from, p.to, String(p.shortest), String(p.longest), count(p)]));
    });
    await check('checks: measured, theory, tolerance, verdict', async () => {
        const {rows} = await tableOf(page, '#checks'), signs = {eq: '=', le: '≤', ge: '≥', slope: '≈', exact0: '= 0', target: '~'};
        rows.forEach((row, i) => {
            const c = tour.checks[i];
            equal([row[0], row[1], row[3], row[4], row[5]], [c.claim + c.id, String(c.measured), String(c.theory), String(c.tolerance), c.pass ? '✓ holds' : c.kind === 'target' ? '~ differs' : '✗ FAILS']);
        });
        equal(rows.length, tour.checks.length);
        equal(await page.$$eval('#checks abbr', (all) => all.map((a) => a.textContent)), tour.checks.map((c) => signs[c.kind]));
    });
    await check('the run: lesson, seed, flags, compiler, kernel', async () => {
        const {rows} = await tableOf(page, '#run');
        for (const pair of [['lesson', '00_tour'], ['seed', '1'], ['BLAS kernel', tour.build.blas_kernel], ['compiler', tour.build.compiler], ['hidden', '32']])
            holds(rows.some((r) => r[0] === pair[0] && r[1] === pair[1]), `${pair} is not among ${JSON.stringify(rows)}`);
    });
    await check('each figure: a name, a summary, a table; no figure is blank', async () => {
        for (const f of await page.$$eval('figure', (all) => all.map((f) => ({title: f.dataset.figure, label: f.querySelector('.picture').getAttribute('aria-label'), marks: f.querySelectorAll('.picture path, .picture rect, .picture image').length, table: !!f.querySelector('details.data')}))))
            holds(f.title && f.label.startsWith(f.title) && f.label.length > f.title.length + 40 && f.marks && f.table, JSON.stringify(f));
    });
    await check('export: SVG that needs nothing else, PNG with pixels', async () => {
        for (const id of ['curve0', 'sentence', 'flow0', 'heat', 'graph']) {
            const [svg] = await Promise.all([page.waitForEvent('download'), page.click(`#${id} button:text-is("SVG")`)]);
            const text = readFileSync(await svg.path(), 'utf8');
            holds(svg.suggestedFilename().endsWith('.svg') && text.startsWith('<svg') && text.includes('xmlns="http://www.w3.org/2000/svg"') && !/class="cursor"|<script|https?:\/\/(?!www\.w3\.org)/.test(text), text.slice(0, 200));
            const [png] = await Promise.all([page.waitForEvent('download'), page.click(`#${id} button:text-is("PNG")`)]);
            const bytes = readFileSync(await png.path());
            equal(bytes.subarray(1, 4).toString(), 'PNG');
            holds(bytes.readUInt32BE(16) > 1000 && bytes.length > 10_000, `${bytes.readUInt32BE(16)} pixels, ${bytes.length} bytes`);
            const shown = await visit(context, 'file://' + write(`<body data-ready="true">${text}`));
            equal(await shown.$eval('svg', (e) => e.querySelector('parsererror')), null);
            await shown.close();
        }
    });
    await check('no message on the console, no error, no request', () => quiet(page));
    await page.close();

    await check('several traces: over each other, a legend that toggles, each can be left out', async () => {
        const p = await visit(context, 'file://' + PAGE);
        holds((await p.textContent('#empty')).includes('Drop a trace'), 'an empty page says what to do');
        await p.setInputFiles('#file', [work + '/tour/00_tour.json', work + '/seed2/00_tour.json']);
        await p.waitForSelector('body[data-traces="2"]');
        await drawAll(p);
        const n = [...groups.values()][0].length;
        equal((await lines(p, 'curve0')).length, 2 * n);
        equal(await p.$$eval('#curve0 .legend input', (all) => all.length), 2 * n);
        const [a, b] = await p.$$eval('#curve0 .picture [aria-label="line"]', (all) => [all[0], all[all.length / 2]].map((g) => [g.getAttribute('stroke'), g.getAttribute('stroke-dasharray')]));
        holds(a[0] === b[0] && a[1] !== b[1], 'the same model: one colour, another dash');
        await p.click('#curve0 .legend label >> nth=1');
        equal((await lines(p, 'curve0')).length, 2 * n - 1);
        await p.click('#loaded input[type=checkbox] >> nth=1');
        equal((await lines(p, 'curve0')).length, n - 1);
        await p.click('#loaded input[type=radio] >> nth=1');
        await drawAll(p);
        equal((await tableOf(p, '#run')).rows.find((r) => r[0] === 'seed'), ['seed', '2']);
        await p.click('#loaded button >> nth=0');
        equal(await p.$eval('body', (e) => e.dataset.traces), '1');
        await quiet(p);
        await p.close();
    });
    await check('a trace that is dropped is opened', async () => {
        const p = await visit(context, 'file://' + PAGE);
        await p.evaluate((text) => { const d = new DataTransfer(); d.items.add(new File([text], 'dropped.json')); dispatchEvent(new DragEvent('drop', {dataTransfer: d, cancelable: true})); }, JSON.stringify(date));
        await p.waitForSelector('body[data-traces="1"]');
        await drawAll(p);
        const m = date.matrices[0], {rows} = await tableOf(p, '#heat');
        equal(rows, m.rows.map((name, i) => [name, ...m.data.slice(i * m.shape[1], (i + 1) * m.shape[1]).map(String)]));
        await quiet(p);
        await p.close();
    });
    await check('a link restores the view; so does a saved page, which holds the trace', async () => {
        const p = await report(context, tour);
        await drawAll(p);
        await p.selectOption('#curve0 .controls label:has-text("y axis") select', 'linear');
        await p.click('#curve0 .legend label >> nth=2');
        await p.selectOption('#heat .controls label:has-text("matrix") select', {label: 'gradient shares, RNN+attention'});
        await p.click('#theme'); await p.click('#theme');
        await p.focus('#flow0 input[type=range]');
        for (let i = 0; i < 3; ++i) await p.keyboard.press('ArrowRight');
        const link = await hashOf(p);
        const [saved] = await Promise.all([p.waitForEvent('download'), p.click('#save')]);
        holds(saved.suggestedFilename() === '00-tour.html', saved.suggestedFilename());
        const page2 = write(readFileSync(await saved.path(), 'utf8'));
        for (const url of [p.url().split('#')[0] + link, 'file://' + page2]) {
            const q = await visit(context, url);
            await drawAll(q);
            equal((await lines(q, 'curve0')).length, [...groups.values()][0].length - 1);
            equal(await q.$eval('#curve0 select', (s) => s.value), 'linear');
            equal(await q.textContent('#heat h3'), 'gradient shares, RNN+attention: way × token');
            holds((await q.textContent('#flow0 output')).startsWith('t = 4 '), 't');
            equal(await q.$eval('html', (e) => e.dataset.theme), 'dark');
            await quiet(q);
            await q.close();
        }
        const q = await visit(context, 'file://' + page2), [again] = await Promise.all([q.waitForEvent('download'), q.click('#save')]);
        equal(readFileSync(await again.path(), 'utf8').length, readFileSync(page2, 'utf8').length, 'a saved page saves itself');
        await q.close();
        await p.close();
    });
    await check('predictions beside measurements', async () => {
        const p = await report(context, empty({predictions: [{name: 'half-life', guess: 7, measured: 3.5}, {name: 'winner', guess: 'cat', measured: 'the'}, {name: 'slope', guess: -0.5, measured: -0.5}]}));
        equal((await tableOf(p, '#predictions')).rows, [['half-life', '7', '3.5', '2 times too large'], ['winner', 'cat', 'the', 'another'], ['slope', '-0.5', '-0.5', 'exactly']]);
        await quiet(p);
        await p.close();
    });
    await check('failed checks and missed targets are told apart, in words and at the top', async () => {
        const c = {id: 'a', claim: 'b', kind: 'le', measured: 2, theory: 1, tolerance: 0, pass: false, source: ''};
        const p = await report(context, empty({checks: [c, {...c, kind: 'target'}, {...c, pass: true}]}));
        equal(await p.textContent('#verdict'), '1 of 3 checks hold, 1 differs, 1 FAILS');
        equal((await tableOf(p, '#checks')).rows.map((r) => r[5]), ['✗ FAILS', '~ differs', '✓ holds']);
        await p.close();
    });
    await check('units stand on axes, in tables and beside exact values', async () => {
        const p = await report(context, empty({series: [series('cost', [3, 1, 2], {x_label: 'length', x_unit: 'tokens', y_label: 'time', y_unit: 'ms'})]}));
        await drawAll(p);
        const text = await p.textContent('#curve0 svg:not(.swatch)');
        holds(text.includes('time (ms)') && text.includes('length (tokens)'), text);
        await p.focus('#curve0 .picture');
        await p.keyboard.press('ArrowRight');
        holds((await p.textContent('#curve0 .tip')).endsWith('time = 3 ms'), await p.textContent('#curve0 .tip'));
        await p.close();
    });
}
