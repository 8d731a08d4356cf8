// Builds viewer.html: all that src/ holds in one page. `node build.mjs --check` says whether the committed page is what src/ makes.
import {createHash} from 'node:crypto';
import {readFileSync, writeFileSync} from 'node:fs';
import {fileURLToPath} from 'node:url';
import {build} from 'esbuild';

const here = (name) => fileURLToPath(new URL(name, import.meta.url));
const options = {bundle: true, minify: true, format: 'iife', target: 'es2022', charset: 'utf8', legalComments: 'inline', write: false};
const bundle = async (entry, plugins = []) =>
    (await build({...options, entryPoints: [here(entry)], plugins})).outputFiles[0].text.replaceAll('</script', '<\\/script');

// The worker is a text inside the page: a page that is opened as a file cannot load another.
const worker = await bundle('src/worker.js');
const workerSource = {
    name: 'worker-source',
    setup(b) {
        b.onResolve({filter: /^worker-source$/}, () => ({path: 'worker-source', namespace: 'worker'}));
        b.onLoad({filter: /.*/, namespace: 'worker'}, () => ({contents: worker, loader: 'text'}));
    },
};

// The libraries keep their licences: esbuild keeps those that are comments, the rest are files beside the packages.
const packages = JSON.parse(readFileSync(here('package-lock.json'))).packages;
const licences = new Map();
for (const [path, {version, dev}] of Object.entries(packages)) {
    if (!path || dev) continue;
    const name = path.split('node_modules/').at(-1);
    const file = ['LICENSE', 'LICENSE.md', 'LICENSE.txt', 'license'].map((f) => here(`${path}/${f}`)).map((f) => { try { return readFileSync(f, 'utf8'); } catch { return null; } }).find(Boolean);
    if (!file) throw new Error(`${name} has no licence`);
    const text = file.trim().replaceAll('*/', '* /');
    licences.set(text, [...(licences.get(text) ?? []), `${name} ${version}`]);
}
const notices = [...licences].map(([text, names]) => `${names.join(', ')}\n\n${text}`).join('\n\n----\n\n');
const script = `/*\nLookback's viewer, MIT licence. It holds these libraries:\n\n${notices.replaceAll('</script', '<\\/script')}\n*/\n${await bundle('src/main.js', [workerSource])}`;

const style = readFileSync(here('src/style.css'), 'utf8').replace(/\n\s*/g, '\n').trim();
const sum = createHash('sha256').update(script).digest('base64');
const policy = `default-src 'none'; script-src 'sha256-${sum}'; worker-src blob:; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'`;
const parts = {policy, style, script};
const page = readFileSync(here('src/page.html'), 'utf8').replace(/\{\{(\w+)\}\}/g, (_, name) => parts[name]);

const out = here('viewer.html');
if (process.argv.includes('--check')) {
    let committed = '';
    try { committed = readFileSync(out, 'utf8'); } catch { /* not built yet */ }
    if (committed !== page) { console.error('viewer.html is not what src/ makes: run node build.mjs'); process.exit(1); }
    console.log('viewer.html is what src/ makes');
} else {
    writeFileSync(out, page);
    console.log(`viewer.html: ${(page.length / 1024).toFixed(0)} KiB`);
}
