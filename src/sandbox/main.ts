import { parseArgs } from 'node:util';
import { listenError } from '../contract/listen-error.ts';
import { SANDBOX_DEFAULTS } from '../contract/sandbox.ts';
import { optionsFromEnvironment } from './environment.ts';
import { createSandbox } from './sandbox.ts';
import type { Sandbox, SandboxOptions } from './types.ts';

/** The flags that take a value: what it is, and what it does. */
const FLAGS: Readonly<Record<string, readonly [value: string, about: string]>> = {
  port: ['NUMBER', 'where it listens; 4010 by default, 0 takes a free port'],
  host: ['ADDRESS', '127.0.0.1 by default; another one needs SANDBOX_EXPOSE'],
  seed: ['FILE', 'companies, applications, faults and guards to start with, as JSON'],
  'public-url': ['URL', 'the origin that clients reach it at, behind a proxy'],
  'expires-at': ['FORM', 'form of expires_at: string, number or iso'],
  changes: ['STATUS', 'status of a change: 200 or 204'],
  order: ['ORDER', 'contacts and conversations by activity (the default) or created'],
  'application-name': ['NAME', 'what the consent page calls the default application'],
  'latency-ms': ['NUMBER', 'by which each API answer is held back'],
  'window-ms': ['NUMBER', 'length of the rate-limit window; 60000 by default'],
};

/** The variable that says the same: SANDBOX_PUBLIC_URL for `public-url`. */
const variableOf = (flag: string) => `SANDBOX_${flag.toUpperCase().replaceAll('-', '_')}`;
/** Flags without a value. */
const SWITCHES: Readonly<Record<string, string>> = {
  strict: 'refuses parameters and members that the service does not know',
  json: 'prints one line of JSON: addresses, credentials, companies',
  help: 'prints this',
};

const row = (left: string, right: string) => `  ${left.padEnd(22)}${right}`;

const HELP = [
  'The sandbox: a customer-messaging service in one process, in memory.',
  '',
  ...Object.entries(FLAGS).map(([flag, [value, about]]) => row(`--${flag} ${value}`, about)),
  ...Object.entries(SWITCHES).map(([flag, about]) => row(`--${flag}`, about)),
  '',
  `Variables say the same: ${Object.keys(FLAGS).map(variableOf).join(', ')}, SANDBOX_STRICT=yes.`,
  '',
].join('\n');

function fail(...lines: string[]): never {
  process.stderr.write(`${lines.map((line) => `sandbox: ${line}`).join('\n')}\n`);
  process.exit(1);
}

/** The flags by their variable, `--json` and `--help` where given, and what is wrong. */
function readCommand() {
  const strings = Object.keys(FLAGS).map((name) => [name, { type: 'string' }] as const);
  const booleans = Object.keys(SWITCHES).map((name) => [name, { type: 'boolean' }] as const);
  const { tokens } = parseArgs({
    options: Object.fromEntries([...strings, ...booleans]),
    strict: false,
    tokens: true,
  });
  const flags = new Map<string, { flag: string; value: string }>();
  const switches = new Set<string>();
  const problems: string[] = [];
  for (const token of tokens) {
    if (token.kind === 'positional') problems.push(`${token.value} is not understood: see --help`);
    if (token.kind !== 'option') continue;
    const { name, rawName: flag, value } = token;
    if (Object.hasOwn(FLAGS, name) && value) flags.set(variableOf(name), { flag, value });
    else if (Object.hasOwn(FLAGS, name)) problems.push(`${flag} needs a value`);
    else if (name === 'strict' && value === undefined) flags.set(variableOf(name), { flag, value: 'yes' });
    else if (Object.hasOwn(SWITCHES, name) && value === undefined) switches.add(name);
    else problems.push(`${flag} is not understood: see --help`);
  }
  return { flags, switches, problems };
}

const EXPOSED = `
  !!!  IT LISTENS BEYOND THIS MACHINE. Everybody who reaches it controls it: there is no password.  !!!
`;

function banner({ origin, apiUrl, authUrl, application }: Sandbox): string {
  return `
  Sandbox of the customer messaging service

    Front page   ${origin}/
    API          ${apiUrl}
    OAuth        ${authUrl}
    Client id    ${application.client_id}  (secret: see ${origin}/_sandbox/state)

  Ctrl-C ends it.
`;
}

/** All that a program needs to begin, in one line. */
function jsonLine({ origin, apiUrl, authUrl, application, companies }: Sandbox): string {
  const shown = companies().map(({ id, name, plan, teammates, api_tokens }) => {
    const administrator = teammates.find(({ is_admin }) => is_admin)?.id;
    return { id, name, plan, administrator, api_tokens };
  });
  const addresses = { origin, api_url: apiUrl, auth_url: authUrl, pid: process.pid };
  return `${JSON.stringify({ ...addresses, application, companies: shown })}\n`;
}

async function start(options: SandboxOptions): Promise<Sandbox> {
  try {
    return await createSandbox(options);
  } catch (error) {
    if (error instanceof RangeError) fail(...error.message.split('\n'));
    const { host = SANDBOX_DEFAULTS.host, port = SANDBOX_DEFAULTS.port } = options;
    const variables = { hostVariable: 'SANDBOX_HOST', portVariable: 'SANDBOX_PORT' };
    const explained = listenError(error, { host, port, ...variables });
    if (explained !== undefined) fail(explained.message);
    throw error;
  }
}

const { flags, switches, problems } = readCommand();
if (switches.has('help')) {
  process.stdout.write(HELP);
  process.exit();
}
const options = optionsFromEnvironment(process.env, flags);
if (Array.isArray(options) || problems.length > 0) {
  fail(...problems, ...(Array.isArray(options) ? options : []));
}
const sandbox = await start(options);
process.stdout.write(switches.has('json') ? jsonLine(sandbox) : banner(sandbox));
if (sandbox.exposed) process.stderr.write(EXPOSED);
const end = () => void sandbox.close().then(() => process.exit(0));
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, end);
const parent = process.ppid;
// npx does not pass on what ends it.
if (process.env.npm_command === 'exec') setInterval(() => process.ppid !== parent && end(), 500).unref();
