// A trace as text → a trace that the page can draw. engine/trace.schema.json is the form; what does not fit is refused in
// one sentence that says where. Runs in a worker, so that 50 MB of text freeze nothing.

const SCHEMA = 'lookback-trace/1';
const WORDS = {NaN: NaN, Infinity: Infinity, '-Infinity': -Infinity};  // the three that JSON lacks
const KINDS = ['eq', 'le', 'ge', 'slope', 'exact0', 'target'];

export class TraceError extends Error {}
const refuse = (where, what) => { throw new TraceError(where ? `${where}: ${what}` : what); };

function described(value) {
    if (value === null || value === undefined) return value === null ? 'null' : 'nothing';
    if (Array.isArray(value)) return 'a list';
    if (typeof value === 'object') return 'an object';
    return JSON.stringify(typeof value === 'string' ? value.slice(0, 40) : value);
}
const want = (ok, where, what, value) => ok || refuse(where, `${what} is wanted, not ${described(value)}`);

const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);
const isCount = (value) => Number.isSafeInteger(value) && value >= 0;

function text(value, where) { want(typeof value === 'string', where, 'a text', value); return value; }
function texts(value, where) { list(value, where).forEach((v, i) => text(v, `${where}[${i}]`)); return value; }
function object(value, where) { want(isObject(value), where, 'an object', value); return value; }
function list(value, where) { want(Array.isArray(value), where, 'a list', value); return value; }
function seed(value, where) {  // up to 2⁶³, where a JavaScript number no longer tells neighbours apart
    want(Number.isInteger(value) && value >= 0, where, 'a whole number', value);
    return Number.isSafeInteger(value) ? String(value) : `about ${value}`;
}
function flag(value, where) { want(typeof value === 'boolean', where, 'true or false', value); return value; }
function count(value, where) { want(isCount(value), where, 'a whole number', value); return value; }

function number(value, where) {
    if (typeof value === 'number') return value;
    want(typeof value === 'string' && Object.hasOwn(WORDS, value), where, 'a number', value);
    return WORDS[value];
}
function numbers(value, where) {
    list(value, where);
    const out = new Float64Array(value.length);
    for (let i = 0; i < value.length; ++i)
        out[i] = typeof value[i] === 'number' ? value[i] : number(value[i], `${where}[${i}]`);
    return out;
}
// A flag of the run, a guess: a text that spells one of the three words is that number.
function plain(value, where) {
    want(['boolean', 'number', 'string'].includes(typeof value), where, 'a number, a text, true or false', value);
    return Object.hasOwn(WORDS, value) ? WORDS[value] : value;
}
const optional = (value, read, where, otherwise) => value === undefined ? otherwise : read(value, where);
const sameLength = (a, b, where, what) => a === b || refuse(where, `${what}: ${a} and ${b}`);

function series(v, at) {
    object(v, at);
    const s = {
        name: text(v.name, `${at}.name`),
        xLabel: text(v.x_label, `${at}.x_label`), xUnit: optional(v.x_unit, text, `${at}.x_unit`, ''),
        yLabel: text(v.y_label, `${at}.y_label`), yUnit: optional(v.y_unit, text, `${at}.y_unit`, ''),
        x: numbers(v.x, `${at}.x`), y: numbers(v.y, `${at}.y`),
        labels: optional(v.labels, texts, `${at}.labels`, []),
    };
    sameLength(s.x.length, s.y.length, at, 'x and y differ in length');
    if (s.labels.length) sameLength(s.labels.length, s.x.length, at, 'labels and x differ in length');
    return s;
}

function matrix(v, at) {
    object(v, at);
    const shape = list(v.shape, `${at}.shape`);
    sameLength(shape.length, 2, `${at}.shape`, 'a matrix has two sizes');
    shape.forEach((n, i) => count(n, `${at}.shape[${i}]`));
    const m = {
        name: text(v.name, `${at}.name`), shape,
        rowLabel: optional(v.row_label, text, `${at}.row_label`, ''),
        columnLabel: optional(v.column_label, text, `${at}.column_label`, ''),
        rows: optional(v.rows, texts, `${at}.rows`, []), columns: optional(v.columns, texts, `${at}.columns`, []),
        data: numbers(v.data, `${at}.data`),
    };
    sameLength(m.data.length, shape[0] * shape[1], `${at}.data`, 'the shape asks for another number of values');
    if (m.rows.length) sameLength(m.rows.length, shape[0], `${at}.rows`, 'labels and rows differ in number');
    if (m.columns.length) sameLength(m.columns.length, shape[1], `${at}.columns`, 'labels and columns differ in number');
    return m;
}

function path(v, at) {
    object(v, at);
    return {
        from: text(v.from, `${at}.from`), to: text(v.to, `${at}.to`), reached: flag(v.reached, `${at}.reached`),
        shortest: count(v.shortest, `${at}.shortest`), longest: count(v.longest, `${at}.longest`),
        log2Count: number(v.log2_count, `${at}.log2_count`),
    };
}

function prediction(v, at) {
    object(v, at);
    return {name: text(v.name, `${at}.name`), guess: plain(v.guess, `${at}.guess`), measured: plain(v.measured, `${at}.measured`)};
}

function check(v, at) {
    object(v, at);
    want(KINDS.includes(v.kind), `${at}.kind`, `one of ${KINDS.join(', ')}`, v.kind);
    return {
        id: text(v.id, `${at}.id`), claim: text(v.claim, `${at}.claim`), kind: v.kind,
        measured: number(v.measured, `${at}.measured`), theory: number(v.theory, `${at}.theory`),
        tolerance: number(v.tolerance, `${at}.tolerance`), pass: flag(v.pass, `${at}.pass`), source: text(v.source, `${at}.source`),
    };
}

function graph(v, at) {
    object(v, at);
    const records = list(v.records, `${at}.records`).map((r, i) => {
        const where = `${at}.records[${i}]`;
        object(r, where);
        const inputs = list(r.inputs, `${where}.inputs`);
        inputs.forEach((from, k) => want(Number.isInteger(from) && from >= -1 && from < i, `${where}.inputs[${k}]`, 'an earlier record, or -1', from));
        list(r.shape, `${where}.shape`).forEach((n, k) => count(n, `${where}.shape[${k}]`));
        return {
            op: text(r.op, `${where}.op`), label: optional(r.label, text, `${where}.label`, ''), inputs, shape: r.shape,
            norm: optional(r.norm, number, `${where}.norm`), barNorm: optional(r.bar_norm, number, `${where}.bar_norm`),
        };
    });
    const edges = list(v.edges, `${at}.edges`).map((e, i) => {
        const where = `${at}.edges[${i}]`;
        object(e, where);
        const to = records[count(e.to, `${where}.to`)];
        if (!to || to.inputs[count(e.input, `${where}.input`)] !== count(e.from, `${where}.from`)) refuse(where, 'there are no such records');
        return {from: e.from, to: e.to, norm: number(e.norm, `${where}.norm`)};
    });
    return {name: optional(v.name, text, `${at}.name`, ''), records, edges, ...distances(records)};
}

// From each record to the last one, the loss: the shortest and the longest path, in ops, and log₂ of the number of paths.
// Records stand in topological order, so one pass downwards is enough. −1: no path.
function distances(records) {
    const n = records.length;
    const shortest = new Int32Array(n).fill(-1), longest = new Int32Array(n).fill(-1), next = new Int32Array(n).fill(-1), nextLongest = new Int32Array(n).fill(-1);
    const log2Count = new Float64Array(n).fill(-Infinity);
    if (n) shortest[n - 1] = longest[n - 1] = log2Count[n - 1] = 0;
    for (let to = n - 1; to >= 0; --to) {
        if (shortest[to] < 0) continue;
        for (const from of records[to].inputs) {
            if (from < 0) continue;
            if (shortest[from] < 0 || shortest[to] + 1 < shortest[from]) { shortest[from] = shortest[to] + 1; next[from] = to; }
            if (longest[to] + 1 > longest[from]) { longest[from] = longest[to] + 1; nextLongest[from] = to; }
            const [big, small] = log2Count[from] > log2Count[to] ? [log2Count[from], log2Count[to]] : [log2Count[to], log2Count[from]];
            log2Count[from] = big + Math.log2(1 + 2 ** (small - big));
        }
    }
    return {shortest, longest, next, nextLongest, log2Count};
}

const each = (value, read, where) => list(value, where).map((v, i) => read(v, `${where}[${i}]`));

export function readTrace(source) {
    if (!source.trim()) refuse('', 'the file is empty');
    let v;
    try {
        v = JSON.parse(source);
    } catch (error) {
        if (error instanceof SyntaxError) refuse('', `this is not JSON (${error.message.slice(0, 120)})`);
        refuse('', 'this is nested too deeply, or too large, to be read');
    }
    if (!isObject(v)) refuse('', `a trace is an object, not ${described(v)}`);
    if (v.schema !== SCHEMA) {
        const [, family, version] = /^(lookback-trace)\/(\d+)$/.exec(v.schema) ?? [];
        if (family && +version > 1) refuse('', `this trace is of a later version (${v.schema}); this page reads ${SCHEMA}. Take the page that came with the newer lessons`);
        refuse('', v.schema === undefined ? `this is JSON, but no trace: it has no "schema": "${SCHEMA}"` : `"schema" is ${described(v.schema)}; this page reads "${SCHEMA}"`);
    }
    const build = object(v.build, 'build');
    return {
        lesson: text(v.lesson, 'lesson'),
        seed: seed(v.seed, 'seed'),
        real: text(v.real, 'real'),
        config: Object.entries(object(v.config, 'config')).map(([k, x]) => [k, plain(x, `config.${k}`)]),
        build: {
            compiler: text(build.compiler, 'build.compiler'), blasKernel: text(build.blas_kernel, 'build.blas_kernel'),
            threads: count(build.threads, 'build.threads'), native: flag(build.native, 'build.native'),
        },
        tokens: texts(v.tokens, 'tokens'),
        series: each(v.series, series, 'series'),
        matrices: each(v.matrices, matrix, 'matrices'),
        paths: each(v.paths, path, 'paths'),
        predictions: each(v.predictions, prediction, 'predictions'),
        checks: each(v.checks, check, 'checks'),
        graph: optional(v.graph, graph, 'graph', null),
        timings: Object.entries(optional(v.timings, object, 'timings', {})).map(([k, x]) => [k, number(x, `timings.${k}`)]),
    };
}
