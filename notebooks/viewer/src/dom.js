// Making elements, and writing numbers and strangers' text on them. Text only ever becomes text nodes.

function make(element, attributes, children) {
    for (const [name, value] of Object.entries(attributes ?? {})) {
        if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
        else if (value === true) element.setAttribute(name, '');
        else if (value !== false && value !== undefined && value !== null) element.setAttribute(name, value);
    }
    element.append(...children.flat().filter((c) => c !== null && c !== undefined && c !== false));
    return element;
}
export const h = (tag, attributes, ...children) => make(document.createElement(tag), attributes, children);
export const s = (tag, attributes, ...children) => make(document.createElementNS('http://www.w3.org/2000/svg', tag), attributes, children);

// Controls are shown as their pictures, marks that turn the direction of writing are left out, long text is cut.
export function printable(text, most = 60) {
    const clean = text.slice(0, 4 * most).replace(/[\u202a-\u202e\u2066-\u2069\u200e\u200f]/g, '')
        .replace(/[\u0000-\u001f]/g, (c) => String.fromCharCode(0x2400 + c.charCodeAt(0))).replace(/[\u007f-\u009f]/g, '�');
    const letters = Array.from(clean);
    return letters.length > most || text.length > 4 * most ? letters.slice(0, most - 1).join('') + '…' : letters.join('') || '␣';
}
export const token = (text, most = 14) => text === ' ' ? '␣' : printable(text, most);

export const exact = (x) => typeof x === 'number' ? String(x) : typeof x === 'boolean' ? String(x) : printable(x, 200);

export function short(x) {
    if (typeof x !== 'number') return exact(x);
    if (x === 0 || !Number.isFinite(x)) return String(x);
    const size = Math.abs(x);
    if (size >= 1e-3 && size < 1e6) return String(+x.toPrecision(5));
    return x.toExponential(4).replace(/\.?0+e/, 'e');
}

const RAISED = {'-': '⁻', 0: '⁰', 1: '¹', 2: '²', 3: '³', 4: '⁴', 5: '⁵', 6: '⁶', 7: '⁷', 8: '⁸', 9: '⁹'};
export const power = (exponent) => '10' + [...String(exponent)].map((c) => RAISED[c]).join('');

let canvas;
export function textWidth(text, size = 12, weight = '') {
    canvas ??= document.createElement('canvas').getContext('2d');
    canvas.font = `${weight} ${size}px ${FONT}`;
    return canvas.measureText(text).width;
}
export const FONT = '"DejaVu Sans", Verdana, "Segoe UI", system-ui, sans-serif';

let announcer;
export function announce(text) {
    announcer ??= document.getElementById('announcer');
    announcer.textContent = text;
}

export function download(name, parts, type) {
    const url = URL.createObjectURL(new Blob(parts, {type}));
    h('a', {href: url, download: name}).click();
    setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
export const fileName = (text) => text.replace(/[^\p{L}\p{N}]+/gu, '-').replace(/^-+|-+$/g, '').slice(0, 60) || 'figure';
