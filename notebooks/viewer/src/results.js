// What a run claims: checks with their verdicts, the learner's predictions, and the run's settings.
import {exact, h, printable, short} from './dom.js';
import {table} from './table.js';

const SIGNS = {eq: '=', le: '≤', ge: '≥', slope: '≈', exact0: '= 0', target: '~'};
const RULES = {
    eq: '|measured − theory| ≤ tolerance · max(1, |theory|)', le: 'measured ≤ theory + tolerance', ge: 'measured ≥ theory − tolerance',
    slope: '|measured − theory| ≤ tolerance', exact0: 'measured is exactly 0', target: 'reported; a miss does not fail the run',
};
const verdict = (c) => c.pass ? '✓ holds' : c.kind === 'target' ? '~ differs' : '✗ FAILS';

export function verdicts({checks}) {
    const count = {holds: 0, differs: 0, fails: 0};
    for (const c of checks) ++count[c.pass ? 'holds' : c.kind === 'target' ? 'differs' : 'fails'];
    return count;
}
export function inWords(trace) {
    const {holds, differs, fails} = verdicts(trace), n = trace.checks.length;
    return n ? `${holds} of ${n} checks hold${differs ? `, ${differs} differ${differs === 1 ? 's' : ''}` : ''}${fails ? `, ${fails} FAIL${fails === 1 ? 'S' : ''}` : ''}` : 'no checks';
}

export function checkTable(trace) {
    const {checks} = trace;
    if (!checks.length) return null;
    return table({
        caption: `Checks of ${printable(trace.title, 60)}: ${inWords(trace)}`, length: checks.length,
        columns: [{name: 'claim'}, {name: 'measured', number: true}, {name: 'must be'}, {name: 'theory', number: true}, {name: 'tolerance', number: true}, {name: 'verdict'}, {name: 'source'}],
        cell: (i, j) => { const c = checks[i]; return [c.claim, c.measured, SIGNS[c.kind], c.theory, c.tolerance, verdict(c), c.source][j]; },
        row: (i) => checks[i].pass ? 'good' : checks[i].kind === 'target' ? 'near' : 'bad',
        show(i, j) {
            const c = checks[i];
            if (j === 0) return [printable(c.claim, 120), h('small', null, printable(c.id, 60))];
            if (j === 1 || j === 3 || j === 4) return h('span', {title: exact([c.measured, 0, c.theory, c.tolerance][j - 1])}, short([c.measured, 0, c.theory, c.tolerance][j - 1]));
            if (j === 2) return h('abbr', {title: RULES[c.kind]}, SIGNS[c.kind]);
            return j === 5 ? h('strong', null, verdict(c)) : printable(c.source, 80);
        },
    });
}

function apart(guess, measured) {
    if (typeof guess !== 'number' || typeof measured !== 'number') return guess === measured ? 'right' : 'another';
    if (guess === measured) return 'exactly';
    if (guess > 0 && measured > 0) return guess > measured ? `${short(guess / measured)} times too large` : `${short(measured / guess)} times too small`;
    return `off by ${short(guess - measured)}`;
}
export function predictionTable(trace) {
    const all = trace.predictions;
    if (!all.length) return null;
    return table({
        caption: 'What was predicted, and what was measured', length: all.length,
        columns: [{name: 'question'}, {name: 'predicted', number: true}, {name: 'measured', number: true}, {name: 'the prediction was'}],
        cell: (i, j) => [all[i].name, all[i].guess, all[i].measured, apart(all[i].guess, all[i].measured)][j],
    });
}

// At the top: what was run, in the run's own words.
export function about(trace) {
    const config = new Map(trace.config), words = trace.tokens.slice(0, 40).join(' ');
    return [config.get('title'), words && `Text: “${words}${trace.tokens.length > 40 ? ' …' : ''}”.`, config.has('loss') && `Loss: L = ${config.get('loss')}.`, config.has('weights') && `Weights: ${config.get('weights')}.`]
        .filter(Boolean).map((s) => printable(String(s), 400)).join(' ');
}

const WORDS = [
    ['L', 'the loss: a number that says how wrong the model is'],
    ['h_t', 'the state of a recurrent network after word t: all that it hands on (an LSTM also hands on its cell, c_t)'],
    ['‖∂L/∂h_t‖', 'the length of the gradient at h_t: how much L can still move if h_t moves. Near 0, nothing is learned from word t'],
    ['gates', 'numbers between 0 and 1 by which an LSTM or a GRU multiplies what it keeps. Near 1 a gradient passes nearly whole'],
    ['attention: α, context', 'the weights α say how much of each state’s value is mixed into one vector, the context, from which the model answers. A score says how well a state fits the query; softmax makes weights of scores'],
    ['value, score, recurrence', 'the ways by which a gradient reaches a state: as what was mixed, as what decided the weights, or through the next state'],
    ['ȳ', 'the gradient ∂L/∂y of a recorded value y; ‖ȳ‖ is its length'],
    ['path, op', 'a way through the recorded operations (ops) from a value to the loss. A gradient is the sum over all paths of the product of slopes along each: more paths are not more strength, and a fused step counts as one op'],
];
export const glossary = () => h('dl', null, WORDS.flatMap(([word, meaning]) => [h('dt', null, word), h('dd', null, meaning)]));

export function runTable(trace) {
    const {build} = trace;
    const all = [['lesson', trace.lesson], ['seed', trace.seed], ['numbers', trace.real], ...trace.config, ['compiler', build.compiler], ['BLAS kernel', build.blasKernel], ['BLAS threads', build.threads],
        ['for this machine only', build.native], ...trace.timings.map(([k, v]) => [`${k} (seconds)`, v])];
    return table({caption: 'Settings of the run', length: all.length, columns: [{name: 'what'}, {name: 'value'}], cell: (i, j) => all[i][j]});
}
