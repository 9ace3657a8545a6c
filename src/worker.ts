import { boot } from './boot.ts';

await boot(async ({ config, logger, shutdown, openApp }) => {
  const app = await openApp();
  const workers = app.startWorkers();
  shutdown.add('workers', () => workers.close());
  if (config.workerPort !== undefined) {
    const health = await app.startHealth({ host: config.host, port: config.workerPort });
    shutdown.add('health', () => health.close());
    logger.info({ host: config.host, port: health.port }, 'health checks and metrics listen');
  }
  logger.info('the workers run');
});
