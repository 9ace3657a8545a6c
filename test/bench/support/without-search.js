// Loaded before a worker: what the search index costs is measured apart. Its jobs come, and do nothing.
import { registerHooks } from 'node:module';

const DELIVER = new URL('../../../jobs/deliver.ts', import.meta.url).href;
const NOTHING = 'data:text/javascript,export async function deliverJob() {}';

registerHooks({
  resolve(specifier, context, next) {
    const found = next(specifier, context);
    return found.url === DELIVER ? { url: NOTHING, format: 'module', shortCircuit: true } : found;
  },
});
