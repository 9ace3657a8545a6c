import { boot, runWorkers } from './boot.ts';
import { takePort } from './web/listen.ts';

await boot('worker', async ({ config, logger, shutdown, openApp }) => {
  const { host, workerPort } = config;
  const health =
    workerPort === undefined
      ? undefined
      : await takePort({ host, port: workerPort, variable: 'WORKER_PORT' });
  const app = await openApp();
  runWorkers(app, shutdown);
  if (health !== undefined) {
    await app.startHealth(health);
    shutdown.add('health', () => health.close());
    logger.info({ host, port: health.port }, 'health checks and metrics listen');
  }
  logger.info('the workers run');
});
