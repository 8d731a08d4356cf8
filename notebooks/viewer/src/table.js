// A table of any length, a page at a time; all of it as CSV.
import {download, exact, fileName, h} from './dom.js';

const PAGE = 200;
const quoted = (x) => /[",\n\r]/.test(x) ? `"${x.replaceAll('"', '""')}"` : x;

// {caption, columns: [{name, number}], length, cell(i, j) → number or text, row?(i) → class, show?(i, j) → node}
export function table({caption, columns, length, cell, row, show}) {
    const body = h('tbody'), where = h('span', {'aria-live': 'polite'});
    let page = 0;
    const pages = Math.max(1, Math.ceil(length / PAGE));
    const fill = () => {
        body.replaceChildren();
        for (let i = page * PAGE; i < Math.min(length, (page + 1) * PAGE); ++i)
            body.append(h('tr', {class: row?.(i)}, columns.map((column, j) =>
                h(j ? 'td' : 'th', {scope: j ? null : 'row', class: column.number ? 'number' : null}, show?.(i, j) ?? exact(cell(i, j))))));
        where.textContent = `rows ${length ? page * PAGE + 1 : 0} to ${Math.min(length, (page + 1) * PAGE)} of ${length.toLocaleString('en')}`;
    };
    const turn = (by) => { page = (page + by + pages) % pages; fill(); };
    const csv = () => {
        const lines = [columns.map((c) => quoted(c.name)).join(',')];
        for (let i = 0; i < length; ++i) lines.push(columns.map((_, j) => quoted(String(cell(i, j)))).join(','));
        download(fileName(caption) + '.csv', [lines.join('\n') + '\n'], 'text/csv');
    };
    fill();
    return h('div', {class: 'table'},
        h('div', {class: length > 60 ? 'scroll long' : 'scroll', tabindex: 0, role: 'region', 'aria-label': caption},
            h('table', null, h('caption', null, caption),
                h('thead', null, h('tr', null, columns.map((c) => h('th', {scope: 'col', class: c.number ? 'number' : null}, c.name)))), body)),
        h('p', {class: 'turn'},
            pages > 1 && [h('button', {type: 'button', onclick: () => turn(-1)}, 'previous'), h('button', {type: 'button', onclick: () => turn(1)}, 'next')],
            where, h('button', {type: 'button', onclick: csv}, 'CSV')));
}
