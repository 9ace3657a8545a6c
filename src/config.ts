import { resolve } from 'node:path';
import { ConfigError } from './config/config-error.ts';
import { withDevelopmentSecrets } from './config/development-secrets.ts';
import { readVariables } from './config/read-variables.ts';
import { findNodeProblems, findProblems } from './config/rules.ts';
import type { TokenKey } from './config/token-keys.ts';
import type { GivenValues, VariableName } from './config/variables.ts';
import { openGuards } from './contract/guard-limit.ts';
import type { GuardRules } from './contract/guards.ts';
import { WINDOW_MS } from './contract/limits.ts';
import { SANDBOX_DEFAULTS } from './contract/sandbox.ts';

export { ConfigError, type ConfigProblem } from './config/config-error.ts';
export { withNewTokenKey } from './config/new-token-key.ts';
export type { TokenKey } from './config/token-keys.ts';
export { EnvFileError, loadEnvFile } from './contract/env-file.ts';

/** From the current directory: what the app makes for itself in development. */
export const DEFAULT_DATA_DIR = '.data';
const DEFAULT_PORT = 3000;
const DEFAULT_SYNC_INTERVAL_MINUTES = 60;
const DEFAULT_DELETED_RECORDS_DAYS = 30;
const DEFAULT_HANDLER_TIMEOUT_SECONDS = 60;
const SECOND_MS = 1_000;
const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;

/** The service that the app talks to, and who the app is there. URLs have no slash at their end. */
export interface ServiceConfig {
  apiUrl: string;
  authUrl: string;
  /** Further origins that `_pagination.next` may lead to; `*.` stands for one leading label. */
  nextOrigins: string[];
  clientId: string;
  clientSecret: string;
  /** Limits of the guards that the specification leaves open, where they are not those of the contract. */
  guards: Partial<GuardRules>;
  /** No service was configured: the addresses are those of the sandbox, which the start has to bring up. */
  isSandbox: boolean;
}

/** Everything that can be set from outside, validated. */
export interface Config {
  production: boolean;
  service: ServiceConfig;
  /** Where browsers reach the app: an origin, without a slash at its end. */
  publicUrl: string;
  /** How requests to the service go out, as Node itself was told: by a proxy, and whether certificates are checked. */
  wayOut: { usesProxy: boolean; checksCertificates: boolean };
  /** Proxies in front of the app that are ours: so many entries of X-Forwarded-For, from its end, are believed. */
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
  sessionSecret: string;
  /** The first encrypts, all decrypt; never empty. */
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
  sandbox: { port: number; windowMs: number; latencyMs: number; guards: Partial<GuardRules> };
}

/**
 * Reads and validates the environment, once, at start. An empty variable counts as unset.
 * In development, secrets that are not given are generated and kept in the data directory.
 *
 * @param options.dataDir instead of `.data` in the current directory
 * @throws ConfigError that lists every problem
 */
export function loadConfig(env: NodeJS.ProcessEnv, options: { dataDir?: string } = {}): Config {
  const { given, problems } = readVariables(env);
  const isSet = (name: VariableName): boolean => (env[name] ?? '') !== '';
  problems.push(...findProblems(given, isSet), ...findNodeProblems(env));
  if (problems.length > 0) throw new ConfigError(problems);

  const production = given.NODE_ENV === 'production';
  const dataDir = resolve(options.dataDir ?? DEFAULT_DATA_DIR);
  const port = given.PORT ?? DEFAULT_PORT;
  return {
    production,
    service: serviceConfig(given),
    publicUrl: given.PUBLIC_URL ?? `http://localhost:${port}`,
    wayOut: {
      usesProxy: env.NODE_USE_ENV_PROXY === '1' || /--use-env-proxy\b/.test(env.NODE_OPTIONS ?? ''),
      checksCertificates: env.NODE_TLS_REJECT_UNAUTHORIZED !== '0',
    },
    proxyHops: given.PROXY_HOPS ?? (given.PUBLIC_URL?.startsWith('https:') ? 1 : 0),
    host: given.HOST ?? (production ? '0.0.0.0' : '127.0.0.1'),
    port,
    workerPort: given.WORKER_PORT,
    databaseUrl: given.DATABASE_URL ?? `file:${dataDir}/app.db`,
    redisUrl: given.REDIS_URL,
    ...withDevelopmentSecrets(dataDir, { sessionSecret: given.SESSION_SECRET, tokenKeys: given.TOKEN_KEYS }),
    operatorPassword: given.OPERATOR_PASSWORD,
    syncIntervalMs: (given.SYNC_INTERVAL_MINUTES ?? DEFAULT_SYNC_INTERVAL_MINUTES) * MINUTE_MS,
    keepDeletedMs: (given.DELETED_RECORDS_DAYS ?? DEFAULT_DELETED_RECORDS_DAYS) * DAY_MS,
    handlerTimeoutMs: (given.HANDLER_TIMEOUT_SECONDS ?? DEFAULT_HANDLER_TIMEOUT_SECONDS) * SECOND_MS,
    logLevel: given.LOG_LEVEL ?? 'info',
    dataDir,
    sandbox: {
      port: given.SANDBOX_PORT ?? SANDBOX_DEFAULTS.port,
      windowMs: given.SANDBOX_WINDOW_MS ?? WINDOW_MS,
      latencyMs: given.SANDBOX_LATENCY_MS ?? 0,
      guards: openGuards({
        analytics: given.SANDBOX_GUARD_ANALYTICS,
        resource: given.SANDBOX_GUARD_RESOURCE,
      }),
    },
  };
}

function serviceConfig(given: GivenValues): ServiceConfig {
  const { host, port, apiPath, authPath, clientId, clientSecret } = SANDBOX_DEFAULTS;
  const sandboxUrl = `http://${host}:${given.SANDBOX_PORT ?? port}`;
  const isSandbox = given.SERVICE_API_URL === undefined;
  return {
    apiUrl: given.SERVICE_API_URL ?? sandboxUrl + apiPath,
    authUrl: given.SERVICE_AUTH_URL ?? sandboxUrl + authPath,
    nextOrigins: given.SERVICE_NEXT_ORIGINS ?? [],
    clientId: given.CLIENT_ID ?? clientId,
    clientSecret: given.CLIENT_SECRET ?? clientSecret,
    // What the own sandbox is told to enforce, the app knows.
    guards: openGuards({
      analytics: given.GUARD_ANALYTICS ?? (isSandbox ? given.SANDBOX_GUARD_ANALYTICS : undefined),
      resource: given.GUARD_RESOURCE ?? (isSandbox ? given.SANDBOX_GUARD_RESOURCE : undefined),
    }),
    isSandbox,
  };
}
