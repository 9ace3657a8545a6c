import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from '../runtime/logging.ts';
import { backoffMs, LONGEST_OUTAGE_PAUSE_MS } from '../service/backoff.ts';
import { kindOfStatus, rejectedAgain, ServiceError } from '../service/errors.ts';
import type { ServiceClock } from '../service/headers.ts';
import type { ReadTokens, RefreshableTokens, TokenRow, TokenStore } from '../store/token-table.ts';
import { needsRefresh, refreshExpiry, rotationDueAt } from './expiry.ts';
import {
  type Grant,
  type OAuthClient,
  TOKEN_TIMEOUT_MS,
  TokenRequestError,
  wordsOf,
} from './oauth-client.ts';
import { DamagedTokenError, type TokenCipher } from './token-cipher.ts';

/** How long a failed write is retried, and the pause between two tries, in milliseconds. */
const WRITE_TIMEOUT_MS = 5_000;
const WRITE_RETRY_MS = 200;

/** How long one refresh holds the lease, in milliseconds: request, write and a margin. */
const LEASE_MS = TOKEN_TIMEOUT_MS + WRITE_TIMEOUT_MS + 5_000;

/** How often a process looks at the lease of another, in milliseconds. */
const LEASE_POLL_MS = 100;

/** Pauses after failures double each time. A refusal lasts longer than an outage. */
const OUTAGE_PAUSE = { firstMs: 1_000, longestMs: LONGEST_OUTAGE_PAUSE_MS };
const REFUSAL_PAUSE = { firstMs: 1_000, longestMs: 5 * 60_000 };

/** The pause after wrong credentials, in milliseconds. It is short, since a restart corrects them. */
const CREDENTIALS_PAUSE_MS = 10_000;

/** After a 401 and its refresh, the next 401 causes no refresh for this long, in milliseconds. */
const REJECTION_PAUSE_MS = 60_000;

/** How long a process that ends waits for the token route, in milliseconds. */
const SHUTDOWN_MS = 4_000;

/** A refresh token has ended for sure this long after its six calendar months, in milliseconds. */
const END_MARGIN_MS = 24 * 60 * 60_000;

const CREDENTIALS_REFUSED =
  'The service does not accept CLIENT_ID and CLIENT_SECRET. Correct them and restart the app.';

/** An access token, and whether it needs a refresh before the next request. */
export interface HeldToken {
  text: string;
  isDue(): boolean;
}

/** Why to refresh: the access token ends, the service rejected it, or the refresh token is due for rotation. */
type Reason = 'due' | 'rejected' | 'rotation';

type RefreshOutcome = 'refreshed' | 'rotated' | 'failed' | 'rejected' | 'lost';

export interface TokensParts {
  oauth: OAuthClient;
  store: TokenStore;
  cipher: TokenCipher;
  clock: ServiceClock;
  /** Called after every refresh; `error` says why it failed. */
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
 * One refresh at a time: callers in one process share a promise, and processes take the lease in the row. New tokens are
 * stored before use, and only over the version that was read.
 */
export class Tokens {
  readonly #parts: TokensParts;
  readonly #running = new Map<string, Promise<string>>();
  #firstTime: Promise<void> | undefined;
  #isEnding = false;
  readonly #ended = Promise.withResolvers<void>();

  constructor(parts: TokensParts) {
    this.#parts = parts;
  }

  /**
   * Returns an access token, and refreshes it first if it is about to end.
   *
   * @param rejected a token that the service has just answered with 401
   * @throws ServiceError
   */
  async accessToken(instanceId: string, rejected?: string): Promise<HeldToken> {
    // Our own clock may be wrong by minutes, so ask the service once.
    this.#firstTime ??= this.#parts.oauth.askTime();
    await this.#firstTime;
    const row = await this.#find(instanceId);
    const isDue = () => needsRefresh(row.access_expires_at, row.refreshed_at, this.#parts.clock.now());
    const { accessToken } = await this.#decrypt(row);
    if (accessToken !== rejected && !isDue()) return { text: accessToken, isDue };
    const text = await this.#refreshOnce(instanceId, row.version, isDue() ? 'due' : 'rejected');
    // The row says when the new token ends. The next call reads it.
    return { text, isDue: () => true };
  }

  /** The instances whose refresh token is due for rotation (Authentication, 8). */
  async dueForRotation(): Promise<ReadTokens[]> {
    await this.#parts.oauth.askTime();
    return this.#parts.store.due(this.#parts.clock.now());
  }

  /**
   * Refreshes now. In the last 24 hours of a refresh token the service sends a new one.
   *
   * @param read the tokens to renew; does nothing if the row holds newer ones
   * @throws ServiceError
   */
  async rotate(read: ReadTokens): Promise<void> {
    await this.#refreshOnce(read.instance_id, read.version, 'rotation');
  }

  /** Starts no refresh from now on, and aborts those under way after {@link SHUTDOWN_MS}. */
  end(): void {
    this.#isEnding = true;
    this.#ended.resolve();
    setTimeout(() => this.#parts.oauth.breakOff(), SHUTDOWN_MS).unref();
  }

  /** Ends, and waits for the refreshes under way. */
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
    let giveUpAt = Number.POSITIVE_INFINITY;
    let isPaced = false;
    for (;;) {
      const row = await this.#find(instanceId);
      const { accessToken, refreshToken } = await this.#decrypt(row);
      if (row.version !== readVersion) return accessToken;
      this.#checkWanted(row, reason);
      if (!isPaced) {
        await Promise.race([oauth.pace(), this.#ended.promise]);
        isPaced = true;
        giveUpAt = performance.now() + LEASE_MS;
        continue;
      }
      if (await store.acquireLease(row, owner, LEASE_MS)) {
        const granted = await oauth.refresh(refreshToken).catch((error: unknown) => error);
        return granted instanceof Error
          ? await this.#fail(row, owner, granted)
          : await this.#save(row, granted as Grant, refreshToken, reason);
      }
      if (performance.now() > giveUpAt)
        throw new ServiceError('unreachable', 'Another process is refreshing the access token.');
      await sleep(LEASE_POLL_MS);
    }
  }

  #checkWanted({ status, pauseLeftMs, refresh_failures }: RefreshableTokens, reason: Reason): void {
    if (this.#isEnding) throw new ServiceError('unreachable', 'The app is being stopped.');
    if (status === 'needs_reauthorization') {
      throw new ServiceError('reauthorize', 'An administrator must authorize the app again.');
    }
    if (pauseLeftMs <= 0) return;
    if (refresh_failures > 0) {
      const message = 'The last refresh of the access token failed. The app retries it.';
      throw new ServiceError('unreachable', message, { isRepeat: true, retryAfterMs: pauseLeftMs });
    }
    if (reason === 'rejected') throw rejectedAgain();
  }

  /** Stores new tokens, and returns the access token only then. */
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
    // An expired token was rejected with good reason, so it needs no pause.
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

  /** Stores the failure of a refresh. If another process stored new tokens meanwhile, their access token serves. */
  async #fail(row: RefreshableTokens, owner: string, error: Error): Promise<string> {
    const { store, clock, onRefresh } = this.#parts;
    const instanceId = row.instance_id;
    const failure = refreshFailure(error, row, clock.now());
    if (failure.remedy === 'reauthorize') {
      const newest = await this.#find(instanceId);
      if (newest.version !== row.version) return (await this.#decrypt(newest)).accessToken;
      return this.#reject(row, failure);
    }
    const pauses = isRefusal(failure.status) ? REFUSAL_PAUSE : OUTAGE_PAUSE;
    const growingMs = backoffMs(row.refresh_failures + 1, Math.random(), pauses);
    const pauseMs = failure.kind === 'credentials' ? CREDENTIALS_PAUSE_MS : growingMs;
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

  /** Marks the instance as `needs_reauthorization`, with the reason. Deletes nothing, and reports it once. */
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

/** Retries a write for five seconds: it may hold the only copy of a token. */
export async function writeForSeconds<Result>(write: () => Promise<Result>): Promise<Result> {
  const giveUpAt = performance.now() + WRITE_TIMEOUT_MS;
  for (;;) {
    try {
      return await write();
    } catch (error) {
      if (performance.now() > giveUpAt) throw error;
    }
    await sleep(WRITE_RETRY_MS);
  }
}

/** Only `invalid_grant` ends a grant, or any refusal after its six months. All other errors keep it. */
function refreshFailure(error: Error, row: TokenRow, now: number): ServiceError {
  if (!(error instanceof TokenRequestError)) throw error;
  const { status, code, retryAfterMs } = error.refusal;
  const facts = { cause: error, status, retryAfterMs };
  if (code === 'invalid_grant') {
    const words = wordsOf(error.refusal);
    return new ServiceError('reauthorize', `The service no longer accepts the refresh token${words}.`, facts);
  }
  if (code === 'invalid_client' || code === 'unauthorized_client') {
    return new ServiceError('credentials', CREDENTIALS_REFUSED, facts);
  }
  // After the six months, an answer without a token counts as a refusal.
  const isBad = status !== undefined && status < 400;
  const isRefused = isBad || isRefusal(status);
  const endsAt = refreshExpiry(row.refresh_issued_at) + END_MARGIN_MS;
  if (isRefused && now > endsAt && row.refreshed_at <= endsAt) {
    const message = `The refresh token is older than six months, and the service refuses it (${status}).`;
    return new ServiceError('reauthorize', message, facts);
  }
  const what = isRefusal(status)
    ? 'The service refuses to refresh the access token'
    : 'The token route of the service failed';
  const message = `${what}${status === undefined ? '' : ` (${status})`}.`;
  return new ServiceError(isBad ? 'bad_answer' : kindOfStatus(status), message, { ...facts, remedy: 'wait' });
}

function isRefusal(status: number | undefined): boolean {
  return status !== undefined && status >= 400 && status < 500 && status !== 408 && status !== 429;
}

const ROTATIONS_AT_ONCE = 4;

/** A sweep starts no rotation after this: the next sweep is about to come. */
const ROTATION_SWEEP_MS = 25_000;

/**
 * Renews every refresh token that is due (Authentication, 8). A token that fails stays due for the next sweep.
 *
 * @param signal ends the sweep between two tokens
 */
export async function rotateTokens(tokens: Tokens, logger: Logger, signal: AbortSignal): Promise<void> {
  const endsAt = performance.now() + ROTATION_SWEEP_MS;
  const due = (await tokens.dueForRotation()).values();
  const rotateNext = async () => {
    for (const read of due) {
      if (signal.aborted || performance.now() >= endsAt) return;
      const instanceId = read.instance_id;
      await tokens.rotate(read).then(
        () => logger.info({ instanceId }, 'tokens renewed'),
        (error: unknown) => logger.warn({ instanceId, err: error }, 'tokens could not be renewed'),
      );
    }
  };
  await Promise.all(Array.from({ length: ROTATIONS_AT_ONCE }, rotateNext));
}
