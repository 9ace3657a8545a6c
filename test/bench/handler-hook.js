// Loaded before a worker of a bench, and its delivery process: the module BENCH_HANDLER takes the place of the fork's
// handler. The stage reads in BENCH_HANDLER_TAKEN whether it did.
import { writeFileSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { pathToFileURL } from 'node:url';

const HANDLER = new URL('../../src/integration/handler.ts', import.meta.url).href;
const { BENCH_HANDLER, BENCH_HANDLER_TAKEN } = process.env;

registerHooks({
  resolve(specifier, context, next) {
    const found = next(specifier, context);
    if (found.url !== HANDLER) return found;
    writeFileSync(BENCH_HANDLER_TAKEN, '');
    return { url: pathToFileURL(BENCH_HANDLER).href, format: 'module-typescript', shortCircuit: true };
  },
});
