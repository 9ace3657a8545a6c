// The search index has a measure of its own (`million`): a worker that loads this does not index.
import { registerHooks } from 'node:module';

const DELIVER = new URL('../../jobs/deliver.ts', import.meta.url).href;
const NOTHING = 'data:text/javascript,export async function deliverJob() {}';

registerHooks({
  resolve(specifier, context, next) {
    const found = next(specifier, context);
    return found.url === DELIVER ? { url: NOTHING, format: 'module', shortCircuit: true } : found;
  },
});
