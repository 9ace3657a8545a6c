import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createApp, type Fork } from '../app.ts';
import { loadConfig } from '../config/config.ts';
import { CALLBACK_PATH } from '../contract/routes.ts';
import { createLogger } from '../runtime/logging.ts';
import { openRedis } from '../runtime/private-redis.ts';
import { processFacts } from '../runtime/process-facts.ts';
import { INTERRUPTED_CODE, installShutdown, type Shutdown } from '../runtime/shutdown.ts';
import { createSandbox } from '../sandbox/sandbox.ts';
import { takePort } from '../web/listen.ts';

/** Starts sandbox, Redis, web app and workers on free ports. The shutdown deletes their files. */
export async function startParts(
  own: Fork,
): Promise<{ appUrl: string; sandboxUrl: string; shutdown: Shutdown }> {
  const logLevel = process.env.LOG_LEVEL ?? 'warn';
  const facts = processFacts();
  const logger = createLogger({ logLevel, production: false }, { facts });
  const shutdown = installShutdown({ logger, signalCode: INTERRUPTED_CODE });
  const dir = mkdtempSync(join(tmpdir(), 'partner-app-demo-'));
  shutdown.add('files', () => rmSync(dir, { recursive: true, force: true }));

  const web = await takePort({ host: '127.0.0.1', port: 0, variable: 'PORT' });
  const appUrl = `http://127.0.0.1:${web.port}`;
  const sandbox = await createSandbox({
    redirectUris: [appUrl + CALLBACK_PATH],
    applicationName: own.appInfo.name,
  });
  shutdown.add('sandbox', () => sandbox.close());
  const redis = await openRedis({ dir, logger });
  shutdown.add('redis', () => redis.release());
  const config = loadConfig(
    {
      SERVICE_API_URL: sandbox.apiUrl,
      SERVICE_AUTH_URL: sandbox.authUrl,
      CLIENT_ID: sandbox.application.client_id,
      CLIENT_SECRET: sandbox.application.client_secret,
      PUBLIC_URL: appUrl,
      PORT: String(web.port),
      LOG_LEVEL: logLevel,
      CHECK_INTERVAL_SECONDS: '5',
    },
    { dataDir: dir },
  );
  const app = await createApp(config, redis.url, logger, own, { facts, deliveries: 'here' });
  shutdown.add(
    'app',
    () => app.close(),
    () => app.end(),
  );
  const workers = app.startWorkers();
  shutdown.add('workers', () => workers.close());
  shutdown.add('web', () => web.close());
  await app.startWeb(web);
  return { appUrl, sandboxUrl: sandbox.origin, shutdown };
}
