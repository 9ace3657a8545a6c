// Loaded before an entry point: puts the handler of TEST_HANDLER, or none, in place of the fork's.
import { registerHooks } from 'node:module';
import { pathToFileURL } from 'node:url';

const { TEST_HANDLER } = process.env;
const OWN = new URL('../../../src/integration/handler.ts', import.meta.url).href;
const NONE = 'data:text/javascript,export const onChanges = undefined;';

registerHooks({
  resolve(specifier, context, next) {
    const found = next(specifier, context);
    if (found.url !== OWN) return found;
    const url = TEST_HANDLER === undefined ? NONE : pathToFileURL(TEST_HANDLER).href;
    return { url, format: TEST_HANDLER === undefined ? 'module' : 'module-typescript', shortCircuit: true };
  },
});
