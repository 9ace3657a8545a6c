// Loaded before an entry point: what the integrator has put into handler.ts is not there.
import { registerHooks } from 'node:module';

registerHooks({
  load: (url, context, next) =>
    url.endsWith('/src/integration/handler.ts')
      ? { format: 'module', source: 'export const onChanges = undefined;', shortCircuit: true }
      : next(url, context),
});
