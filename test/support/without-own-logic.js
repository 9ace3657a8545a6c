// Loaded before an entry point: what the integrator has put into own-logic.ts is not there.
import { registerHooks } from 'node:module';

registerHooks({
  load: (url, context, next) =>
    url.endsWith('/src/sync/own-logic.ts')
      ? { format: 'module', source: 'export const onRecords = undefined;', shortCircuit: true }
      : next(url, context),
});
