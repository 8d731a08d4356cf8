// Traces that are broken, huge or meant to harm: a clear message or a usable view. Never a blank page, a freeze over two
// seconds, or a script that runs.
import {join} from 'node:path';
import {writeFileSync} from 'node:fs';
import {check, drawAll, empty, equal, holds, PAGE, quiet, report, series, tableOf, tour, visit, work} from './harness.mjs';

const FREEZE = 2000;  // ms
const evil = ['</script><script>pwned=1</script>', '<img src=x onerror="pwned=1">', '"><svg onload=pwned=1>', '<!--<script>', 'javascript:pwned=1', '\u202egnirts', '\u0000\u001b[31m', '{{script}}', '$&', '__proto__', '<iframe srcdoc="<script>parent.pwned=1</script>">'];

let files = 0;
// Opens a file by the page's own control; what it says, and how long it could not answer.
async function opened(context, text) {
    const file = join(work, `hostile${++files}.json`), page = await visit(context, 'file://' + PAGE);
    writeFileSync(file, text);
    await page.setInputFiles('#file', file);
    await page.waitForFunction(() => !document.querySelector('#messages p:not(.error)') && (document.querySelector('.error') || document.body.dataset.traces > 0), null, {timeout: 60_000});
    if (+await page.$eval('body', (b) => b.dataset.traces)) await drawAll(page);
    await page.waitForTimeout(100);
    const result = {page, said: (await page.textContent('#messages')).trim(), shown: +await page.$eval('body', (b) => b.dataset.traces), stall: await page.evaluate(() => window.stall)};
    holds(result.stall < FREEZE, `the page froze for ${Math.round(result.stall)} ms`);
    equal(await page.evaluate(() => window.pwned), undefined, 'a script ran');
    await quiet(page);
    holds((await page.evaluate(() => document.body.innerText)).length > 100, 'the page is blank');
    return result;
}
const refused = (name, text, words) => [`refused: ${name}`, async (context) => {
    const {page, said, shown} = await opened(context, typeof text === 'function' ? text() : text);
    equal(shown, 0);
    for (const word of [words].flat()) holds(said.includes(word), `"${word}" is not in "${said}"`);
    await page.close();
}];
const json = (changes) => JSON.stringify(empty(changes));
const record = (changes = {}) => ({op: 'leaf', inputs: [], shape: [1], ...changes});

const REFUSED = [
    refused('not JSON', 'hello, this is no trace', 'this is not JSON'),
    refused('an empty file', '', 'the file is empty'),
    refused('binary', '\u0000\u0001\ufffd\u0007PNG', 'this is not JSON'),
    refused('cut short', JSON.stringify(tour).slice(0, 5000), 'this is not JSON'),
    refused('a page, not a trace', '<!doctype html><script>pwned=1</script>', 'this is not JSON'),
    refused('a list', '[1,2,3]', 'a trace is an object, not a list'),
    refused('null', 'null', 'a trace is an object, not null'),
    refused('other JSON', '{"name": "x"}', 'this is JSON, but no trace'),
    refused('another schema', json({schema: 'bertviz/1'}), '"schema" is "bertviz/1"'),
    refused('a schema that is markup', json({schema: evil[0]}), '</script><script>pwned=1'),
    refused('a later version', json({schema: 'lookback-trace/2'}), ['of a later version', 'lookback-trace/2', 'reads lookback-trace/1']),
    refused('a missing part', JSON.stringify({...empty(), checks: undefined}), 'checks: a list is wanted, not nothing'),
    refused('null for a number', json({series: [series('a', [1, null])]}), 'series[0].y[1]: a number is wanted, not null'),
    refused('a word for a number', json({series: [series('a', [1, 'nan'])]}), 'series[0].y[1]: a number is wanted, not "nan"'),
    refused('x and y of two lengths', json({series: [{...series('a', [1, 2]), x: [1]}]}), 'x and y differ in length: 1 and 2'),
    refused('a matrix of another shape', json({matrices: [{name: 'm', shape: [2, 2], data: [1]}]}), 'matrices[0].data'),
    refused('a shape that is huge', json({matrices: [{name: 'm', shape: [1e9, 1e9], data: [1]}]}), 'matrices[0].data'),
    refused('a graph that runs backwards', json({graph: {records: [record({inputs: [0]})], edges: []}}), 'graph.records[0].inputs[0]: an earlier record'),
    refused('an edge to nowhere', json({graph: {records: [record()], edges: [{from: 0, to: 7, input: 0, norm: 1}]}}), 'graph.edges[0]: there are no such records'),
    refused('a kind that is none', json({checks: [{id: 'a', claim: 'b', kind: '__proto__', measured: 1, theory: 1, tolerance: 0, pass: true, source: ''}]}), 'checks[0].kind: one of eq'),
    refused('a million levels of lists', () => '['.repeat(1e6) + ']'.repeat(1e6), ['hostile', ':']),
    refused('a million levels inside a trace', () => json({config: {deep: 0}}).replace('"deep":0', '"deep":' + '['.repeat(1e6) + ']'.repeat(1e6)), ['hostile', ':']),
    refused('a million levels of objects', () => '{"a":'.repeat(1e6) + '1' + '}'.repeat(1e6), ['hostile', ':']),
    refused('50 MB that are not JSON', () => 'x'.repeat(50e6), 'this is not JSON'),
    refused('50 MB of one text', () => `"${'x'.repeat(50e6)}"`, 'a trace is an object'),
];

const SHOWN = [
    ['shown: an empty trace', () => empty(), async (page) => holds((await page.textContent('main')).includes('nothing to draw'), 'it says so')],
    ['shown: "NaN" and infinities, as gaps, counted and in the table', () => empty({series: [series('a', [1, 'NaN', 3, 'Infinity', 5, '-Infinity', 7])], matrices: [{name: 'm', shape: [1, 3], data: ['NaN', 1, 'Infinity']}], checks: [{id: 'a', claim: 'b', kind: 'le', measured: 'NaN', theory: 'Infinity', tolerance: 0, pass: false, source: ''}]}), async (page) => {
        equal((await tableOf(page, '#curve0')).rows.map((r) => r[1]), ['1', 'NaN', '3', 'Infinity', '5', '-Infinity', '7']);
        holds((await page.textContent('#curve0 .note')).includes('3 values are not drawn'), await page.textContent('#curve0 .note'));
        equal((await tableOf(page, '#checks')).rows[0].slice(1, 4), ['NaN', 'measured ≤ theory + tolerance', 'Infinity']);
    }],
    ['shown: nothing but NaN', () => empty({series: [series('a', ['NaN', 'NaN'])]}), async (page) => holds((await page.textContent('#curve0 .note')).includes('nothing that these axes can show'), 'it says so')],
    ['shown: one point; equal values; denormals; the largest numbers', () => empty({series: [series('a', [3], {y_label: 'one'}), series('b', [2, 2, 2], {y_label: 'same'}), series('c', [5e-324, 1e-300, 1e308], {y_label: 'wide'}), series('d', [-1e308, 1e308], {y_label: 'far'}), series('e', [], {y_label: 'none'})]}), async (page) => {
        equal(await page.$$eval('figure', (all) => all.length), 5);
        holds(!/NaN/.test(await page.$$eval('.picture svg', (all) => all.map((s) => s.outerHTML).join())), 'a place that is no number');
    }],
    ['shown: markup in every text, as text', () => empty({
        lesson: evil[0], tokens: evil, config: Object.fromEntries(evil.map((e) => [e, e])), build: {compiler: evil[1], blas_kernel: evil[2], threads: 1, native: false},
        series: [...evil.map((e, i) => ({...series(e, evil.map((_, k) => i + k + 1)), labels: evil})), ...['value', 'score', 'recurrence'].map((w) => series(`${w} share ${evil[1]}`, evil.map(() => 1 / 3), {y_label: evil[1]}))],
        matrices: evil.map((e) => ({name: e, row_label: e, column_label: e, rows: [e], columns: [e], shape: [1, 1], data: [1]})),
        paths: [{from: evil[0], to: evil[1], reached: true, shortest: 1, longest: 1, log2_count: 0}], predictions: [{name: evil[0], guess: evil[1], measured: evil[2]}],
        checks: [{id: evil[0], claim: evil[1], kind: 'eq', measured: 1, theory: 1, tolerance: 0, pass: true, source: evil[0]}],
        graph: {records: [record({op: evil[0], label: evil[1]}), record({op: evil[1], inputs: [0]})], edges: [{from: 0, to: 1, input: 0, norm: 1}]},
        timings: {[evil[0]]: 1},
    }), async (page) => {
        await page.evaluate(() => document.querySelectorAll('details').forEach((d) => { d.open = true; }));
        await page.waitForTimeout(300);
        equal(await page.$$eval('img, iframe, script:not([id])', (all) => all.length), 1);  // the page's own script
        holds((await page.textContent('#words')).includes('<img src=x'), 'a token is shown as it is');
        equal((await tableOf(page, '#checks')).rows[0][0], evil[1] + evil[0]);
        equal(await page.evaluate(() => window.pwned), undefined);
    }],
    ['shown: 100,000 points in each of five series', () => empty({series: Array.from({length: 5}, (_, k) => series(`s${k}`, Array.from({length: 100_000}, (_, i) => Math.exp(-i / 5e3 - k) * (1.1 + Math.sin(i)))))}), async (page) => {
        const marks = await page.$$eval('#curve0 [aria-label="line"] path', (all) => all.map((p) => p.getAttribute('d').length));
        holds(marks.every((n) => n > 5000 && n < 200_000), `paths of ${marks} characters`);
        const t = await tableOf(page, '#curve0', true);
        equal([t.total, t.rows[0][0], t.rows.at(-1)[0]], [100_000, '1', '100000']);
    }],
    ['shown: 10,000 tokens with a norm each', () => {
        const tokens = Array.from({length: 10_000}, (_, i) => `w${i % 97}`), y = tokens.map((_, i) => Math.exp(-i / 100));
        return empty({tokens, series: [series('RNN', y, {y_label: '‖∂L/∂h_t‖'}), ...['value', 'score', 'recurrence'].map((w, k) => series(`${w} share`, tokens.map(() => [0.7, -0.1, 0.4][k]), {y_label: 'share'}))], matrices: [{name: 'α', columns: tokens, shape: [1, 10_000], data: y}]});
    }, async (page) => {
        equal(await page.$$eval('#sentence .picture text[text-anchor="middle"]', (all) => all.length), 400);
        await page.selectOption('#sentence .controls label:has-text("tokens") select', '24');
        holds((await page.$$eval('#sentence .picture text[text-anchor="middle"]', (all) => all.map((t) => t.textContent))).includes('w63'), 'another page of tokens');
        await page.focus('#flow0 input[type=range]');
        await page.keyboard.press('End');
        holds((await page.textContent('#flow0 output')).startsWith('t = 10000 “w8”: value 70.0 %'), await page.textContent('#flow0 output'));
    }],
    ['shown: 50 MB of series and a matrix of 1,000 × 1,000', () => {
        const y = Array.from({length: 250_000}, (_, i) => Math.sin(i * 0.001) * 1.000000000001 + 1.5);
        return empty({series: Array.from({length: 5}, (_, k) => series(`s${k}`, y)), matrices: [{name: 'm', shape: [1000, 1000], data: Array.from({length: 1e6}, (_, i) => (i % 1000) / 1001)}]});
    }, async (page, size) => {
        holds(size > 50e6, `${size} bytes`);
        equal(await page.$$eval('figure', (all) => all.length), 2);
    }],
    ['shown: a tape of 100,000 records', () => empty({graph: {records: Array.from({length: 1e5}, (_, i) => record(i ? {op: 'tanh', inputs: [i - 1], bar_norm: 1} : {})), edges: []}}), async (page) => {
        holds((await page.textContent('#graph output')).includes('99999 ops to the loss'), await page.textContent('#graph output'));
        holds((await page.textContent('#graph .note')).includes('Of 100,000 records the 4,000'), 'it says that it shows a part');
    }],
    ['shown: 5,000 series, 3,000 checks, a text of a megabyte', () => empty({
        tokens: ['x'.repeat(1e6), 'y'], series: Array.from({length: 5000}, (_, k) => series(`s${k}`, [k + 1, 2])),
        checks: Array.from({length: 3000}, (_, k) => ({id: `c${k}`, claim: 'x'.repeat(500), kind: 'eq', measured: 1, theory: 1, tolerance: 0, pass: true, source: ''})),
    }), async (page) => {
        holds((await page.textContent('#curve0 .note')).includes('4960 more series are not drawn'), await page.textContent('#curve0 .note'));
        equal((await tableOf(page, '#checks', true)).total, 3000);
        holds(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), 'it fits');
    }],
    ['shown: 2,000 kinds of axes', () => empty({series: Array.from({length: 2000}, (_, k) => series('s', [1, 2], {y_label: `y${k}`}))}), async (page) => {
        holds(await page.$$eval('figure', (all) => all.length >= 20 && all.length < 200), 'a part of them');
        holds((await page.textContent('#curves')).includes('more'), 'it says so');
    }],
];

export async function hostile(context) {
    // On a busy machine every page waits: what froze is tried again, as only what the page itself does comes back each time.
    const patiently = (body) => async () => {
        for (let attempt = 1;; ++attempt)
            try { return await body(); } catch (error) { if (attempt === 4 || !/ froze for /.test(error.message)) throw error; }
    };
    for (const [name, body] of REFUSED) await check(name, patiently(() => body(context)));
    for (const [name, make, look] of SHOWN)
        await check(name, patiently(async () => {
            const text = JSON.stringify(make()), {page, said, shown} = await opened(context, text);
            equal([said, shown], ['', 1]);
            await look(page, text.length);
            holds(await page.evaluate(() => window.stall) < FREEZE, `it froze for ${Math.round(await page.evaluate(() => window.stall))} ms`);
            await quiet(page);
            await page.close();
        }));
    await check('a broken trace beside a good one: a message, and the good one', async () => {
        const page = await visit(context, 'file://' + PAGE);
        writeFileSync(join(work, 'bad.json'), '{');
        await page.setInputFiles('#file', [join(work, 'bad.json'), join(work, 'tour', '00_tour.json')]);
        await page.waitForSelector('body[data-traces="1"]');
        holds((await page.textContent('.error')).startsWith('bad.json: this is not JSON'), 'the message names the file');
        await page.click('.error button');
        equal(await page.$('.error'), null);
        await page.close();
    });
    await check('a report whose trace is broken says so', async () => {
        const page = await report(context, '{"schema": "lookback-trace/9"}');
        holds((await page.textContent('.error')).includes('of a later version'), 'it says why');
        await quiet(page);
        await page.close();
    });
    await check('a report that C++ wrote of markup: text, no script', async () => {
        const page = await visit(context, `file://${work}/evil/00_tour.html`);
        await drawAll(page);
        equal(await page.evaluate(() => window.pwned), undefined);
        holds((await page.$$eval('#sentence svg text', (all) => all.map((t) => t.textContent).join(''))).includes('</script><script>pwned=1</script>'), 'the tokens are there');
        await quiet(page);
        await page.close();
    });
    await check('even markup that reaches the page unescaped runs nothing: the page\'s policy', async () => {
        const page = await visit(context, 'file://' + PAGE);
        await page.evaluate(() => { const d = document.createElement('div'); d.innerHTML = '<img src=x onerror="pwned=1">'; document.body.append(d); const s = document.createElement('script'); s.textContent = 'pwned=1'; document.body.append(s); });
        await page.waitForTimeout(200);
        equal(await page.evaluate(() => window.pwned), undefined);
        await page.close();
    });
    await check('links with nonsense behind the # show the default view', async () => {
        for (const hash of ['#%', '#null', '#[]', '#%7B%22t%22%3A1e9%2C%22trace%22%3A-1%2C%22theme%22%3A%22%3Cscript%3E%22%2C%22__proto__%22%3A%7B%7D%2C%22heat%22%3A%22x%22%2C%22record%22%3A1.5%7D', '#' + 'x'.repeat(1e5)]) {
            const page = await visit(context, `file://${work}/tour/00_tour.html${hash}`);
            await drawAll(page);
            holds((await page.textContent('#flow0 output')).startsWith('t = 1 '), hash.slice(0, 40));
            await quiet(page);
            await page.close();
        }
    });
}
