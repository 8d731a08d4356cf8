// Chromium without a window, in a folder of its own that is gone afterwards. For the gallery and the tests.
import {existsSync, mkdtempSync, readFileSync, rmSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {fileURLToPath} from 'node:url';
import {chromium} from 'playwright-core';

export const PAGE = fileURLToPath(new URL('viewer.html', import.meta.url));

export async function browser(use, options = {}) {
    const executablePath = process.env.CHROMIUM ?? ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(existsSync);
    if (!executablePath) throw new Error('chromium is missing (CHROMIUM=PATH names another one)');
    const profile = mkdtempSync(join(tmpdir(), 'lookback-viewer-'));
    const context = await chromium.launchPersistentContext(profile, {
        executablePath, headless: true, acceptDownloads: true,
        args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
        ...options,
    });
    try {
        return await use(context);
    } finally {
        await context.close();
        rmSync(profile, {recursive: true, force: true, maxRetries: 5});
    }
}

// The page with a trace inside, as lessons/report.cpp makes it.
export function inlined(trace) {
    return readFileSync(PAGE, 'utf8').replace('id="trace">', () => 'id="trace">' + trace.replaceAll('<', '\\u003c'));
}
