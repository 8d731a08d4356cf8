// Series named "value share", "score share", "recurrence share" (and what else tells one set from another): which way a gradient came.

const WAYS = ['value', 'score', 'recurrence'];
export const WAY = /\b(value|score|recurrence) share\b/i;

// [{name, ways, series: [value, score, recurrence]}], those that are there.
export function shareSets(trace) {
    const sets = new Map();
    for (const series of trace.series) {
        const way = WAY.exec(series.name)?.[1].toLowerCase();
        if (!way) continue;
        const name = series.name.replace(WAY, '').replace(/^[\s,:·]+|[\s,:·]+$/g, '');
        if (!sets.has(name)) sets.set(name, {name, parts: {}});
        sets.get(name).parts[way] ??= series;
    }
    return [...sets.values()].map(({name, parts}) => {
        const ways = WAYS.filter((w) => parts[w]);
        return {name, ways, series: ways.map((w) => parts[w])};
    }).filter(({series}) => series[0].y.length > 0 && series.every((one) => one.y.length === series[0].y.length));
}
