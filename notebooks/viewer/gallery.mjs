// The README's figures, light and dark, out of traces: node gallery.mjs TRACES OUT. lessons/run gallery makes the traces.
import {mkdirSync, readFileSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {browser, inlined} from './browser.mjs';

// name, trace, figure, what to choose before, and the width that its labels need
const FIGURES = [
    ['gradients', 'tour', '#curve0', {}, 860],
    ['paths', 'tour', '#curve1', {}, 860],
    ['words', 'tour', '#sentence', {}, 860],
    ['flow', 'tour', '#flow0', {t: 11}, 860],
    ['tape', 'tour', '#graph', {}, 860],
    ['alignment', 'date', '#heat', {}, 620],
];

const [traces, out] = process.argv.slice(2);
mkdirSync(out, {recursive: true});
await browser(async (context) => {
    const page = await context.newPage(), file = join(tmpdir(), `lookback-gallery-${process.pid}.html`);
    for (const [name, trace, figure, view, width] of FIGURES)
        for (const theme of ['light', 'dark']) {
            writeFileSync(file, inlined(readFileSync(join(traces, trace, '00_tour.json'), 'utf8')));
            await page.setViewportSize({width, height: 900});
            await page.goto('about:blank');
            await page.goto(`file://${file}#${encodeURIComponent(JSON.stringify({...view, theme}))}`);
            await page.waitForSelector('body[data-ready]');
            const svg = await page.$eval(figure, (f) => f.svg());
            writeFileSync(join(out, `${name}-${theme}.svg`), svg + '\n');
        }
    rmSync(file);
});
console.log(`gallery: ${FIGURES.length} figures, light and dark, in ${out}`);
