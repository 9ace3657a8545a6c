import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { backoffMs, LONGEST_OUTAGE_PAUSE_MS } from '../service/backoff.ts';
import { kindOfStatus, rejectedAgain, ServiceError } from '../service/errors.ts';
import type { ServiceClock } from '../service/headers.ts';
import type { ReadTokens, RefreshableTokens, TokenRow, TokenStore } from '../store/tokens.ts';
import { needsRefresh, refreshExpiry, rotationDueAt } from './expiry.ts';
import { type Grant, type OAuthClient, TOKEN_TIMEOUT_MS, TokenRequestError } from './oauth-client.ts';
import { DamagedTokenError, type TokenCipher } from './token-cipher.ts';

/** How long a write is tried again, in milliseconds. */
const WRITE_PATIENCE_MS = 5_000;
const WRITE_AGAIN_MS = 200;

/** How long one refresh keeps others out, in milliseconds: its request, its write, and a margin. */
const LEASE_MS = TOKEN_TIMEOUT_MS + WRITE_PATIENCE_MS + 5_000;

/** How often a lease of another process is looked at, in milliseconds. */
const LEASE_LOOK_MS = 100;

/** Pauses after failures, in milliseconds; each doubles the one before. A refusal is not over as soon as an outage. */
const OUTAGE_PAUSE = { firstMs: 1_000, longestMs: LONGEST_OUTAGE_PAUSE_MS };
const REFUSAL_PAUSE = { firstMs: 1_000, longestMs: 5 * 60_000 };

/** Wrong credentials are corrected by a restart, which must not wait for long, in milliseconds. */
const CREDENTIALS_PAUSE_MS = 10_000;

/** After a refresh that followed a 401, the next 401 causes none for this long, in milliseconds. */
const REJECTION_PAUSE_MS = 60_000;

/** How long an answer of the token route is waited for when the process ends, in milliseconds. */
const ENDING_MS = 4_000;

/** So long after its six calendar months no refresh token is good any more, in milliseconds. */
const END_MARGIN_MS = 24 * 60 * 60_000;

/** What a run says where the service refuses the app itself. */
const CREDENTIALS_REFUSED =
  'The service does not accept CLIENT_ID and CLIENT_SECRET. Correct them and restart the app.';

/** An access token, and whether it is to be renewed before the next request. */
export interface HeldToken {
  text: string;
  isDue(): boolean;
}

/** Why a refresh is wanted: the access token ends, the service has rejected it, or the refresh token is to be replaced. */
type Reason = 'due' | 'rejected' | 'rotation';

/** What came of a refresh. */
type RefreshOutcome = 'refreshed' | 'rotated' | 'failed' | 'rejected' | 'lost';

/** What the tokens of all instances are kept with. */
export interface TokensParts {
  oauth: OAuthClient;
  store: TokenStore;
  cipher: TokenCipher;
  clock: ServiceClock;
  /** Told what came of every refresh, with the error where it did not go well. */
  onRefresh?: (event: { instanceId: string; outcome: RefreshOutcome; error?: unknown }) => void;
}

/**
 * The tokens of every instance (States, "Token lifecycle").
 *
 *     (none) --install--> active --60 minutes, or 401--> refreshed --> active
 *     active --refresh in the refresh token's last 24 hours--> active with a new refresh token
 *     active --refresh answered with invalid_grant--> needs_reauthorization --install--> active
 *     any --disconnect--> (none)
 *
 * One refresh at a time: callers in one process share a promise, processes take turns by the lease in the row. What comes
 * back is stored before it is used, and only over the version that was read.
 */
export class Tokens {
  readonly #parts: TokensParts;
  readonly #running = new Map<string, Promise<string>>();
  #firstTime: Promise<void> | undefined;
  #isEnding = false;

  constructor(parts: TokensParts) {
    this.#parts = parts;
  }

  /**
   * An access token to send requests with, renewed first if it is about to end.
   *
   * @param rejected a token that the service has just answered with 401: another one is wanted
   * @throws ServiceError
   */
  async accessToken(instanceId: string, rejected?: string): Promise<HeldToken> {
    // Our own clock may be wrong by minutes: ask once before the first token is judged by it.
    this.#firstTime ??= this.#parts.oauth.askTime();
    await this.#firstTime;
    const row = await this.#find(instanceId);
    const isDue = () => needsRefresh(row.access_expires_at, row.refreshed_at, this.#parts.clock.now());
    const { accessToken } = await this.#decrypt(row);
    if (accessToken !== rejected && !isDue()) return { text: accessToken, isDue };
    const text = await this.#refreshOnce(instanceId, row.version, isDue() ? 'due' : 'rejected');
    // When the new one ends stands in the row.
    return { text, isDue: () => true };
  }

  /** The instances whose refresh token is due for rotation, the earliest first (Authentication, 8). */
  async dueForRotation(): Promise<ReadTokens[]> {
    await this.#parts.oauth.askTime();
    return this.#parts.store.due(this.#parts.clock.now());
  }

  /**
   * Refreshes now. In the last 24 hours of the refresh token this brings a new one.
   *
   * @param version of the tokens that are to be renewed: if others have come since, there is nothing to do
   * @throws ServiceError
   */
  async rotate({ instance_id, version }: ReadTokens): Promise<void> {
    await this.#refreshOnce(instance_id, version, 'rotation');
  }

  /** Begins the end: no refresh is begun any more, and those under way have some seconds for their answer. */
  end(): void {
    this.#isEnding = true;
    setTimeout(() => this.#parts.oauth.breakOff(), ENDING_MS).unref();
  }

  /** Waits for the refreshes that are under way. */
  async close(): Promise<void> {
    this.end();
    await Promise.allSettled(this.#running.values());
  }

  #refreshOnce(instanceId: string, readVersion: number, reason: Reason): Promise<string> {
    const running = this.#running.get(instanceId);
    if (running !== undefined) return running;
    const refresh = this.#refresh(instanceId, readVersion, reason).finally(() =>
      this.#running.delete(instanceId),
    );
    this.#running.set(instanceId, refresh);
    return refresh;
  }

  async #refresh(instanceId: string, readVersion: number, reason: Reason): Promise<string> {
    const { oauth, store } = this.#parts;
    const owner = randomUUID();
    const giveUpAt = performance.now() + LEASE_MS;
    for (;;) {
      const row = await this.#find(instanceId);
      const { accessToken, refreshToken } = await this.#decrypt(row);
      if (row.version !== readVersion) return accessToken;
      this.#checkWanted(row, reason);
      if (await store.acquireLease(row, owner, LEASE_MS)) {
        const granted = await oauth.refresh(refreshToken).catch((error: unknown) => error);
        return granted instanceof Error
          ? await this.#fail(row, owner, granted)
          : await this.#save(row, granted as Grant, refreshToken, reason);
      }
      if (performance.now() > giveUpAt)
        throw new ServiceError('unreachable', 'Another process renews the access token.');
      await sleep(LEASE_LOOK_MS);
    }
  }

  #checkWanted({ status, pauseLeftMs, refresh_failures }: RefreshableTokens, reason: Reason): void {
    if (this.#isEnding) throw new ServiceError('unreachable', 'The app is being stopped.');
    if (status === 'needs_reauthorization') {
      throw new ServiceError('reauthorize', 'The app has to be authorized again.');
    }
    if (pauseLeftMs <= 0) return;
    if (refresh_failures > 0) {
      const message = 'The last renewal of the access token failed. The app tries again by itself.';
      throw new ServiceError('unreachable', message, { isRepeat: true, retryAfterMs: pauseLeftMs });
    }
    if (reason === 'rejected') throw rejectedAgain();
  }

  /** Stores the answer of a refresh; only then it is used. */
  async #save(row: TokenRow, grant: Grant, oldToken: string, reason: Reason): Promise<string> {
    const { cipher, store, onRefresh } = this.#parts;
    const instanceId = row.instance_id;
    const isRotated = grant.refreshToken !== undefined && grant.refreshToken !== oldToken;
    const issuedAt = isRotated ? grant.grantedAt : row.refresh_issued_at;
    const tokens = {
      ...encryptTokens(cipher, instanceId, grant.accessToken, grant.refreshToken ?? oldToken),
      access_expires_at: grant.accessExpiresAt,
      refresh_issued_at: issuedAt,
      refresh_due_at: isRotated ? rotationDueAt(issuedAt, instanceId) : row.refresh_due_at,
      refreshed_at: grant.grantedAt,
    };
    // A token that had come to its end was rejected with good reason.
    const isRejection = reason === 'rejected' && grant.grantedAt < row.access_expires_at;
    let isNewest: boolean;
    try {
      isNewest = await writeForSeconds(() => store.save(row, tokens, isRejection ? REJECTION_PAUSE_MS : 0));
    } catch (error) {
      onRefresh?.({ instanceId, outcome: 'lost', error });
      throw error;
    }
    if (!isNewest) return (await this.#decrypt(await this.#find(instanceId))).accessToken;
    onRefresh?.({ instanceId, outcome: isRotated ? 'rotated' : 'refreshed' });
    return grant.accessToken;
  }

  /** Decides what a failed refresh means, and notes it. A sibling may have renewed the tokens meanwhile: then all is well. */
  async #fail(row: RefreshableTokens, owner: string, error: Error): Promise<string> {
    const { store, clock, onRefresh } = this.#parts;
    const instanceId = row.instance_id;
    const failure = refreshFailure(error, row, clock.now());
    if (failure.remedy === 'reauthorize') {
      const newest = await this.#find(instanceId);
      if (newest.version !== row.version) return (await this.#decrypt(newest)).accessToken;
      return this.#reject(row, failure);
    }
    const pauseMs =
      failure.kind === 'credentials'
        ? CREDENTIALS_PAUSE_MS
        : backoffMs(
            row.refresh_failures + 1,
            Math.random(),
            isRefusal(failure.status) ? REFUSAL_PAUSE : OUTAGE_PAUSE,
          );
    const askedMs = (failure.retryAfterMs ?? 0) * (1 + Math.random() / 10);
    await store.fail(row, owner, Math.round(Math.max(pauseMs, askedMs)));
    onRefresh?.({ instanceId, outcome: 'failed', error });
    throw failure;
  }

  async #find(instanceId: string): Promise<RefreshableTokens> {
    const row = await this.#parts.store.findForRefresh(instanceId);
    if (row !== undefined) return row;
    throw new ServiceError('reauthorize', 'The app holds no tokens for this company.');
  }

  async #decrypt(row: RefreshableTokens): Promise<{ accessToken: string; refreshToken: string }> {
    const { cipher } = this.#parts;
    const instanceId = row.instance_id;
    try {
      return {
        accessToken: cipher.decrypt(row.access_token, { instanceId, column: 'access_token' }),
        refreshToken: cipher.decrypt(row.refresh_token, { instanceId, column: 'refresh_token' }),
      };
    } catch (error) {
      if (!(error instanceof DamagedTokenError)) throw error;
      return this.#reject(row, new ServiceError('reauthorize', error.message, { cause: error }));
    }
  }

  /** Marks the instance for a new authorization: its jobs stop, the dashboard says why, nothing is deleted. Told once. */
  async #reject(row: RefreshableTokens, error: ServiceError): Promise<never> {
    const isNew = await this.#parts.store.reject(row, { kind: 'reauthorize', detail: error.message });
    if (isNew) this.#parts.onRefresh?.({ instanceId: row.instance_id, outcome: 'rejected', error });
    throw error;
  }
}

/** Encrypts both tokens of an instance for their columns. */
export function encryptTokens(
  cipher: TokenCipher,
  instanceId: string,
  accessToken: string,
  refreshToken: string,
): { access_token: string; refresh_token: string } {
  return {
    access_token: cipher.encrypt(accessToken, { instanceId, column: 'access_token' }),
    refresh_token: cipher.encrypt(refreshToken, { instanceId, column: 'refresh_token' }),
  };
}

/** Tries a write again until five seconds have gone: what it stores may be the only copy of a token. */
export async function writeForSeconds<Result>(write: () => Promise<Result>): Promise<Result> {
  const giveUpAt = performance.now() + WRITE_PATIENCE_MS;
  for (;;) {
    try {
      return await write();
    } catch (error) {
      if (performance.now() > giveUpAt) throw error;
    }
    await sleep(WRITE_AGAIN_MS);
  }
}

/**
 * Only `invalid_grant` says that a grant is over; or any refusal, once its six months are over. Everything else keeps it.
 */
function refreshFailure(error: Error, row: TokenRow, now: number): ServiceError {
  if (!(error instanceof TokenRequestError)) throw error;
  const { status, code, retryAfterMs } = error.refusal;
  const facts = { cause: error, status, retryAfterMs };
  if (code === 'invalid_grant') {
    return new ServiceError('reauthorize', 'The service does not accept the refresh token any more.', facts);
  }
  if (code === 'invalid_client' || code === 'unauthorized_client') {
    return new ServiceError('credentials', CREDENTIALS_REFUSED, facts);
  }
  // An answer without a token is no refusal, but as good as one at the end of the six months.
  const isBad = status !== undefined && status < 400;
  const isRefused = isBad || isRefusal(status);
  const endsAt = refreshExpiry(row.refresh_issued_at) + END_MARGIN_MS;
  if (isRefused && now > endsAt && row.refreshed_at <= endsAt) {
    const message = `The refresh token's six months are over, and the service refuses it (${status}).`;
    return new ServiceError('reauthorize', message, facts);
  }
  const what = isRefusal(status)
    ? "The service refuses to renew the app's access"
    : 'The token route of the service has trouble';
  const message = `${what}${status === undefined ? '' : ` (${status})`}.`;
  return new ServiceError(isBad ? 'bad_answer' : kindOfStatus(status), message, { ...facts, remedy: 'wait' });
}

function isRefusal(status: number | undefined): boolean {
  return status !== undefined && status >= 400 && status < 500 && status !== 408 && status !== 429;
}
