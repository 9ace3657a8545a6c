import { existsSync } from 'node:fs';
import { commandArguments } from '../contract/command-arguments.ts';
import { listenError } from '../contract/listen-error.ts';
import { SANDBOX_DEFAULTS } from '../contract/sandbox.ts';
import { optionsFromEnvironment } from './environment.ts';
import { createSandbox, type Sandbox, type SandboxOptions } from './sandbox.ts';

function fail(...lines: string[]): never {
  process.stderr.write(`${lines.map((line) => `sandbox: ${line}`).join('\n')}\n`);
  process.exit(1);
}

const EXPOSED = `
  !!!  IT LISTENS BEYOND THIS MACHINE. Whoever reaches it controls it: there is no password.  !!!
`;

function banner({ origin, apiUrl, authUrl, application, exposed }: Sandbox): string {
  return `
  Sandbox of the customer messaging service

    Front page   ${origin}/
    API          ${apiUrl}
    OAuth        ${authUrl}
    Client id    ${application.client_id}  (secret: see ${origin}/_sandbox/state)

  Ctrl-C ends it.
${exposed ? EXPOSED : ''}
`;
}

async function start(options: SandboxOptions): Promise<Sandbox> {
  try {
    return await createSandbox(options);
  } catch (error) {
    if (error instanceof RangeError) fail(error.message);
    const { host = SANDBOX_DEFAULTS.host, port = SANDBOX_DEFAULTS.port } = options;
    const variables = { hostVariable: 'SANDBOX_HOST', portVariable: 'SANDBOX_PORT' };
    const explained = listenError(error, { host, port, ...variables });
    if (explained !== undefined) fail(explained.message);
    throw error;
  }
}

commandArguments();
if (existsSync('.env')) process.loadEnvFile();
const options = optionsFromEnvironment(process.env);
if (Array.isArray(options)) fail(...options);
const sandbox = await start(options);
process.stdout.write(banner(sandbox));
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.once(signal, () => void sandbox.close().then(() => process.exit(0)));
}
