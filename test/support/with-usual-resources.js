// Loaded before an entry point: it syncs what the tests count on, not what the integrator has put into resources.ts.
import { registerHooks } from 'node:module';

const OWN = new URL('../../src/integration/resources.ts', import.meta.url).href;
const USUAL = new URL('usual-resources.ts', import.meta.url).href;

registerHooks({
  resolve(specifier, context, next) {
    const found = next(specifier, context);
    return found.url === OWN ? { ...found, url: USUAL } : found;
  },
});
