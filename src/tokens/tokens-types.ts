import type { ServiceClock } from '../client/service-clock.ts';
import type { InstanceStore } from '../store/instances.ts';
import type { TokenStore } from '../store/tokens.ts';
import type { KeptWritesParts } from './kept-writes.ts';
import type { RedisLock } from './lock.ts';
import type { OAuthClient } from './oauth-client.ts';
import type { HostLocks } from './refresh-lock.ts';
import type { RefreshPauses } from './refresh-pauses.ts';
import type { Vault } from './vault.ts';

/** What the tokens of all instances are kept with. */
export interface TokensParts extends Omit<KeptWritesParts, 'onFailure'> {
  oauth: OAuthClient;
  store: TokenStore;
  instances: InstanceStore;
  vault: Vault;
  lock: RedisLock;
  /** Of the processes that share the database. */
  hostLocks: HostLocks;
  pauses: RefreshPauses;
  /** The token route's: the time that lifetimes are told and counted in. */
  clock: ServiceClock;
  /** Told of every refresh: what came of it. One is cut off when its process ends and no answer has come. */
  onRefresh?: (event: {
    instanceId: string;
    outcome: 'refreshed' | 'rotated' | 'failed' | 'cut_off' | 'rejected';
  }) => void;
}

/** An access token, and whether it is to be renewed before the next request. */
export interface HeldToken {
  text: string;
  isDue(): boolean;
  /** Is told that the service has not rejected it. */
  accepted(): void;
}

/** An instance as an install makes it, or finds it again. */
export interface NewInstance {
  id: string;
  /** The service's id of the company; null when the service does not tell. */
  companyId: string | null;
  name: string;
  /** When the grant came: milliseconds since 1970, local clock. */
  installedAt: number;
  /** When it was asked for, in the same time, if that was before. */
  askedAt?: number;
}

/**
 * Why a refresh is wanted: the access token ends by its time, or was rejected although it should be good; or the refresh
 * token is to be replaced. And for how long the access token was of use to who asks, in milliseconds, as far as is known.
 */
export type Renewal = { reason: 'due' | 'rejected' | 'rotation'; usefulMs?: number | undefined };
