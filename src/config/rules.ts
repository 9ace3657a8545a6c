import { isAbsolute } from 'node:path';
import { SANDBOX_DEFAULTS } from '../contract/sandbox.ts';
import { type ConfigProblem, type GivenValues, VARIABLES, type VariableName } from './variables.ts';

/** 32 random bytes hold some 30 different ones. */
const FEWEST_DIFFERENT_BYTES = 16;

/** Secrets that you make, and the fewest characters, and different ones, of a random one. */
const MADE_SECRETS = [
  { name: 'SESSION_SECRET', command: 'openssl rand -base64 48', length: 32, different: 8 },
  { name: 'OPERATOR_PASSWORD', command: 'openssl rand -base64 24', length: 12, different: 5 },
] as const;

/** Words that stand in examples in the place of a secret. Seven letters at least, or random secrets would match. */
const PLACEHOLDER =
  /(change|replace)[-_ .]?(me|it|this|with)|keyboard|your[-_ .]|your(secret|session|password)|example|placeholder|openssl|secret.*here|p[a@]ssw[o0]rd|^<.*>$/i;
/** Words that people make secrets of, for this app. */
const WORDS =
  /admin|operator|compan(?:y|ies)|partner|contacts?|conversations?|sandbox|service|messag(?:e|ing)|secret|letmein|welcome|qwerty|install|login|root/gi;
const COUNTING = /^12345678|^abcdefg/i;
/** A text, and nothing but the same again. */
const REPEATED = /^(.+)\1+$/;
/** Characters besides such words, at least. A random secret may contain one by chance. */
const FEWEST_BESIDES = 10;

const HTTPS_NAMES = ['SERVICE_API_URL', 'SERVICE_AUTH_URL', 'SERVICE_NEXT_ORIGINS', 'PUBLIC_URL'] as const;
/** The service and its credentials come together, or the sandbox's defaults stand for all of them. */
const SERVICE_NAMES = ['SERVICE_API_URL', 'SERVICE_AUTH_URL', 'CLIENT_ID', 'CLIENT_SECRET'] as const;
const PROXIES = ['http_proxy', 'HTTP_PROXY', 'https_proxy', 'HTTPS_PROXY'] as const;

/** Whether Node sends requests through the proxies of the environment. */
export function usesProxy(env: NodeJS.ProcessEnv): boolean {
  return env.NODE_USE_ENV_PROXY === '1' || /--use-env-proxy\b/.test(env.NODE_OPTIONS ?? '');
}

export const proxiesIn = (env: NodeJS.ProcessEnv) => PROXIES.filter((name) => env[name]);

type Report = (variable: VariableName, problem: string) => void;

/**
 * Finds variables that are missing, that contradict others, or that are unsafe in production.
 *
 * @param env tells which variables are set: a wrong value is reported already, and is not missing
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
  const isProduction = given.NODE_ENV === 'production';
  const callsService = uses('SERVICE_API_URL');
  if (isProduction) {
    for (const [name, { needed }] of Object.entries(VARIABLES)) {
      if (needed && !env[name]) report(name as VariableName, `is needed in production: ${needed}`);
    }
    reportUnsafe(given, report);
  } else {
    const set = SERVICE_NAMES.find((name) => env[name]);
    for (const name of SERVICE_NAMES) {
      if (set && !env[name] && (env.SERVICE_API_URL || env.SERVICE_AUTH_URL || name.startsWith('CLIENT'))) {
        report(name, `is needed, because ${set} is set`);
      }
    }
  }
  if (isProduction && callsService && env.NODE_TLS_REJECT_UNAUTHORIZED === '0') {
    const problem =
      'must not be 0 in production: remove it, and name your own authority in NODE_EXTRA_CA_CERTS';
    problems.push({ variable: 'NODE_TLS_REJECT_UNAUTHORIZED', problem, example: '1' });
  }
  if (given.SANDBOX_PORT === 0) report('SANDBOX_PORT', 'must not be 0: the app must know the port');
  if (given.PORT === 0 && !env.PUBLIC_URL) {
    report('PUBLIC_URL', 'is needed with PORT=0: the default address names the port');
  }
  if (given.PROXY_HOPS === 0 && given.PUBLIC_URL?.startsWith('https:')) {
    report('PROXY_HOPS', 'must be 1 or more with an https PUBLIC_URL: the app itself speaks http only');
  }
  for (const variable of callsService && usesProxy(env) ? proxiesIn(env) : []) {
    const url = env[variable] ?? '';
    if (/^(https?|socks5):\/\//i.test(url) && URL.canParse(url)) continue;
    const problem = 'must be the URL of a proxy that begins with http://, https:// or socks5://';
    problems.push({ variable, problem, example: 'http://proxy.example.com:3128' });
  }
  return problems;
}

function reportUnsafe(given: GivenValues, report: Report): void {
  for (const name of HTTPS_NAMES) {
    if ([given[name] ?? []].flat().some(isOpenToOthers)) {
      report(name, 'must be https in production: secrets travel over it');
    }
  }
  const path = /^file:(.*)/.exec(given.DATABASE_URL ?? '')?.[1];
  if (path !== undefined && !isAbsolute(path)) {
    report('DATABASE_URL', 'must have an absolute path in production: the next release starts elsewhere');
  }
  for (const { id, key } of given.TOKEN_KEYS ?? []) {
    if (isPattern(key)) {
      report('TOKEN_KEYS', `holds a key "${id}" that is not random: make one with npm run keys`);
    }
  }
  const { CLIENT_SECRET = '' } = given;
  if (CLIENT_SECRET === SANDBOX_DEFAULTS.clientSecret || PLACEHOLDER.test(CLIENT_SECRET)) {
    report('CLIENT_SECRET', 'is a placeholder: copy the secret of your OAuth application from the service');
  }
  for (const { name, command, length, different } of MADE_SECRETS) {
    const secret = given[name];
    if (secret === undefined) continue;
    const checks: [boolean, string][] = [
      [PLACEHOLDER.test(secret) || isMadeUp(secret), 'is a placeholder'],
      [secret.length < length, `must have at least ${length} characters`],
      [new Set(secret).size < different || REPEATED.test(secret), 'is not random'],
    ];
    const [, weakness] = checks.find(([isWeak]) => isWeak) ?? [];
    if (weakness !== undefined) report(name, `${weakness}: make one with ${command}`);
  }
}

function isMadeUp(secret: string): boolean {
  const rest = secret.replace(WORDS, '');
  return COUNTING.test(secret) || (rest !== secret && rest.length < FEWEST_BESIDES);
}

/** Whether a key is a text, repeats its half, or has few different bytes: no random key does. */
function isPattern(key: Buffer): boolean {
  const half = key.length / 2;
  const isText = key.every((byte) => byte < 128);
  const repeats = key.subarray(0, half).equals(key.subarray(half));
  return isText || repeats || new Set(key).size < FEWEST_DIFFERENT_BYTES;
}

/** Whether a network hears what the app sends to an address. */
function isOpenToOthers(url: string): boolean {
  return /^http:\/\/(?!([^/]+\.)?localhost(:|\/|$)|\[::1\]|127(\.\d{1,3}){3}(:|\/|$))/.test(url);
}
