// Usage: node main.mjs WORK_FOLDER [views|access|hostile]; tests/viewer/run makes the folder.
import {execFileSync} from 'node:child_process';
import {readdirSync, readFileSync, statSync} from 'node:fs';
import {join} from 'node:path';
import {browser} from '../../notebooks/viewer/browser.mjs';
import {access} from './access.mjs';
import {check, drawAll, equal, finish, holds, PAGE, quiet, source, visit, work} from './harness.mjs';
import {hostile} from './hostile.mjs';
import {views} from './views.mjs';

async function built() {
    await check('the committed page is what its source makes', () => { execFileSync('node', [source('notebooks/viewer/build.mjs'), '--check'], {stdio: 'pipe'}); });
    await check('the page: of reasonable size, with the licence of every library, one place for a trace', () => {
        const page = readFileSync(PAGE, 'utf8'), {packages} = JSON.parse(readFileSync(source('notebooks/viewer/package-lock.json')));
        holds(statSync(PAGE).size > 100e3 && statSync(PAGE).size < 500e3, `${statSync(PAGE).size} bytes`);
        for (const [path, {version, dev}] of Object.entries(packages)) if (path && !dev) holds(page.includes(`${path.split('node_modules/').at(-1)} ${version}`), `${path} is not named`);
        holds(page.includes('Permission to use, copy, modify, and/or distribute'), 'the ISC licence');
        equal(page.split('id="trace">').length, 2);
    });
    await check('the lock file names no host', () => holds(!readFileSync(source('notebooks/viewer/package-lock.json'), 'utf8').includes('"resolved"'), 'it holds "resolved"'));
}
async function lessons(context) {
    const folder = join(work, 'lessons');
    for (const name of readdirSync(folder).filter((f) => f.endsWith('.html')))
        await check(`the report of ${name.replace('.html', '')}: every figure is drawn`, async () => {
            const page = await visit(context, 'file://' + join(folder, name));
            await drawAll(page);
            equal(await page.$$eval('.error', (all) => all.map((e) => e.textContent)), []);
            holds(await page.$$eval('figure', (all) => all.every((f) => f.querySelector('.picture svg'))), 'a figure is missing');
            holds(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), 'it is too wide');
            await quiet(page);
            await page.close();
        });
}

const parts = {built, views, access, hostile, lessons}, only = process.argv[3];
await browser(async (context) => { for (const [name, part] of Object.entries(parts)) if (!only || only === name) await part(context); });
finish();
