// The colours of now: the reader's theme, or the system's.
import {themes} from './palette.js';

export * from './palette.js';
export const SYMBOLS = ['circle', 'square', 'triangle', 'diamond', 'star', 'cross', 'wye'];
export const DASHES = ['none', '9 4', '9 3 2 3', '4 3'];  // of the first trace, the second, …
export const THEORY_DASH = '1.5 3.5';

const system = matchMedia('(prefers-color-scheme: dark)');
export const isDark = () => (document.documentElement.dataset.theme ?? (system.matches ? 'dark' : 'light')) === 'dark';
export const colours = () => themes[isDark() ? 'dark' : 'light'];
export const onSystemTheme = (f) => system.addEventListener('change', f);
