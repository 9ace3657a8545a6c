// The search index has a measure of its own (`million`): a worker that loads this does not index. BENCH_HANDLER is the
// file of a handler in place of the fork's.
import { accessSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { pathToFileURL } from 'node:url';

const CONSUMER = new URL('../../src/changes/search-consumer.ts', import.meta.url);
const HANDLER = new URL('../../src/integration/handler.ts', import.meta.url).href;
const NOTHING =
  'data:text/javascript,export const searchConsumer = () => ({ name: "search", whileActive: false, async take() {} })';
const { BENCH_HANDLER } = process.env;

// The hook would look for a moved file in vain, and nobody would notice.
accessSync(CONSUMER);
registerHooks({
  resolve(specifier, context, next) {
    const found = next(specifier, context);
    if (found.url === CONSUMER.href) return { url: NOTHING, format: 'module', shortCircuit: true };
    if (found.url !== HANDLER || BENCH_HANDLER === undefined) return found;
    return { url: pathToFileURL(BENCH_HANDLER).href, format: 'module-typescript', shortCircuit: true };
  },
});
