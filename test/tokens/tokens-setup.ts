import { randomBytes } from 'node:crypto';
import { Redis } from 'ioredis';
import { afterAll, beforeEach } from 'vitest';
import { ServiceClock } from '../../src/client/service-clock.ts';
import { FileLocks } from '../../src/runtime/file-locks.ts';
import { InstanceStore } from '../../src/store/instances.ts';
import { openDatabase } from '../../src/store/open-database.ts';
import { TokenStore } from '../../src/store/tokens.ts';
import { RedisLock } from '../../src/tokens/lock.ts';
import { OAuthClient } from '../../src/tokens/oauth-client.ts';
import { RefreshPauses } from '../../src/tokens/refresh-pauses.ts';
import { Tokens } from '../../src/tokens/tokens.ts';
import type { TokensParts } from '../../src/tokens/tokens-types.ts';
import { Vault } from '../../src/tokens/vault.ts';
import { tempDir } from '../support/temp-dir.ts';
import { startTestRedis } from '../support/test-redis.ts';
import { accessTokenFrom } from './access-token.ts';
import { startTokenServer } from './token-server.ts';

export const HOUR_MS = 60 * 60_000;
export const DAY_MS = 24 * HOUR_MS;

/** What a token route says that was kept waiting. */
export const ANSWERED = { access_token: 'at-late', refresh_token: 'rt-late', token_type: 'Bearer' };

const START = Date.UTC(2026, 2, 1, 12, 0, 0);

/** The tokens of one instance, which each test gets anew, with a clock that stands still until it is set. */
export async function setUpTokens() {
  // A token route of the test's own, not the sandbox: the test holds its answers back for as long as it likes.
  const server = await startTokenServer();
  const redis = new Redis((await startTestRedis()).url);
  const lockDir = tempDir();
  const databaseUrl = `file:${tempDir()}/app.db`;
  const db = await openDatabase(databaseUrl);
  afterAll(async () => {
    redis.disconnect();
    await db.destroy();
  });

  const vault = new Vault([{ id: 'k1', key: randomBytes(32) }]);
  const store = new TokenStore(db);
  const instances = new InstanceStore(db);

  function newOAuthClient(clock: ServiceClock, timeoutSeconds = 30): OAuthClient {
    return new OAuthClient({
      authUrl: server.url,
      clientId: 'app',
      clientSecret: 'secret',
      redirectUri: 'https://app.example/oauth/callback',
      clock,
      timeoutSeconds,
    });
  }

  /** The same store and Redis, as another process has them. */
  function newProcess(parts: Partial<TokensParts> = {}): Tokens {
    const clock = new ServiceClock(() => state.now);
    return new Tokens({
      oauth: newOAuthClient(clock),
      store,
      instances,
      vault,
      lock: new RedisLock(redis),
      hostLocks: new FileLocks(lockDir),
      pauses: new RefreshPauses(redis),
      clock,
      onRefresh: ({ outcome }) => state.events.push(outcome),
      ...parts,
    });
  }

  /** Anew for each test. */
  const state = { now: START, events: [] as string[], id: 'ins_0', tokens: newProcess() };

  const helpers = {
    server,
    redis,
    db,
    databaseUrl,
    vault,
    store,
    instances,
    newOAuthClient,
    newProcess,
    start: START,

    /** A store whose disk takes no grants until it is told otherwise, and counts what it refuses until then. */
    fillingStore() {
      const disk = { isFull: true, refused: 0 };
      const checkRoom = () => {
        if (!disk.isFull) return;
        disk.refused++;
        throw new Error('disk full');
      };
      const filling = new (class extends TokenStore {
        override async replace(...args: Parameters<TokenStore['replace']>): Promise<boolean> {
          checkRoom();
          return super.replace(...args);
        }

        override async install(...args: Parameters<TokenStore['install']>): Promise<boolean> {
          checkRoom();
          return super.install(...args);
        }
      })(db);
      return { disk, filling };
    },

    /** One that sees nobody's locks: those of Redis were lost, those of files are on a file system that keeps none. */
    async newUnlocked(): Promise<Tokens> {
      await redis.flushall();
      return newProcess({ hostLocks: new FileLocks(tempDir()) });
    },

    /** The instance and its company, as an install names them. */
    company: (installedAt = state.now) => ({
      id: state.id,
      companyId: state.id.replace('ins', 'cmp'),
      name: 'Acme',
      installedAt,
    }),

    grant: (accessToken: string, refreshToken: string) => {
      return { accessToken, refreshToken, grantedAt: state.now, accessExpiresAt: state.now + HOUR_MS };
    },

    accessToken: (rejected?: string) => accessTokenFrom(state.tokens, state.id, rejected),

    async stored() {
      const { id: instanceId } = state;
      const row = await store.find(instanceId);
      if (row === undefined) throw new Error('no tokens');
      return {
        ...row,
        access: vault.open(row.access_token, { instanceId, purpose: 'access_token' }),
        refresh: vault.open(row.refresh_token, { instanceId, purpose: 'refresh_token' }),
      };
    },
  };

  let count = 0;
  beforeEach(async () => {
    state.now = START;
    state.events = [];
    state.id = `ins_${++count}`;
    server.requests.length = 0;
    state.tokens = newProcess();
    await state.tokens.install(helpers.company(), helpers.grant('at-0', 'rt-0'));
  });

  return Object.assign(state, helpers);
}
