import { existsSync } from 'node:fs';
import { isIP } from 'node:net';
import { resolve } from 'node:path';
import { openGuards } from '../contract/guard-limit.ts';
import type { GuardRules } from '../contract/guards.ts';
import { WINDOW_MS } from '../contract/limits.ts';
import { type EXPOSE_WORDS, SANDBOX_DEFAULTS } from '../contract/sandbox.ts';
import { findProblems, proxiesIn, usesProxy } from './rules.ts';
import { keptSessionSecret, keptTokenKeys } from './secrets.ts';
import {
  ConfigError,
  type ProcessKind,
  readVariables,
  type TokenKey,
  VARIABLES,
  type VariableName,
} from './variables.ts';

/** From the current directory: what the app makes for itself in development. */
export const DEFAULT_DATA_DIR = '.data';
const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const DAY_MS = 24 * 60 * MINUTE_MS;

/** Everything that can be set from outside, validated. */
export interface Config {
  production: boolean;
  service: ServiceConfig;
  /** Where browsers reach the app: an origin, without a slash at its end. */
  publicUrl: string;
  /** How requests to the service go out, as Node itself was told: by a proxy, and whether certificates are checked. */
  outbound: { usesProxy: boolean; checksCertificates: boolean };
  /** Our own proxies in front of the app: so many entries of X-Forwarded-For, from its end, are believed. */
  proxyHops: number;
  host: string;
  /** 0 takes a free one. */
  port: number;
  /** Where a worker answers `/healthz`, `/readyz` and `/metrics`; undefined: nowhere. */
  workerPort: number | undefined;
  /** `file:` and a path, or `postgres://…`. */
  databaseUrl: string;
  /** Undefined: a private Redis. */
  redisUrl: string | undefined;
  /** Empty in a process without the web app. */
  sessionSecret: string;
  /** The first encrypts, all decrypt; empty in a process that reads no tokens. */
  tokenKeys: TokenKey[];
  /** Undefined: there is no `/ops`. */
  operatorPassword: string | undefined;
  syncIntervalMs: number;
  /** How long documents of deleted records are kept. */
  keepDeletedMs: number;
  /** How long one call of the handler may take. */
  handlerTimeoutMs: number;
  /** A level of pino, or `silent`. */
  logLevel: string;
  /** Absolute path of the directory for what the app makes for itself in development. */
  dataDir: string;
  /** Options of the sandbox that `npm start` brings up. */
  sandbox: {
    host: string;
    port: number;
    windowMs: number;
    latencyMs: number;
    guards: Partial<GuardRules>;
    publicUrl?: string;
    expose?: typeof EXPOSE_WORDS;
  };
  /** Variables that are set and have no effect in this process. */
  ignored: string[];
}

/** The service that the app talks to, and who the app is there. URLs have no slash at their end. */
export interface ServiceConfig {
  apiUrl: string;
  authUrl: string;
  /** Further origins that `_pagination.next` may lead to; `*.` stands for one leading label. */
  nextOrigins: string[];
  clientId: string;
  clientSecret: string;
  /** Limits of the guards that the specification leaves open, where they are not the contract's. */
  guards: Partial<GuardRules>;
  /** No service was configured: the addresses are the sandbox's, which the start has to bring up. */
  isSandbox: boolean;
}

/**
 * Reads `.env` into the environment of this process, which wins over the file, and trims all values: a secret that was
 * copied from a file ends with a line end.
 */
export function readEnvironment(): NodeJS.ProcessEnv {
  if (existsSync('.env')) process.loadEnvFile();
  for (const [name, value = ''] of Object.entries(process.env)) process.env[name] = value.trim();
  return process.env;
}

/**
 * Validates the environment, once, at start. An empty variable counts as unset.
 * In development, secrets that are not given are generated and kept in the data directory.
 *
 * @param options.kind which variables count: the others never end the start
 * @param options.dataDir instead of `.data` in the current directory
 * @throws ConfigError that lists every problem
 */
export function loadConfig(
  env: NodeJS.ProcessEnv,
  options: { kind?: ProcessKind; dataDir?: string } = {},
): Config {
  const { kind = 'start' } = options;
  const production = env.NODE_ENV === 'production';
  const isSandbox = !production && !env.SERVICE_API_URL && !env.SERVICE_AUTH_URL;
  const uses = (name: VariableName): boolean =>
    VARIABLES[name].usedBy.includes(kind) && (isSandbox || !name.startsWith('SANDBOX_'));
  const names = Object.keys(VARIABLES) as VariableName[];
  const { given, problems } = readVariables(env, names.filter(uses));
  problems.push(...findProblems(env, given, uses));
  if (problems.length > 0) throw new ConfigError(problems);

  const dataDir = resolve(options.dataDir ?? DEFAULT_DATA_DIR);
  const { PORT: port = 3000, PUBLIC_URL: publicUrl = `http://localhost:${port}` } = given;
  const sandbox = {
    host: given.SANDBOX_HOST ?? SANDBOX_DEFAULTS.host,
    port: given.SANDBOX_PORT ?? SANDBOX_DEFAULTS.port,
    windowMs: given.SANDBOX_WINDOW_MS ?? WINDOW_MS,
    latencyMs: given.SANDBOX_LATENCY_MS ?? 0,
    guards: openGuards({
      analytics: given.SANDBOX_GUARD_ANALYTICS,
      resource: given.SANDBOX_GUARD_RESOURCE,
    }),
    ...(given.SANDBOX_PUBLIC_URL && { publicUrl: given.SANDBOX_PUBLIC_URL }),
    ...(given.SANDBOX_EXPOSE && { expose: given.SANDBOX_EXPOSE }),
  };
  const sandboxUrl = sandbox.publicUrl ?? `http://${reachable(sandbox.host)}:${sandbox.port}`;
  return {
    production,
    service: {
      apiUrl: given.SERVICE_API_URL ?? sandboxUrl + SANDBOX_DEFAULTS.apiPath,
      authUrl: given.SERVICE_AUTH_URL ?? sandboxUrl + SANDBOX_DEFAULTS.authPath,
      nextOrigins: given.SERVICE_NEXT_ORIGINS ?? [],
      clientId: given.CLIENT_ID ?? SANDBOX_DEFAULTS.clientId,
      clientSecret: given.CLIENT_SECRET ?? SANDBOX_DEFAULTS.clientSecret,
      // The app knows what its own sandbox is told to enforce.
      guards: {
        ...sandbox.guards,
        ...openGuards({ analytics: given.GUARD_ANALYTICS, resource: given.GUARD_RESOURCE }),
      },
      isSandbox,
    },
    publicUrl,
    outbound: {
      usesProxy: !isSandbox && usesProxy(env),
      checksCertificates: env.NODE_TLS_REJECT_UNAUTHORIZED !== '0',
    },
    proxyHops: given.PROXY_HOPS ?? (publicUrl.startsWith('https:') ? 1 : 0),
    host: given.HOST ?? (production ? '0.0.0.0' : '127.0.0.1'),
    port,
    workerPort: given.WORKER_PORT,
    databaseUrl: given.DATABASE_URL ?? `file:${dataDir}/app.db`,
    redisUrl: given.REDIS_URL,
    sessionSecret: given.SESSION_SECRET ?? (uses('SESSION_SECRET') ? keptSessionSecret(dataDir) : ''),
    tokenKeys: given.TOKEN_KEYS ?? (uses('TOKEN_KEYS') ? keptTokenKeys(dataDir) : []),
    operatorPassword: given.OPERATOR_PASSWORD,
    syncIntervalMs: (given.SYNC_INTERVAL_MINUTES ?? 60) * MINUTE_MS,
    keepDeletedMs: (given.DELETED_RECORDS_DAYS ?? 30) * DAY_MS,
    handlerTimeoutMs: (given.HANDLER_TIMEOUT_SECONDS ?? 60) * SECOND_MS,
    logLevel: given.LOG_LEVEL ?? 'info',
    dataDir,
    sandbox,
    ignored: [
      ...names.filter((name) => env[name] && !uses(name)),
      ...(isSandbox || usesProxy(env) ? [] : proxiesIn(env)),
    ],
  };
}

/** The host of a URL for an address that a server listens at. */
function reachable(host: string): string {
  if (host === '0.0.0.0' || host === '::') return SANDBOX_DEFAULTS.host;
  return isIP(host) === 6 ? `[${host}]` : host;
}
