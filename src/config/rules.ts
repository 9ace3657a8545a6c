import { isAbsolute } from 'node:path';
import { SANDBOX_DEFAULTS } from '../contract/sandbox.ts';
import { type ConfigProblem, type GivenValues, VARIABLES, type VariableName } from './variables.ts';

/** 32 random bytes hold some 30 different ones; fewer than these are a pattern. */
const FEWEST_DIFFERENT_BYTES = 16;

/** Secrets that somebody makes, and the fewest characters, and different ones, of a random one. */
const MADE_SECRETS = [
  { name: 'SESSION_SECRET', command: 'openssl rand -base64 48', length: 32, different: 8 },
  { name: 'OPERATOR_PASSWORD', command: 'openssl rand -base64 24', length: 12, different: 5 },
] as const;

/** What examples put in the place of a secret; seven letters at least, or chance would make them. */
const PLACEHOLDER =
  /(change|replace)[-_ .]?(me|it|this|with)|keyboard|your[-_ .]|your(secret|session|password)|example|placeholder|openssl|secret.*here|p[a@]ssw[o0]rd|^<.*>$/i;

const PROXIES = ['http_proxy', 'HTTP_PROXY', 'https_proxy', 'HTTPS_PROXY'] as const;

/** Whether Node was told to send requests through the proxies of the environment. */
export function usesProxy(env: NodeJS.ProcessEnv): boolean {
  return env.NODE_USE_ENV_PROXY === '1' || /--use-env-proxy\b/.test(env.NODE_OPTIONS ?? '');
}

/** The variables that name a proxy. */
export const proxiesIn = (env: NodeJS.ProcessEnv) => PROXIES.filter((name) => env[name]);

type Report = (variable: VariableName, problem: string) => void;

/**
 * Finds what is wrong between variables that are right one by one, among those that the process uses.
 *
 * @param env tells whether a variable was given at all: a wrong value is reported already, and is not missing
 */
export function findProblems(
  env: NodeJS.ProcessEnv,
  given: GivenValues,
  uses: (name: VariableName) => boolean,
): ConfigProblem[] {
  const problems: ConfigProblem[] = [];
  const report: Report = (variable, problem) => {
    if (uses(variable)) problems.push({ variable, problem, example: VARIABLES[variable].example });
  };
  if (given.NODE_ENV === 'production') {
    for (const [name, { needed }] of Object.entries(VARIABLES)) {
      if (needed && !env[name]) report(name as VariableName, `is needed in production: ${needed}`);
    }
    reportProduction(given, report);
    if (env.NODE_TLS_REJECT_UNAUTHORIZED === '0') {
      const problem =
        'must not be 0 in production: leave it out, and name an authority of your own in NODE_EXTRA_CA_CERTS';
      problems.push({ variable: 'NODE_TLS_REJECT_UNAUTHORIZED', problem, example: '1' });
    }
  } else {
    reportMissing(env, report);
  }
  if (given.SANDBOX_PORT === 0) {
    report('SANDBOX_PORT', 'must not be 0: the app has to know where the sandbox listens');
  }
  if (given.PORT === 0 && !env.PUBLIC_URL) {
    report('PUBLIC_URL', 'is needed with PORT=0: the default address names the port');
  }
  if (given.PROXY_HOPS === 0 && given.PUBLIC_URL?.startsWith('https:')) {
    report('PROXY_HOPS', 'must be 1 or more with an https PUBLIC_URL: the app itself speaks http only');
  }
  for (const variable of uses('SERVICE_API_URL') && usesProxy(env) ? proxiesIn(env) : []) {
    const url = env[variable] ?? '';
    if (/^(https?|socks5):\/\//i.test(url) && URL.canParse(url)) continue;
    const problem = 'must be the URL of a proxy, with http://, https:// or socks5:// in front';
    problems.push({ variable, problem, example: 'http://proxy.example.com:3128' });
  }
  return problems;
}

/** The service and its credentials come together, or not at all: the sandbox's defaults go with nothing else. */
function reportMissing(env: NodeJS.ProcessEnv, report: Report): void {
  const requireWith = (variable: VariableName, other: VariableName): void => {
    if (env[other] && !env[variable]) report(variable, `is needed, as ${other} is set`);
  };
  requireWith('SERVICE_API_URL', 'SERVICE_AUTH_URL');
  requireWith('SERVICE_AUTH_URL', 'SERVICE_API_URL');
  const service = env.SERVICE_API_URL ? 'SERVICE_API_URL' : 'SERVICE_AUTH_URL';
  requireWith('CLIENT_ID', env[service] ? service : 'CLIENT_SECRET');
  requireWith('CLIENT_SECRET', env[service] ? service : 'CLIENT_ID');
}

function reportProduction(given: GivenValues, report: Report): void {
  for (const name of ['SERVICE_API_URL', 'SERVICE_AUTH_URL', 'SERVICE_NEXT_ORIGINS', 'PUBLIC_URL'] as const) {
    if ([given[name] ?? []].flat().some(isOpenToOthers)) {
      report(name, 'must be https in production: secrets travel over it');
    }
  }
  const path = /^file:(.*)/.exec(given.DATABASE_URL ?? '')?.[1];
  if (path !== undefined && !isAbsolute(path)) {
    report('DATABASE_URL', 'must have an absolute path in production: the next release starts elsewhere');
  }
  for (const { id, key } of given.TOKEN_KEYS ?? []) {
    if (!isPattern(key)) continue;
    report('TOKEN_KEYS', `holds a key "${id}" that is not random: make one with npm run keys`);
  }
  const { clientSecret } = SANDBOX_DEFAULTS;
  if (given.CLIENT_SECRET === clientSecret || PLACEHOLDER.test(given.CLIENT_SECRET ?? '')) {
    report(
      'CLIENT_SECRET',
      'is a placeholder: set the one that the service shows for your OAuth application',
    );
  }
  for (const { name, command, length, different } of MADE_SECRETS) {
    const secret = given[name];
    if (secret === undefined) continue;
    const weakness = PLACEHOLDER.test(secret)
      ? 'is a placeholder'
      : secret.length < length
        ? `must have at least ${length} characters`
        : new Set(secret).size < different
          ? 'is not random'
          : undefined;
    if (weakness !== undefined) report(name, `${weakness}: make one with ${command}`);
  }
}

/** Whether a key is a text, counts up from 0, repeats its half, or has few different bytes: none comes by chance. */
function isPattern(key: Buffer): boolean {
  const half = key.length / 2;
  const isText = key.every((byte) => byte < 128);
  return (
    isText || new Set(key).size < FEWEST_DIFFERENT_BYTES || key.subarray(0, half).equals(key.subarray(half))
  );
}

/** Whether others than this machine hear what is sent to an address. */
function isOpenToOthers(url: string): boolean {
  return /^http:\/\/(?!([^/]+\.)?localhost(:|\/|$)|\[::1\]|127(\.\d{1,3}){3}(:|\/|$))/.test(url);
}
