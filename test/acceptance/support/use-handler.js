// Loaded before an entry point: puts the handlers of TEST_HANDLER and TEST_EVENTS, or none, in place of the fork's.
import { registerHooks } from 'node:module';
import { pathToFileURL } from 'node:url';

const { TEST_HANDLER, TEST_EVENTS } = process.env;
const own = (file) => new URL(`../../../src/integration/${file}`, import.meta.url).href;
const OURS = new Map([
  [own('handler.ts'), TEST_HANDLER],
  [own('events.ts'), TEST_EVENTS],
]);
const NONE = 'data:text/javascript,export const [onChanges, onEvent] = [];';

registerHooks({
  resolve(specifier, context, next) {
    const found = next(specifier, context);
    if (!OURS.has(found.url)) return found;
    const path = OURS.get(found.url);
    const url = path === undefined ? NONE : pathToFileURL(path).href;
    return { url, format: path === undefined ? 'module' : 'module-typescript', shortCircuit: true };
  },
});
