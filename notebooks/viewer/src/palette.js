// Colours that survive colour-blindness: the hues of Okabe and Ito, darkened where they stand on white so that each has a
// contrast of 3 to the ground. No meaning rests on colour alone: series also differ in markers, theory and further traces in dashes.

const light = {
    ground: '#ffffff', ink: '#1d2329', dim: '#5b6670', rule: '#d9dee3',
    series: ['#0072b2', '#c84e00', '#007a5a', '#4a4f55', '#8a6a00', '#2f86c4', '#a8508a'],
    ramp: ['#f7fafc', '#c6dbef', '#6baed6', '#2171b5', '#08306b'],
    ends: ['#a34400', '#e8a06a', '#f5f5f5', '#7fb4dc', '#00538a'],  // negative … 0 … positive
};
const dark = {
    ground: '#14181d', ink: '#e8ecf0', dim: '#9aa7b3', rule: '#343c45',
    series: ['#56b4e9', '#e8853a', '#2fbf94', '#d5d9dd', '#e6c229', '#8fb0ff', '#dd92bd'],
    ramp: ['#1b222a', '#1f4468', '#2f78b3', '#7db8e6', '#e4f2ff'],
    ends: ['#ffb27a', '#9a5326', '#22292f', '#2f6d9e', '#9fd4ff'],
};
export const themes = {light, dark};

export const rgb = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));

// t in [0, 1] along the stops, as [r, g, b].
export function along(stops, t) {
    const at = Math.max(0, Math.min(1, t)) * (stops.length - 1), i = Math.min(Math.floor(at), stops.length - 2);
    const a = rgb(stops[i]), b = rgb(stops[i + 1]);
    return a.map((v, k) => Math.round(v + (b[k] - v) * (at - i)));
}
export const css = ([r, g, b]) => `rgb(${r},${g},${b})`;
