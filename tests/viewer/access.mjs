// For every reader: keyboard alone, light and dark, narrow and wide, colours that survive colour-blindness.
import {rgb, themes} from '../../notebooks/viewer/src/palette.js';
import {check, date, drawAll, equal, holds, quiet, report, tour} from './harness.mjs';

const linear = (c) => c.map((v) => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
const luminance = (c) => { const [r, g, b] = linear(c); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
const contrast = (a, b) => { const [x, y] = [luminance(a), luminance(b)].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05); };
// Machado, Oliveira and Fernandes 2009, severity 1, on linear RGB.
const BLIND = {
    protanopia: [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    deuteranopia: [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
    tritanopia: [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
};
const lab = (l) => {
    const [r, g, b] = l, f = (t) => t > 0.008856 ? Math.cbrt(t) : 7.787 * t + 16 / 116;
    const [x, y, z] = [(0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.9505, 0.2126 * r + 0.7152 * g + 0.0722 * b, (0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.089].map(f);
    return [116 * y - 16, 500 * (x - y), 200 * (y - z)];
};
const apart = (a, b) => Math.hypot(...a.map((v, i) => v - b[i]));
const seen = (hex, m) => lab(m ? m.map((row) => Math.min(1, Math.max(0, row.reduce((s, v, i) => s + v * linear(rgb(hex))[i], 0)))) : linear(rgb(hex)));

export async function access(context) {
    await check('colours: 3 to 1 against the ground, text 4.5 to 1', () => {
        for (const [name, t] of Object.entries(themes)) {
            for (const c of t.series) holds(contrast(rgb(c), rgb(t.ground)) >= 3, `${name}: ${c} has ${contrast(rgb(c), rgb(t.ground)).toFixed(2)}`);
            for (const c of [t.ink, t.dim]) holds(contrast(rgb(c), rgb(t.ground)) >= 4.5, `${name}: ${c}`);
        }
    });
    await check('colours: the three ways of a gradient, and the ends of a signed heat map, differ without colour vision', () => {
        for (const [name, t] of Object.entries(themes))
            for (const [kind, m] of Object.entries({...BLIND, none: null}))
                for (const [a, b] of [[0, 1], [0, 3], [1, 3]].map((p) => p.map((i) => t.series[i])).concat([[t.ends[0], t.ends[4]]]))
                    holds(apart(seen(a, m), seen(b, m)) > 25, `${name}, ${kind}: ${a} and ${b} are ${apart(seen(a, m), seen(b, m)).toFixed(1)} apart`);
    });
    await check('colours: heat ramps grow in lightness all the way', () => {
        for (const [name, t] of Object.entries(themes)) {
            const l = t.ramp.map((c) => seen(c)[0]), sign = Math.sign(l[4] - l[0]);
            for (let i = 1; i < 5; ++i) holds(sign * (l[i] - l[i - 1]) > 4, `${name}: ${l}`);
        }
    });
    await check('markers: no two of the tour\'s series look alike without colour', async () => {
        const p = await report(context, tour);
        await drawAll(p);
        const looks = await p.$$eval('#curve0 .legend .swatch', (all) => all.map((s) => (s.querySelector('path')?.getAttribute('d') ?? '') + s.querySelector('line').getAttribute('stroke-dasharray')));
        equal(new Set(looks).size, looks.length);
        await p.close();
    });

    await check('keyboard alone: every control is reached by Tab, none is a trap, focus is seen', async () => {
        const p = await report(context, tour);
        await drawAll(p);
        const all = await p.$$eval('button, select, input:not([hidden]), a[href], summary, .picture, .scroll', (e) => e.filter((x) => x.offsetParent !== null && !x.disabled && x.type !== 'file').length);
        const reached = new Set();
        let hidden = 0;
        for (let i = 0; i < all + 20; ++i) {
            await p.keyboard.press('Tab');
            const at = await p.evaluate(() => {
                const e = document.activeElement;
                if (e === document.body) return null;
                window.known ??= new Map();
                if (!window.known.has(e)) window.known.set(e, window.known.size);
                return [window.known.get(e), getComputedStyle(e).outlineStyle !== 'none'];
            });
            if (!at) break;
            reached.add(at[0]);
            if (!at[1]) ++hidden;
        }
        holds(reached.size >= all, `${reached.size} of ${all} were reached`);
        equal(hidden, 0, 'controls without a visible focus');
        await p.close();
    });
    await check('keyboard alone: open a file, hide a series, read a value, open a table, change the theme', async () => {
        const p = await report(context, date);
        await p.focus('#open');
        const asked = p.waitForEvent('filechooser');
        await p.waitForTimeout(300);  // until the browser has been told to ask us
        await p.keyboard.press('Enter');
        const chooser = await asked;
        await chooser.setFiles({name: 'tour.json', mimeType: 'application/json', buffer: Buffer.from(JSON.stringify(tour))});
        await p.waitForSelector('body[data-traces="2"]');
        await drawAll(p);
        await p.focus('#curve1 .legend input');
        await p.keyboard.press('Space');
        equal(await p.$eval('#curve1 .legend input', (e) => [e.checked, e === document.activeElement]), [false, true]);
        await p.keyboard.press('Space');
        await p.focus('#curve1 .picture');
        for (const key of ['ArrowRight', 'ArrowRight', 'ArrowDown', 'End', 'ArrowLeft']) await p.keyboard.press(key);
        const lstm = tour.series.find((s) => s.name === 'LSTM'), n = lstm.y.length;
        equal(await p.textContent('#announcer'), `LSTM\ntoken ${n - 1} “${tour.tokens[n - 2]}”\n‖∂L/∂h_t‖ = ${lstm.y[n - 2]}`);
        await p.focus('#curve1 summary');
        await p.keyboard.press('Enter');
        await p.waitForSelector('#curve1 table');
        await p.focus('#theme');
        await p.keyboard.press('Enter');
        equal(await p.$eval('html', (e) => e.dataset.theme), 'light');
        await quiet(p);
        await p.close();
    });
    for (const scheme of ['light', 'dark']) for (const width of [360, 1440])
        await check(`${scheme}, ${width} px: nothing is wider than the page, no label lies on another or is cut`, async () => {
            for (const trace of [tour, date]) {
                const p = await report(context, trace, {width, scheme});
                await drawAll(p);
                const wrong = await p.evaluate(() => {
                    const bad = [];
                    if (document.documentElement.scrollWidth > innerWidth) bad.push(`the page is ${document.documentElement.scrollWidth} wide`);
                    for (const svg of document.querySelectorAll('.picture > svg')) {
                        const box = svg.getBoundingClientRect();
                        const plain = [...svg.querySelectorAll('text')].filter((t) => t.textContent.trim() && !t.getAttribute('transform')?.includes('rotate'));
                        const at = plain.map((t) => t.getBoundingClientRect());
                        at.forEach((a, i) => {
                            if (a.left < box.left - 1 || a.right > box.right + 1 || a.top < box.top - 1 || a.bottom > box.bottom + 1) bad.push(`cut: ${plain[i].textContent} in ${svg.closest('figure').id}`);
                            for (let j = i + 1; j < at.length; ++j) {
                                const b = at[j], w = Math.min(a.right, b.right) - Math.max(a.left, b.left), h = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
                                if (w > 1 && h > 3) bad.push(`on each other: ${plain[i].textContent} and ${plain[j].textContent} in ${svg.closest('figure').id}`);
                            }
                        });
                        if ([...svg.querySelectorAll('text')].some((t) => parseFloat(getComputedStyle(t).fontSize) < 9)) bad.push('text below 9 px');
                    }
                    return bad;
                });
                equal(wrong, []);
                const [ground, ink] = await p.evaluate(() => [getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color].map((c) => c.match(/\d+/g).map(Number)));
                holds(contrast(ground, ink) > 10 && (luminance(ground) < 0.1) === (scheme === 'dark'), `${ground} under ${ink}`);
                equal(await p.$eval('#curve0 .picture [aria-label="line"]', (g) => g.getAttribute('stroke')), themes[scheme].series[0]);
                await quiet(p);
                await p.close();
            }
        });
    await check('a change of the system\'s theme, and of the window\'s width, redraws', async () => {
        const p = await report(context, tour, {width: 1440});
        await drawAll(p);
        await p.emulateMedia({colorScheme: 'dark'});
        await p.waitForFunction((c) => document.querySelector('#curve0 .picture [aria-label="line"]').getAttribute('stroke') === c, themes.dark.series[0]);
        await p.setViewportSize({width: 500, height: 800});
        await p.waitForFunction(() => +document.querySelector('#curve0 .picture svg').getAttribute('width') < 500);
        await p.close();
    });
}
