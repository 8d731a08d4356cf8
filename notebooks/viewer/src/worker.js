// Reads one trace and ends. The text comes as a string or as a file.
import {readTrace, TraceError} from './trace.js';

onmessage = async ({data}) => {
    try {
        postMessage({trace: readTrace(typeof data === 'string' ? data : await data.text())});
    } catch (error) {
        postMessage({error: error instanceof TraceError ? error.message : `it cannot be read (${error.message})`});
    }
};
