import { boot, runWorkers } from '../../src/boot.ts';
import { APP_INFO, RESOURCES } from '../support/usual-resources.ts';

// A worker without the search index, with the lists of the tests, which are those of the template.
await boot({ kind: 'worker' }, async ({ logger, shutdown, openApp }) => {
  const events = async () => ({ onEvent: undefined });
  const app = await openApp({ events, resources: RESOURCES, appInfo: APP_INFO, hasSearch: false });
  runWorkers(app, shutdown);
  logger.info('the workers run');
});
