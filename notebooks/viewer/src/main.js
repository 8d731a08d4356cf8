// The page: opens traces (inlined, chosen, dropped), shows what they hold, keeps and restores the view.
import workerSource from 'worker-source';
import {isDark, onSystemTheme} from './colours.js';
import {curves} from './curves.js';
import {announce, download, fileName, h, printable} from './dom.js';
import {dropFigures, redrawAll} from './figure.js';
import {flows} from './flow.js';
import {graph, pathTable} from './graph.js';
import {heat} from './heat.js';
import {about, checkTable, glossary, inWords, predictionTable, runTable, verdicts} from './results.js';
import {sentence} from './sentence.js';
import {readTrace, TraceError} from './trace.js';
import * as view from './view.js';

const pristine = '<!doctype html>\n' + document.documentElement.outerHTML;  // before anything is drawn: what a saved page is made of
const SMALL = 2 ** 20, LARGEST = 256 * 2 ** 20, PATIENCE = 60_000;
const traces = [];
const $ = (id) => document.getElementById(id);

// ---- reading

// In a worker, so that a large or a hostile file freezes nothing; if there can be no worker, here. A small text is read
// here and now, so that a report is never seen empty.
function read(source) {
    if (typeof source === 'string' && source.length <= SMALL) return Promise.resolve(source).then(readTrace);
    return new Promise((resolve, reject) => {
        let worker;
        try {
            const url = URL.createObjectURL(new Blob([workerSource], {type: 'text/javascript'}));
            worker = new Worker(url);
            URL.revokeObjectURL(url);
        } catch { worker = null; }
        const here = async () => readTrace(typeof source === 'string' ? source : await source.text());
        if (!worker) return void here().then(resolve, reject);
        const end = setTimeout(() => { worker.terminate(); reject(new TraceError('reading it takes too long')); }, PATIENCE);
        worker.onmessage = ({data}) => { clearTimeout(end); worker.terminate(); data.error ? reject(new TraceError(data.error)) : resolve(data.trace); };
        worker.onerror = (event) => { event.preventDefault(); clearTimeout(end); worker.terminate(); reject(new TraceError('it is too large or too deep for this browser')); };
        worker.onmessageerror = () => { clearTimeout(end); reject(new TraceError('it is too large for this browser')); };
        worker.postMessage(source);
    });
}

async function open(source, name) {
    const size = typeof source === 'string' ? source.length : source.size;
    if (size > LARGEST) return complain(name, `it has ${Math.round(size / 2 ** 20)} MiB; this page reads up to ${LARGEST / 2 ** 20}`);
    const note = h('p', null, `Reading ${printable(name)} …`);
    $('messages').append(note);
    try {
        const trace = await read(source);
        trace.source = source;
        trace.title = trace.lesson.replace(/^(\d\d)_/, '$1 ').replaceAll('_', ' ');
        const same = traces.filter((t) => t.lesson === trace.lesson);
        if (same.length) trace.title += ` · seed ${trace.seed}`;
        if (same.some((t) => t.seed === trace.seed)) trace.title += ` (${same.length + 1})`;
        traces.push(trace);
    } catch (error) {
        complain(name, error instanceof TraceError ? error.message : String(error.message ?? error));
    } finally {
        note.remove();
    }
}
function complain(name, why) {
    $('messages').append(h('p', {class: 'error', role: 'alert'}, h('strong', null, printable(name)), ': ', printable(why, 400), ' ',
        h('button', {type: 'button', 'aria-label': 'dismiss', onclick: (e) => e.target.parentElement.remove()}, '×')));
}
async function openFiles(files) {
    for (const file of [...files].slice(0, 20)) await open(file, file.name);
    show();
    announce(`${traces.length} trace${traces.length === 1 ? '' : 's'} shown`);
}

// ---- showing

const part = (id, title, content) => {
    const all = [content].flat().filter(Boolean);
    return all.length ? {id, title, box: h('section', {id, 'aria-label': title, tabindex: -1}, h('h2', null, title), all)} : null;
};

function show() {
    dropFigures();
    view.forget();
    document.body.dataset.traces = traces.length;
    $('empty').hidden = traces.length > 0;
    $('views').replaceChildren();
    $('nav').replaceChildren();
    $('loaded').replaceChildren();
    $('about').textContent = '';
    if (!traces.length) return;
    traces.forEach((trace, i) => { trace.off = view.get(`trace-off:${i}`, false); });
    const chosen = view.get('trace', 0, (i) => Number.isInteger(i) && i >= 0 && i < traces.length), trace = traces[chosen];
    document.title = `${printable(trace.title)} · Lookback`;
    $('title').textContent = printable(trace.title);

    if (traces.length > 1) $('loaded').append(h('fieldset', null, h('legend', null, 'Traces'), traces.map((t, i) => h('span', {class: 'chip', role: 'group', 'aria-label': printable(t.title)}, h('strong', null, printable(t.title, 50)),
        h('label', null, h('input', {type: 'checkbox', checked: !t.off, onchange: (e) => { view.set(`trace-off:${i}`, !e.target.checked, false); t.off = !e.target.checked; redrawAll(); }}), ' in the curves'),
        h('label', null, h('input', {type: 'radio', name: 'chosen', checked: i === chosen, onchange: () => { view.set('trace', i, 0); show(); }}), ' in the other views'),
        h('button', {type: 'button', 'aria-label': `close ${printable(t.title)}`, onclick: () => { traces.splice(i, 1); view.set('trace', 0, 0); show(); }}, '×')))));
    const {fails} = verdicts(trace);
    $('verdict').textContent = inWords(trace);
    $('about').textContent = about(trace);
    $('verdict').className = fails ? 'bad' : 'good';

    const several = traces.length > 1;
    const all = [
        part('curves', 'Curves', curves(traces)),
        part('words', 'Word by word', sentence(trace)),
        part('flow', 'Gradient flow', flows(trace)),
        part('maps', 'Heat maps', heat(trace)),
        part('tape', 'Tape and paths', [graph(trace), pathTable(trace)]),
        part('checks', 'Checks', several ? traces.map(checkTable) : checkTable(trace)),
        part('predictions', 'Predictions', predictionTable(trace)),
        part('run', 'This run', runTable(trace)),
        part('words-used', 'Words', glossary()),
    ].filter(Boolean);
    if (all.length === 2) $('views').append(h('p', null, 'This trace holds no series, matrix, graph or check: there is nothing to draw.'));
    for (const {id, title, box} of all) {
        $('nav').append(h('a', {href: '#' + id, onclick: (e) => { e.preventDefault(); box.scrollIntoView(); box.focus({preventScroll: true}); }}, title));
        $('views').append(box);
    }
}

// ---- the page's own controls

const THEMES = ['system', 'light', 'dark'];
function theme(name) {
    if (name === 'system') delete document.documentElement.dataset.theme; else document.documentElement.dataset.theme = name;
    $('theme').textContent = `Theme: ${name}`;
    document.documentElement.style.colorScheme = isDark() ? 'dark' : 'light';
}
$('theme').addEventListener('click', () => {
    const next = THEMES[(THEMES.indexOf(view.get('theme', 'system', THEMES)) + 1) % THEMES.length];
    view.set('theme', next, 'system');
    theme(next);
    redrawAll();
});
onSystemTheme(() => { theme(view.get('theme', 'system', THEMES)); redrawAll(); });

$('open').addEventListener('click', () => $('file').click());
$('file').addEventListener('change', async (e) => { await openFiles(e.target.files); e.target.value = ''; });
for (const kind of ['dragenter', 'dragover', 'dragleave', 'drop'])
    addEventListener(kind, (e) => {
        e.preventDefault();
        document.body.classList.toggle('over', kind === 'dragenter' || kind === 'dragover');
        if (kind === 'drop') openFiles(e.dataTransfer.files);
    });

$('link').addEventListener('click', async () => {
    try { await navigator.clipboard.writeText(location.href); announce('the link is copied'); $('link').textContent = 'Copied'; }
    catch { announce('the address of this page is the link'); $('link').textContent = 'The address is the link'; }
    setTimeout(() => { $('link').textContent = 'Copy link'; }, 2000);
});

// This page with the shown traces and the view inside: one file that needs nothing else.
$('save').addEventListener('click', async () => {
    const sources = await Promise.all(traces.map(({source}) => typeof source === 'string' ? source : source.text()));
    const safe = (text) => text.replaceAll('<', '\\u003c');
    const put = (page, id, text) => page.replace(new RegExp(`(<script type="application/json" id="${id}">)[^<]*`), (_, head) => head + text);
    let page = put(pristine, 'trace', safe(sources.length === 1 ? sources[0] : `[${sources.join(',')}]`));
    page = put(page, 'view', safe(JSON.stringify(view.hash())));
    download(fileName(traces[0]?.title ?? 'lookback') + '.html', [page], 'text/html');
});
addEventListener('hashchange', () => {
    if (!location.hash.startsWith('#%7B')) return;  // a place on the page, not a view
    view.load(location.hash);
    theme(view.get('theme', 'system', THEMES));
    show();
});

// ---- what came with the page

// A saved page holds a list of traces; each is read alone, so that one that is broken leaves the others.
function inlined() {
    const text = $('trace').textContent.trim();
    if (!text.startsWith('[')) return text ? [text] : [];
    try { return JSON.parse(text).map((one) => JSON.stringify(one)); } catch { return [text]; }
}
async function begin() {
    let saved = '';
    try { saved = JSON.parse($('view').textContent || '""'); } catch { /* no view was saved */ }
    view.load(location.hash || (typeof saved === 'string' ? saved : ''));
    theme(view.get('theme', 'system', THEMES));
    for (const text of inlined()) await open(text, 'the trace in this page');
    $('trace').remove();
    show();
    document.body.dataset.ready = 'true';
}
begin();
