import { existsSync, readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { resolve } from 'node:path';
import { parseEnv } from 'node:util';
import { openGuards } from '../contract/guard-limit.ts';
import { WINDOW_MS } from '../contract/limits.ts';
import { SANDBOX_DEFAULTS } from '../contract/sandbox.ts';
import { findProblems, proxiesIn, usesProxy } from './rules.ts';
import { keptSessionSecret, keptTokenKeys } from './secrets.ts';
import {
  ConfigError,
  type ConfigProblem,
  type ProcessKind,
  readVariables,
  VARIABLES,
  type VariableName,
} from './variables.ts';

/** The directory of development's own files, from the current directory. */
const DEFAULT_DATA_DIR = '.data';
const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const DAY_MS = 24 * 60 * MINUTE_MS;

/** The validated environment. */
export type Config = ReturnType<typeof loadConfig>;

/**
 * Reads `.env` into the environment of this process, where set variables win over the file.
 * It trims all values: a secret from a file ends with a line end.
 *
 * @throws ConfigError if `.env` is not a readable file of text in UTF-8
 */
export function readEnvironment(): NodeJS.ProcessEnv {
  for (const [name, value] of Object.entries(readEnvFile())) process.env[name] ??= value;
  for (const [name, value = ''] of Object.entries(process.env)) process.env[name] = value.trim();
  return process.env;
}

/** Reads `.env`, where there is one. @throws ConfigError as {@link readEnvironment} */
export function readEnvFile(): NodeJS.Dict<string> {
  if (!existsSync('.env')) return {};
  const fail = (problem: string) => new ConfigError([{ variable: '.env', problem }]);
  let bytes: Buffer;
  try {
    bytes = readFileSync('.env');
  } catch {
    // A container tool makes a directory of a mounted file that is missing.
    throw fail(
      'is not a file that the app may read: make it one, with lines such as PORT=3000, or remove it',
    );
  }
  try {
    if (bytes.includes(0)) throw new Error('Half of the bytes of UTF-16 are zero.');
    // Drops the byte order mark of some editors, which would be a part of the first name.
    return parseEnv(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch {
    throw fail('is in UTF-16, or in another encoding than UTF-8: save it in UTF-8');
  }
}

/**
 * Validates the environment, once, at start. An empty variable counts as unset.
 * Development makes the secrets that are not set, and keeps them in the data directory.
 *
 * @param options.kind decides which variables count; no other variable stops the start
 * @param options.dataDir replaces `.data` in the current directory
 * @param options.others further problems, of the fork's settings
 * @throws ConfigError that lists every problem
 */
export function loadConfig(
  env: NodeJS.ProcessEnv,
  options: { kind?: ProcessKind; dataDir?: string; others?: readonly ConfigProblem[] } = {},
) {
  const { kind = 'start', others = [] } = options;
  const production = env.NODE_ENV === 'production';
  const isSandbox = !production && !env.SERVICE_API_URL && !env.SERVICE_AUTH_URL;
  const uses = (name: VariableName): boolean =>
    VARIABLES[name].usedBy.includes(kind) && (isSandbox || !name.startsWith('SANDBOX_'));
  const names = Object.keys(VARIABLES) as VariableName[];
  const { given, problems } = readVariables(env, names.filter(uses));
  problems.push(...findProblems(env, given, uses), ...others);
  if (problems.length > 0) throw new ConfigError(problems);

  const dataDir = resolve(options.dataDir ?? DEFAULT_DATA_DIR);
  const { PORT: port = 3000, PUBLIC_URL: publicUrl = `http://localhost:${port}` } = given;
  const sandbox = {
    host: given.SANDBOX_HOST ?? SANDBOX_DEFAULTS.host,
    port: given.SANDBOX_PORT ?? SANDBOX_DEFAULTS.port,
    windowMs: given.SANDBOX_WINDOW_MS ?? WINDOW_MS,
    latencyMs: given.SANDBOX_LATENCY_MS ?? 0,
    guards: openGuards({ analytics: given.SANDBOX_GUARD_ANALYTICS, resource: given.SANDBOX_GUARD_RESOURCE }),
    ...(given.SANDBOX_PUBLIC_URL && { publicUrl: given.SANDBOX_PUBLIC_URL }),
    ...(given.SANDBOX_ORDER && { order: given.SANDBOX_ORDER }),
    ...(given.SANDBOX_EXPOSE && { expose: given.SANDBOX_EXPOSE }),
  };
  const sandboxUrl = sandbox.publicUrl ?? `http://${reachable(sandbox.host)}:${sandbox.port}`;
  const guards = openGuards({ analytics: given.GUARD_ANALYTICS, resource: given.GUARD_RESOURCE });
  return {
    production,
    /** The service, and the app's account there. URLs have no slash at their end. */
    service: {
      apiUrl: given.SERVICE_API_URL ?? sandboxUrl + SANDBOX_DEFAULTS.apiPath,
      authUrl: given.SERVICE_AUTH_URL ?? sandboxUrl + SANDBOX_DEFAULTS.authPath,
      /** Further origins for `_pagination.next`; `*.` stands for one leading label. */
      nextOrigins: given.SERVICE_NEXT_ORIGINS ?? [],
      clientId: given.CLIENT_ID ?? SANDBOX_DEFAULTS.clientId,
      clientSecret: given.CLIENT_SECRET ?? SANDBOX_DEFAULTS.clientSecret,
      /** Binds codes to this app (RFC 7636): a stolen one is worthless. The specification does not know it. */
      pkce: given.SERVICE_PKCE === 'yes',
      /** Limits of the guards that the specification leaves open, if they differ from the contract's. */
      guards: { ...sandbox.guards, ...guards },
      /** The addresses are the sandbox's, and the entry point must start it. */
      isSandbox,
    },
    /** The origin at which browsers reach the app. */
    publicUrl,
    /** How requests to the service go out, as Node's own variables say. */
    outbound: {
      usesProxy: !isSandbox && usesProxy(env),
      checksCertificates: env.NODE_TLS_REJECT_UNAUTHORIZED !== '0',
    },
    /** The number of our own proxies: the app believes so many entries at the end of X-Forwarded-For. */
    proxyHops: given.PROXY_HOPS ?? (publicUrl.startsWith('https:') ? 1 : 0),
    host: given.HOST ?? (production ? '0.0.0.0' : '127.0.0.1'),
    /** 0 takes a free port. */
    port,
    /** The port of a worker's `/healthz`, `/readyz` and `/metrics`; undefined: none. */
    workerPort: given.WORKER_PORT,
    /** `file:` and a path, or `postgres://…`. */
    databaseUrl: given.DATABASE_URL ?? `file:${dataDir}/app.db`,
    /** Undefined: a private Redis. */
    redisUrl: given.REDIS_URL,
    /** Empty in a process without the web app. */
    sessionSecret: given.SESSION_SECRET ?? (uses('SESSION_SECRET') ? keptSessionSecret(dataDir) : ''),
    /** The first encrypts, all decrypt; empty in a process that reads no tokens. */
    tokenKeys: given.TOKEN_KEYS ?? (uses('TOKEN_KEYS') ? keptTokenKeys(dataDir) : []),
    /** Undefined: there is no `/ops`. */
    operatorPassword: given.OPERATOR_PASSWORD,
    syncIntervalMs: Math.round((given.SYNC_INTERVAL_MINUTES ?? 60) * MINUTE_MS),
    /** The pause between two checks of a list; 0: never. */
    checkIntervalMs: Math.round((given.CHECK_INTERVAL_SECONDS ?? 60) * SECOND_MS),
    /** How long the copy keeps documents of deleted records. */
    keepDeletedMs: (given.DELETED_RECORDS_DAYS ?? 30) * DAY_MS,
    /** The time limit of one call of the handler. */
    handlerTimeoutMs: (given.HANDLER_TIMEOUT_SECONDS ?? 60) * SECOND_MS,
    /** Pauses between the tries of a delivery. */
    handlerRetryMs: (given.HANDLER_RETRY_SECONDS ?? [1, 5, 30, 120, 300]).map((pause) => pause * SECOND_MS),
    /** The heap of the delivery process, in megabytes. */
    handlerMemoryMb: given.HANDLER_MEMORY_MB ?? 512,
    logLevel: given.LOG_LEVEL ?? 'info',
    /** The absolute path of development's own files. */
    dataDir,
    /** Options of the sandbox that `npm start` starts. */
    sandbox,
    /** Variables that are set, and that this process does not use. */
    ignored: [
      ...names.filter((name) => env[name] && !uses(name)),
      ...(isSandbox || usesProxy(env) ? [] : proxiesIn(env)),
    ],
  };
}

/** The host of a URL for an address at which a server listens. */
function reachable(host: string): string {
  if (host === '0.0.0.0' || host === '::') return SANDBOX_DEFAULTS.host;
  return isIP(host) === 6 ? `[${host}]` : host;
}
