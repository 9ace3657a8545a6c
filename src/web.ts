import { boot } from './boot.ts';
import { takePort } from './web/listen.ts';
// Loaded here, as app.ts asks for it only behind the migration: one that does not load must not come so far.
import './web/web-app.ts';

await boot(async ({ config, logger, shutdown, openApp }) => {
  // Before the database is migrated, which ends the version before: see createApp.
  const web = await takePort({ ...config, variable: 'PORT' });
  const app = await openApp();
  await app.startWeb(web);
  shutdown.add('web', () => web.close());
  logger.info({ url: config.publicUrl, host: config.host, port: web.port }, 'the web app listens');
});
