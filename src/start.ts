import { join } from 'node:path';
import { boot, runWorkers, takeWorkerPort } from './boot.ts';
import type { Config } from './config/config.ts';
import { listenError } from './contract/listen-error.ts';
import { CALLBACK_PATH } from './contract/routes.ts';
import { APP_INFO } from './integration/app-info.ts';
import { RESOURCES } from './integration/resources.ts';
import { OWN_VIEWS } from './own-views.ts';
import { createSandbox, type Sandbox } from './sandbox/sandbox.ts';
import { takePort } from './web/listen.ts';

const settings = () => import('./integration/settings.ts');

await boot({ kind: 'start', settings }, async ({ config, shutdown, openApp }) => {
  const sandbox = config.service.isSandbox ? await startSandbox(config) : undefined;
  if (sandbox !== undefined) shutdown.add('sandbox', () => sandbox.close());
  const web = await takePort({ ...config, variable: 'PORT' });
  const health = await takeWorkerPort(config);
  const app = await openApp({
    events: () => import('./integration/events.ts'),
    resources: RESOURCES,
    appInfo: APP_INFO,
    ownViews: OWN_VIEWS,
  });
  await app.startWeb(web);
  shutdown.add('web', () => web.close());
  if (health !== undefined) await app.startHealth(health);
  shutdown.add('health', () => health?.close());
  runWorkers(app, shutdown);
  process.stdout.write(banner(config, sandbox));
});

async function startSandbox(config: Config): Promise<Sandbox> {
  try {
    return await createSandbox({
      ...config.sandbox,
      applicationName: APP_INFO.name,
      redirectUris: [config.publicUrl + CALLBACK_PATH],
      tokensFile: join(config.dataDir, 'sandbox-tokens.bin'),
    });
  } catch (error) {
    const variables = { hostVariable: 'SANDBOX_HOST', portVariable: 'SANDBOX_PORT' };
    throw listenError(error, { ...config.sandbox, ...variables }) ?? error;
  }
}

function banner(config: Config, sandbox: Sandbox | undefined): string {
  const [service, next] =
    sandbox === undefined
      ? [`Service   ${config.service.apiUrl}`, 'sign in to the service as an administrator']
      : [`Sandbox   ${sandbox.origin}`, 'choose a company and an administrator'];
  return `
  ${APP_INFO.name} runs.

    App       ${config.publicUrl}
    ${service}

  Open ${config.publicUrl}, click Install, and ${next}.
  Then watch the app copy the company. Ctrl-C stops everything.
${sandbox?.exposed ? '\n  Other machines can reach the sandbox without a password.\n' : ''}
`;
}
