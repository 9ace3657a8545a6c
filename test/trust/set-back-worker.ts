import { createApp } from '../../src/app.ts';
import { boot, runWorkers } from '../../src/boot.ts';

/** A worker whose clock is so many milliseconds ahead (`AHEAD_MS`), until SIGUSR2 sets it right. */
let aheadMs = Number(process.env.AHEAD_MS);
const rightTime = Date.now.bind(Date);
Date.now = () => rightTime() + aheadMs;
process.on('SIGUSR2', () => {
  aheadMs = 0;
  process.stdout.write('the clock is right\n');
});

await boot(async ({ config, logger, shutdown }) => {
  const app = await createApp(config, config.redisUrl ?? '', logger);
  shutdown.add(
    'app',
    () => app.close(),
    () => app.end(),
  );
  runWorkers(app, shutdown);
  logger.info('the workers run');
});
