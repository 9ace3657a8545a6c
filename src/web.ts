import { boot } from './boot.ts';
import { takePort } from './web/listen.ts';

await boot('web', async ({ config, logger, shutdown, openApp }) => {
  const web = await takePort({ ...config, variable: 'PORT' });
  const app = await openApp();
  await app.startWeb(web);
  shutdown.add('web', () => web.close());
  logger.info({ url: config.publicUrl, host: config.host, port: web.port }, 'the web app listens');
});
