// Loaded before an entry point: tests must not reach the fork's systems. It replaces src/integration's handler.ts and
// events.ts by the files that TEST_HANDLER and TEST_EVENTS name, else by none, settings.ts by the file that TEST_SETTINGS
// names, else by an empty one, and resources.ts by the file that TEST_RESOURCES names, else by the usual lists, and the
// fork's pages by none.
import { registerHooks } from 'node:module';
import { pathToFileURL } from 'node:url';

const { TEST_HANDLER, TEST_EVENTS, TEST_SETTINGS, TEST_RESOURCES } = process.env;
const NONE = 'data:text/javascript,export const [onChanges, onEvent, OWN_VIEWS] = [];';
const urlOf = (path) => (path === undefined ? NONE : pathToFileURL(path).href);
const REPLACED = {
  handler: urlOf(TEST_HANDLER),
  events: urlOf(TEST_EVENTS),
  settings: TEST_SETTINGS ? urlOf(TEST_SETTINGS) : new URL('no-settings.ts', import.meta.url).href,
  resources: TEST_RESOURCES ? urlOf(TEST_RESOURCES) : new URL('usual-resources.ts', import.meta.url).href,
  'own-views': NONE,
};

registerHooks({
  resolve(specifier, context, next) {
    const found = next(specifier, context);
    const [, name] =
      /\/src\/(?:integration\/)?(handler|events|settings|resources|own-views)\.ts$/.exec(found.url) ?? [];
    if (name === undefined) return found;
    const url = REPLACED[name];
    return { url, format: url === NONE ? 'module' : 'module-typescript', shortCircuit: true };
  },
});
