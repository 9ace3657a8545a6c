import { parseArgs } from 'node:util';
import { loadConfig, readEnvironment } from './config/config.ts';
import { ConfigError } from './config/variables.ts';
import { Browser } from './demo/browser.ts';
import { listCompanies } from './demo/companies.ts';
import { DemoError, installCompany } from './demo/install-company.ts';

const USAGE = 'npm run sandbox:install -- COMPANY [ADMIN]';

/** How long the app may take to answer a health check, in milliseconds. */
const ANSWER_MS = 10_000;

function readArguments(): { company: string; admin: string | undefined } {
  try {
    const { positionals } = parseArgs({ allowPositionals: true, options: {} });
    const [company, admin, extra] = positionals;
    if (company === undefined) throw new Error('The company is missing.');
    if (extra !== undefined) throw new Error(`"${extra}" is one argument too many.`);
    return { company, admin };
  } catch (error) {
    process.stderr.write(`${(error as Error).message} Nothing was done. Usage: ${USAGE}\n`);
    process.exit(2);
  }
}

/** Finds the app and its sandbox by the configuration. @throws DemoError when they do not run */
async function findRunning() {
  const env = readEnvironment();
  if (env.NODE_ENV === 'production' || env.SERVICE_API_URL || env.SERVICE_AUTH_URL) {
    throw new DemoError(
      'The app uses no sandbox with SERVICE_API_URL, SERVICE_AUTH_URL or NODE_ENV=production: unset them.',
    );
  }
  const { publicUrl, service } = loadConfig(env, { kind: 'web' });
  const sandboxUrl = new URL(service.apiUrl).origin;
  const [companies, isUp] = await Promise.all([
    listCompanies(sandboxUrl).catch(() => undefined),
    fetch(`${publicUrl}/healthz`, { signal: AbortSignal.timeout(ANSWER_MS) })
      .then(async (answer) => ((await answer.json()) as { status?: string }).status === 'alive')
      .catch(() => false),
  ]);
  if (companies !== undefined && isUp) return { publicUrl, sandboxUrl, companies };
  const silent = [
    ...(isUp ? [] : [`The app at ${publicUrl} does not answer.`]),
    ...(companies === undefined ? [`The sandbox at ${sandboxUrl} does not answer.`] : []),
  ];
  throw new DemoError(`${silent.join(' ')} Start both with npm start, and give this command the same .env.`);
}

/** Finds one by id, or by name in upper or lower case. @throws DemoError that lists all */
function find<One extends { id: string; name: string; is_admin?: boolean }>(
  what: string,
  all: readonly One[],
  wanted: string,
): One {
  const byName = all.filter(({ name }) => name.toLowerCase() === wanted.toLowerCase());
  const found = all.find(({ id }) => id === wanted) ?? (byName.length === 1 ? byName[0] : undefined);
  if (found !== undefined) return found;
  const rows = all.map(({ id, name, is_admin }) => `  ${id}  ${name}${is_admin ? ' (administrator)' : ''}`);
  const problem = byName.length === 0 ? `No ${what} is called` : `More than one ${what} is called`;
  throw new DemoError(`${problem} "${wanted}". Choose one of these by id:\n${rows.join('\n')}`);
}

const { company: wanted, admin } = readArguments();
try {
  const { publicUrl, sandboxUrl, companies } = await findRunning();
  const company = find('company', companies, wanted);
  const teammate =
    admin === undefined
      ? company.teammates.find(({ is_admin }) => is_admin)
      : find(`teammate of ${company.name}`, company.teammates, admin);
  const path = await installCompany(new Browser(publicUrl), sandboxUrl, company, teammate?.id ?? '');
  // The standard output has only this line, for scripts.
  process.stdout.write(`${path.replace('/instances/', '')} ${publicUrl}${path}\n`);
} catch (error) {
  if (!(error instanceof DemoError || error instanceof ConfigError)) throw error;
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 1;
}
