// Loaded before an entry point: what the integrator has put into handler.ts and events.ts is not there.
import { registerHooks } from 'node:module';

registerHooks({
  load: (url, context, next) =>
    /\/src\/integration\/(handler|events)\.ts$/.test(url)
      ? { format: 'module', source: 'export const [onChanges, onEvent] = [];', shortCircuit: true }
      : next(url, context),
});
