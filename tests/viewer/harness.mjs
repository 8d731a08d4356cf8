// What the viewer's tests share: a list of checks, pages that note every message and request, traces to begin with.
import {readFileSync, writeFileSync} from 'node:fs';
import {join} from 'node:path';
import {fileURLToPath} from 'node:url';
import {inlined, PAGE} from '../../notebooks/viewer/browser.mjs';

export const work = process.argv[2];
export const tour = JSON.parse(readFileSync(join(work, 'tour', '00_tour.json')));
export const date = JSON.parse(readFileSync(join(work, 'date', '00_tour.json')));
export const source = (path) => fileURLToPath(new URL('../../' + path, import.meta.url));
export {PAGE};

let passed = 0;
const failed = [];
export async function check(name, body) {
    try {
        await body();
        ++passed;
        console.log(`ok      ${name}`);
    } catch (error) {
        failed.push(name);
        console.log(`FAILED  ${name}\n        ${String(error.stack ?? error).split('\n').slice(0, 6).join('\n        ')}`);
    }
}
export function finish() {
    console.log(failed.length ? `viewer: ${failed.length} of ${passed + failed.length} checks FAILED` : `viewer: ${passed} checks passed`);
    process.exitCode = failed.length ? 1 : 0;
}

export function equal(a, b, what = '') {
    if (JSON.stringify(a) !== JSON.stringify(b)) throw new Error(`${what} ${JSON.stringify(a)?.slice(0, 300)} is not ${JSON.stringify(b)?.slice(0, 300)}`);
}
export function holds(truth, what) { if (!truth) throw new Error(what); }
export function near(a, b, by, what = '') { if (!(Math.abs(a - b) <= by)) throw new Error(`${what} ${a} is not within ${by} of ${b}`); }

// A page at an address. `seen` holds all that must stay empty: messages, errors, dialogs, requests beyond the page itself.
export async function visit(context, url, {width = 1280, height = 900, scheme = 'light'} = {}) {
    const page = await context.newPage(), seen = [];
    page.seen = seen;
    page.on('console', (m) => seen.push(`console: ${m.text()}`));
    page.on('pageerror', (e) => seen.push(`error: ${e.message}`));
    page.on('dialog', (d) => { seen.push(`dialog: ${d.message()}`); d.dismiss(); });
    page.on('request', (r) => { if (!r.isNavigationRequest() && !r.url().startsWith('blob:') && !r.url().startsWith('data:')) seen.push(`request: ${r.url()}`); });
    await page.setViewportSize({width, height});
    await page.emulateMedia({colorScheme: scheme});
    await page.addInitScript(() => {  // how long the page could not answer, at most
        let last = performance.now();
        window.stall = 0;
        setInterval(() => { const now = performance.now(); window.stall = Math.max(window.stall, now - last); last = now; }, 20);
    });
    await page.goto(url);
    await page.waitForSelector('body[data-ready]', {timeout: 60_000});
    return page;
}
let files = 0;
export function write(text, ending = 'html') {
    const file = join(work, `page${++files}.${ending}`);
    writeFileSync(file, text);
    return file;
}
export const report = (context, trace, options) => visit(context, 'file://' + write(inlined(typeof trace === 'string' ? trace : JSON.stringify(trace))), options);
// One after the other, as they are when a reader scrolls.
export const drawAll = (page) => page.evaluate(async () => { for (const f of document.querySelectorAll('figure')) { f.svg(); await new Promise((go) => setTimeout(go)); } });

export async function quiet(page) { equal(page.seen, []); }

// The table behind a figure (or another table), as it is read out: all pages of it, or the first and the last.
export async function tableOf(page, selector, ends = false) {
    await page.evaluate((s) => { const d = document.querySelector(s)?.querySelector('details'); if (d) d.open = true; }, selector);
    await page.waitForFunction((s) => document.querySelector(s + ' table tbody tr'), selector);
    return page.evaluate(async ([s, ends]) => {
        const box = document.querySelector(s), rows = [];
        const cells = (row) => [...row.cells].map((c) => c.querySelector('[title]')?.title ?? c.textContent);
        const [previous, next] = box.querySelectorAll('.turn button');
        const total = +/of ([\d,]+)/.exec(box.querySelector('.turn span').textContent)[1].replaceAll(',', '');
        if (ends) { const first = [...box.querySelectorAll('tbody tr')].map(cells); previous.click(); return {total, rows: [...first, ...[...box.querySelectorAll('tbody tr')].map(cells)]}; }
        while (rows.length < total) { rows.push(...[...box.querySelectorAll('tbody tr')].map(cells)); if (rows.length < total) next.click(); await new Promise((go) => setTimeout(go)); }
        return {head: [...box.querySelectorAll('thead th')].map((c) => c.textContent), rows};
    }, [selector, ends]);
}

export const empty = (changes = {}) => ({
    schema: 'lookback-trace/1', lesson: '99_test', seed: 1, real: 'double', config: {}, build: {compiler: 'c', blas_kernel: 'b', threads: 1, native: false},
    tokens: [], series: [], matrices: [], paths: [], predictions: [], checks: [], ...changes,
});
export const series = (name, y, changes = {}) => ({name, x_label: 'token', x: y.map((_, i) => i + 1), y_label: 'norm', y, ...changes});
