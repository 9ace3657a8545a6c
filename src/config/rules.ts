import { isAbsolute } from 'node:path';
import { SANDBOX_DEFAULTS } from '../contract/sandbox.ts';
import type { ConfigProblem } from './config-error.ts';
import { isRandomKey, standsForSecret } from './placeholders.ts';
import { isLoopback } from './urls.ts';
import { type GivenValues, VARIABLES, type VariableName } from './variables.ts';

const MIN_OPERATOR_PASSWORD_CHARACTERS = 12;

/** How random secrets are made, and how many different characters those have at least: fewer are a pattern. */
const RANDOM_SECRETS = [
  { variable: 'SESSION_SECRET', command: 'openssl rand -base64 48', fewestDifferent: 8 },
  { variable: 'OPERATOR_PASSWORD', command: 'openssl rand -base64 24', fewestDifferent: 5 },
] as const;

/** What to do about a client secret that is none. */
const OWN_CLIENT_SECRET = 'set the one that the service shows for your OAuth application';

/** What production has no default for, and why. */
const NEEDED_IN_PRODUCTION: Partial<Record<VariableName, string>> = {
  SERVICE_API_URL: 'the sandbox is for development only',
  SERVICE_AUTH_URL: 'the sandbox is for development only',
  CLIENT_ID: "the sandbox's is for development only",
  CLIENT_SECRET: "the sandbox's is for development only",
  PUBLIC_URL: 'browsers come back to it after the authorization',
  DATABASE_URL: 'the default lies in the directory that a process happens to be started in',
  REDIS_URL: 'the private Redis is for development only',
  SESSION_SECRET: 'all web processes sign with the same one',
  TOKEN_KEYS: 'all processes read the tokens with the same ones',
};

type Report = (variable: VariableName, problem: string) => void;

/**
 * Finds what is wrong between variables that are right one by one.
 *
 * @param isSet tells whether a variable was given at all: a wrong value is reported already, and is not missing
 */
export function findProblems(given: GivenValues, isSet: (name: VariableName) => boolean): ConfigProblem[] {
  const problems: ConfigProblem[] = [];
  const report: Report = (variable, problem) =>
    problems.push({ variable, problem, example: VARIABLES[variable].example });
  if (given.PROXY_HOPS === 0 && given.PUBLIC_URL?.startsWith('https:')) {
    report('PROXY_HOPS', 'must be 1 or more with an https PUBLIC_URL: the app itself speaks http only');
  }
  if (given.NODE_ENV === 'production') {
    reportProduction(given, isSet, report);
  } else {
    reportDevelopment(isSet, report);
    const ownSandbox = !isSet('SERVICE_API_URL') && !isSet('SERVICE_AUTH_URL');
    if (ownSandbox && given.SANDBOX_PORT === 0) {
      report('SANDBOX_PORT', 'must not be 0: the app has to know where the sandbox listens');
    }
    if (given.PORT === 0 && !isSet('PUBLIC_URL')) {
      report('PUBLIC_URL', 'is needed with PORT=0: the default address names the port');
    }
  }
  return problems;
}

/** Finds what is set of Node itself that takes away what production relies on. */
export function findNodeProblems(env: NodeJS.ProcessEnv): ConfigProblem[] {
  if (env.NODE_ENV !== 'production' || env.NODE_TLS_REJECT_UNAUTHORIZED !== '0') return [];
  return [
    {
      variable: 'NODE_TLS_REJECT_UNAUTHORIZED',
      problem:
        'must not be 0 in production: secrets would go to whoever answers in the place of the service. Leave it out, and name the certificates of an authority of your own in NODE_EXTRA_CA_CERTS',
      example: '1',
    },
  ];
}

/** The service and its credentials come together, or not at all: the sandbox's defaults go with nothing else. */
function reportDevelopment(isSet: (name: VariableName) => boolean, report: Report): void {
  const requireWith = (variable: VariableName, other: VariableName): void => {
    if (isSet(other) && !isSet(variable)) report(variable, `is needed, as ${other} is set`);
  };
  requireWith('SERVICE_API_URL', 'SERVICE_AUTH_URL');
  requireWith('SERVICE_AUTH_URL', 'SERVICE_API_URL');
  const service = isSet('SERVICE_API_URL') ? 'SERVICE_API_URL' : 'SERVICE_AUTH_URL';
  requireWith('CLIENT_ID', isSet(service) ? service : 'CLIENT_SECRET');
  requireWith('CLIENT_SECRET', isSet(service) ? service : 'CLIENT_ID');
}

function reportProduction(given: GivenValues, isSet: (name: VariableName) => boolean, report: Report): void {
  for (const [name, reason] of Object.entries(NEEDED_IN_PRODUCTION)) {
    const variable = name as VariableName;
    if (!isSet(variable)) report(variable, `is needed in production: ${reason}`);
  }
  const addresses = [
    ['SERVICE_API_URL', [given.SERVICE_API_URL]],
    ['SERVICE_AUTH_URL', [given.SERVICE_AUTH_URL]],
    ['SERVICE_NEXT_ORIGINS', given.SERVICE_NEXT_ORIGINS],
    ['PUBLIC_URL', [given.PUBLIC_URL]],
  ] as const;
  for (const [variable, urls] of addresses) {
    if (urls?.some((url) => url !== undefined && isOpenToOthers(url))) {
      report(variable, 'must be https in production: secrets travel over it');
    }
  }
  const path = /^file:(.*)/.exec(given.DATABASE_URL ?? '')?.[1];
  if (path !== undefined && !isAbsolute(path)) {
    const cause = /^[~$]/.test(path)
      ? `no shell puts anything in the place of "${path[0]}" here`
      : 'the next release, in another directory, would begin with an empty database';
    report('DATABASE_URL', `must have an absolute path in production: ${cause}`);
  }
  for (const { id, key } of given.TOKEN_KEYS ?? []) {
    if (!isRandomKey(key)) {
      report('TOKEN_KEYS', `holds a key "${id}" that is not random: make one with npm run keys`);
    }
  }
  const { CLIENT_SECRET: clientSecret } = given;
  if (clientSecret === SANDBOX_DEFAULTS.clientSecret) {
    report('CLIENT_SECRET', `is the sandbox's, which everybody can read: ${OWN_CLIENT_SECRET}`);
  } else if (clientSecret !== undefined && standsForSecret(clientSecret)) {
    report('CLIENT_SECRET', `is a placeholder, not a secret: ${OWN_CLIENT_SECRET}`);
  }
  for (const { variable, command, fewestDifferent } of RANDOM_SECRETS) {
    const secret = given[variable];
    const weakness = secret === undefined ? undefined : weaknessOf(secret, fewestDifferent);
    if (weakness !== undefined) report(variable, `${weakness}: make one with ${command}`);
  }
  const password = given.OPERATOR_PASSWORD;
  if (password !== undefined && password.length < MIN_OPERATOR_PASSWORD_CHARACTERS) {
    report(
      'OPERATOR_PASSWORD',
      `must have at least ${MIN_OPERATOR_PASSWORD_CHARACTERS} characters in production`,
    );
  }
}

/** What tells that a secret is none, as a part of a sentence that does not show it. */
function weaknessOf(secret: string, fewestDifferent: number): string | undefined {
  if (standsForSecret(secret)) return 'is a placeholder, not a secret';
  if (secret.trim() !== secret) return 'must not begin or end with a blank';
  return new Set(secret).size < fewestDifferent ? 'is not random' : undefined;
}

function isOpenToOthers(url: string): boolean {
  const { protocol, hostname } = new URL(url);
  return protocol === 'http:' && !isLoopback(hostname);
}
