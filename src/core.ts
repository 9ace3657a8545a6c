import { randomBytes } from 'node:crypto';
import { createTokenPace, OAuthClient } from './auth/oauth-client.ts';
import { TokenCipher } from './auth/token-cipher.ts';
import { Tokens } from './auth/tokens.ts';
import type { EventSender } from './changes/app-events.ts';
import type { ChangeHandler } from './changes/change-handler.ts';
import type { ChangeConsumer } from './changes/delivery.ts';
import { handlerConsumer } from './changes/handler-consumer.ts';
import { searchConsumer } from './changes/search-consumer.ts';
import type { Config } from './config/config.ts';
import { CALLBACK_PATH } from './contract/routes.ts';
import type { Settings } from './integration/types.ts';
import type { CompanyFinder } from './runtime/company-finder.ts';
import type { Logger } from './runtime/logging.ts';
import type { Metrics } from './runtime/metrics.ts';
import { redact } from './runtime/redaction.ts';
import { createRedis } from './runtime/redis.ts';
import { LEFT_TO_SYNC, RateBudget } from './service/budget.ts';
import { ServiceClock } from './service/headers.ts';
import { HttpClient } from './service/http.ts';
import { AllowedOrigins } from './service/next-url.ts';
import { ServiceApi } from './service/service-api.ts';
import { type ClientFor, type ClientParts, createServiceClient } from './service/service-client.ts';
import { DueListStore } from './store/due-lists.ts';
import { SchemaError } from './store/migrate.ts';
import { isFileUrl, keepSetting, openDatabase } from './store/open-database.ts';
import { openStores } from './store/stores.ts';
import { TokenStore } from './store/token-table.ts';

/** Connections for tokens, checks and the look for due lists, besides those of pages and deliveries. */
const URGENT_CONNECTIONS = 3;

/** The metrics that count what a process asks of the service. */
type ServiceCounts = Pick<Metrics, 'onServiceOutcome' | 'onTokenRefresh'>;

interface CoreOptions {
  events: EventSender | undefined;
  counts: ServiceCounts;
  /** The longest statement of a process in which handlers run, in milliseconds. */
  statementsMs?: number;
  /** Names companies in the log from now on. */
  companies?: CompanyFinder | undefined;
  /** Of src/integration/app-info.ts: services and PostgreSQL see it, in letters that all of them take. */
  appName: string;
}

/** PostgreSQL lists its connections by this name, unless the URL has one. */
function withName(url: string, name: string): string {
  if (isFileUrl(url) || url.includes('application_name=')) return url;
  return `${url}${url.includes('?') ? '&' : '?'}application_name=${name}`;
}

/**
 * Opens database, Redis and service for one process, with what keeps tokens and limit. In development it migrates the
 * database.
 *
 * @param redisUrl all processes share this Redis
 * @throws Error when the database does not open or has another schema, or a token key is wrong
 */
export async function openCore(
  config: Config,
  redisUrl: string,
  logger: Logger,
  { events, counts, statementsMs, companies, appName }: CoreOptions,
) {
  const cipher = new TokenCipher(config.tokenKeys);
  const onError = (err: Error) => logger.warn({ err }, 'a connection to the database broke');
  const name =
    appName
      .toLowerCase()
      .replace(/[^a-z0-9]+/g, '-')
      .replace(/^-|-$/g, '') || 'partner-app';
  const databaseUrl = withName(config.databaseUrl, name);
  const options = { migrates: !config.production, statementsMs, onError };
  const db = await openDatabase(databaseUrl, options).catch((error) => {
    const isOfDevelopment = !config.production && config.databaseUrl.startsWith(`file:${config.dataDir}/`);
    if (isOfDevelopment && error instanceof SchemaError) {
      error.message += ` In development you can delete ${config.dataDir} instead: all of it is made anew.`;
    }
    throw error;
  });
  // Pages of many runs may take all connections: tokens must be stored all the same.
  const urgent = isFileUrl(databaseUrl)
    ? db
    : await openDatabase(databaseUrl, { ...options, connections: URGENT_CONNECTIONS });
  const stores = { ...openStores(db), tokens: new TokenStore(urgent) };
  const closeDatabase = async () => {
    await db.destroy();
    if (urgent !== db) await urgent.destroy();
  };
  if (companies !== undefined) {
    companies.find = async (id) => {
      const instance = await stores.instances.find(id);
      return instance && { company: instance.name, page: `/ops/instances/${encodeURIComponent(id)}` };
    };
  }
  const onEvent = events?.sendFor(stores.instances);
  const keep = (name: string, value: string) => keepSetting(db, name, value);
  const installation = await cipher
    .proveKeys(keep)
    .then(() => keep('installation_id', randomBytes(6).toString('hex')))
    .catch(async (error) => {
      await closeDatabase();
      throw error;
    });
  const redis = createRedis(redisUrl, 'general', logger, { keyPrefix: `${installation}:` });
  const outbound = { ...config.outbound, userAgent: name };
  const http = new HttpClient(outbound);
  const clock = new ServiceClock();
  const budget = new RateBudget(redis);
  const callBudget = new RateBudget(redis, { leftToSync: LEFT_TO_SYNC });
  const { apiUrl, nextOrigins, guards } = config.service;
  const origins = new AllowedOrigins(apiUrl, nextOrigins);
  const api = new ServiceApi({ apiUrl, http, clock, budget, origins, onOutcome: counts.onServiceOutcome });
  const redirectUri = config.publicUrl + CALLBACK_PATH;
  const pace = createTokenPace(redis);
  const oauth = new OAuthClient({ ...config.service, redirectUri, clock, outbound, pace });
  const tokens = new Tokens({
    oauth,
    store: stores.tokens,
    cipher,
    clock,
    onRefresh: ({ instanceId, outcome, error }) => {
      counts.onTokenRefresh(outcome);
      if (outcome === 'rejected') {
        logger.warn({ instanceId, err: error }, 'the instance needs a new authorization');
        const reason = error instanceof Error ? error.message : String(error);
        onEvent?.(instanceId, { type: 'authorization_ended', error: redact(reason) });
      }
      if (outcome === 'lost')
        logger.error({ instanceId, err: error }, 'refreshed tokens could not be stored');
    },
  });
  const clientParts: ClientParts = { api, budget: callBudget, tokens, guards };
  return {
    ...{ db, stores, installation, redis, budget, clock, api, oauth, tokens, cipher, onEvent },
    /** Finds due lists, by connections that pages do not take. */
    dueLists: new DueListStore(urgent),
    checkDatabase: () => urgent.check(),
    /** For calls and writes of the handler, which leave a part of the limit to the sync. */
    clientParts,
    /** The consumers of the change feed, with the fork's handler if it has one. */
    consumers(
      handler: ChangeHandler | undefined,
      settings = {} as Settings,
      onTransaction?: (isUnderWay: boolean) => void,
    ): ChangeConsumer[] {
      const { changes } = stores;
      const { handlerTimeoutMs: timeoutMs } = config;
      const serviceFor = (client: ClientFor) => createServiceClient(clientParts, client);
      const parts = { settings, timeoutMs, changes, db, serviceFor, onTransaction };
      return [searchConsumer(db), ...(handler === undefined ? [] : [handlerConsumer({ ...parts, handler })])];
    },
    /** Closes the connections. */
    async close(): Promise<void> {
      try {
        await tokens.close();
      } finally {
        await http.close();
        redis.disconnect();
        await closeDatabase();
      }
    },
  };
}
