// What the reader has chosen: axes, hidden series, t, theme. A flat map, kept behind the # of the address, so that a link (or a
// saved page) restores the view. What a link brings is checked where it is used.

const MOST = 20_000;  // characters of a link
let chosen = Object.create(null);
const listeners = new Map();

export function load(hash) {
    chosen = Object.create(null);
    try {
        const found = JSON.parse(decodeURIComponent(hash.replace(/^#/, '').slice(0, MOST)));
        if (typeof found !== 'object' || found === null || Array.isArray(found)) return;
        for (const [key, value] of Object.entries(found))
            if (['string', 'number', 'boolean'].includes(typeof value)) chosen[key] = value;
    } catch { /* a hash that is no view: the default view */ }
}

export function hash() { return Object.keys(chosen).length ? '#' + encodeURIComponent(JSON.stringify(chosen)) : ''; }

// The value if it is one of `allowed` (a list or a test), else the default.
export function get(key, otherwise, allowed = () => true) {
    const value = chosen[key];
    if (value === undefined || typeof value !== typeof otherwise) return otherwise;
    return (Array.isArray(allowed) ? allowed.includes(value) : allowed(value)) ? value : otherwise;
}

export function set(key, value, otherwise) {
    if (value === otherwise) delete chosen[key]; else chosen[key] = value;
    const link = hash();
    if (link.length < MOST) history.replaceState(null, '', link || location.pathname + location.search);
    for (const f of listeners.get(key) ?? []) f(value);
}

export function listen(key, f) {
    if (!listeners.has(key)) listeners.set(key, new Set());
    listeners.get(key).add(f);
}
export const forget = () => listeners.clear();
