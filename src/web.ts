import { boot } from './boot.ts';
import { APP_INFO } from './integration/app-info.ts';
import { RESOURCES } from './integration/resources.ts';
import { OWN_VIEWS } from './own-views.ts';
import { takePort } from './web/listen.ts';

const settings = () => import('./integration/settings.ts');

await boot({ kind: 'web', settings }, async ({ config, logger, shutdown, openApp }) => {
  const web = await takePort({ ...config, variable: 'PORT' });
  const app = await openApp({
    events: () => import('./integration/events.ts'),
    resources: RESOURCES,
    appInfo: APP_INFO,
    ownViews: OWN_VIEWS,
  });
  await app.startWeb(web);
  shutdown.add('web', () => web.close());
  logger.info({ url: config.publicUrl, host: config.host, port: web.port }, 'the web app listens');
});
