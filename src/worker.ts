import { boot, runWorkers, takeWorkerPort } from './boot.ts';
import { APP_INFO } from './integration/app-info.ts';
import { RESOURCES } from './integration/resources.ts';

const settings = () => import('./integration/settings.ts');

await boot({ kind: 'worker', settings }, async ({ config, logger, shutdown, openApp }) => {
  const health = await takeWorkerPort(config);
  const app = await openApp({
    events: () => import('./integration/events.ts'),
    resources: RESOURCES,
    appInfo: APP_INFO,
  });
  runWorkers(app, shutdown);
  if (health !== undefined) {
    await app.startHealth(health);
    shutdown.add('health', () => health.close());
    logger.info({ host: config.host, port: health.port }, 'health checks and metrics listen');
  }
  logger.info('the workers run');
});
