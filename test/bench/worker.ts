import { boot, runWorkers } from '../../src/boot.ts';
import { APP_INFO, RESOURCES } from '../support/usual-resources.ts';

// A worker as `npm run worker` starts it, without the search index.
await boot({ kind: 'worker' }, async ({ logger, shutdown, openApp }) => {
  const events = async () => ({ onEvent: undefined });
  const app = await openApp({ events, resources: RESOURCES, appInfo: APP_INFO, hasSearch: false });
  runWorkers(app, shutdown);
  logger.info('the workers run');
});
