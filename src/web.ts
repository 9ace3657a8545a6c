import { boot } from './boot.ts';

await boot(async ({ config, logger, shutdown, openApp }) => {
  const app = await openApp();
  const web = await app.startWeb();
  shutdown.add('web', () => web.close());
  logger.info({ url: config.publicUrl, host: config.host, port: web.port }, 'the web app listens');
});
