import type { Redis } from 'ioredis';
import type { ServiceClock } from '../../src/client/service-clock.ts';
import { FileLocks } from '../../src/runtime/file-locks.ts';
import type { Database } from '../../src/store/database.ts';
import { pathOf } from '../../src/store/existing-file.ts';
import { InstanceStore } from '../../src/store/instances.ts';
import { TokenStore } from '../../src/store/tokens.ts';
import { RedisLock } from '../../src/tokens/lock.ts';
import { OAuthClient } from '../../src/tokens/oauth-client.ts';
import { RefreshPauses } from '../../src/tokens/refresh-pauses.ts';
import { Tokens } from '../../src/tokens/tokens.ts';
import type { Vault } from '../../src/tokens/vault.ts';

/** What a process brings along. */
export interface TokenProcessParts {
  db: Database;
  redis: Redis;
  vault: Vault;
  clock: ServiceClock;
  /** Of the token route. */
  authUrl: string;
  /** Of the application that it asks as; `app` by default. */
  clientId?: string;
  /** How long it may take, in seconds; 30 by default. */
  timeoutSeconds?: number;
  /** Where its locks are, instead of beside the database: others that have theirs elsewhere do not see them. */
  lockDir?: string;
}

/** All that a process of the app has to do with tokens, put together as the app does. */
export function tokenProcess(parts: TokenProcessParts) {
  const { db, redis, vault, clock, authUrl, clientId = 'app', timeoutSeconds = 30 } = parts;
  const store = new TokenStore(db);
  const instances = new InstanceStore(db);
  const oauth = new OAuthClient({
    authUrl,
    clientId,
    clientSecret: 'secret',
    redirectUri: 'https://app.example/oauth/callback',
    clock,
    timeoutSeconds,
  });
  const [lock, pauses] = [new RedisLock(redis), new RefreshPauses(redis)];
  const hostLocks = new FileLocks(parts.lockDir ?? `${pathOf(db.url)}-refreshes`);
  const tokens = new Tokens({ oauth, store, instances, vault, lock, hostLocks, pauses, clock });
  return { tokens, store, instances };
}
