import { rejectedAgain, ServiceError } from '../client/errors.ts';
import type { ReadTokens, TokenRow } from '../store/tokens.ts';
import { AcceptedTokens } from './accepted-tokens.ts';
import { EarlyRefreshes } from './early-refreshes.ts';
import { endNotice, refusalNotice } from './ended-grants.ts';
import { needsRefresh } from './expiry.ts';
import { KeptWrites } from './kept-writes.ts';
import { checkTriedKey, explainMissingKey } from './key-checks.ts';
import type { Grant } from './oauth-client.ts';
import { type Received, ReceivedGrants } from './received-grants.ts';
import { ReceivedInstalls } from './received-installs.ts';
import { refreshFailure } from './refresh-failure.ts';
import { LOCK_MS, RefreshLock } from './refresh-lock.ts';
import { RefreshPlaces } from './refresh-places.ts';
import type { HeldToken, NewInstance, Renewal, TokensParts } from './tokens-types.ts';
import { VaultError } from './vault.ts';
import { CHANGED, ENDS, NOT_WRITTEN } from './waits.ts';

/**
 * How long an answer of the token route is waited for when the process ends, in milliseconds: it may bring a refresh token
 * that the one before has ended for. What remains of the ten seconds that a shutdown has is for writing it, and for clients of
 * the web app that take no end.
 */
const ENDING_MS = 5_000;

/**
 * How long what could not be written is tried on, in milliseconds: since the end has begun, of the ten seconds of which the
 * rest is for closing all else; but for a second in any case. Where nothing has told of the end, since the close.
 */
const WRITING = { sinceEndMs: 8_000, leastMs: 1_000, sinceCloseMs: 4_000 } as const;

/**
 * The tokens of every instance (States, "Token lifecycle").
 *
 *     (none) --install--> active --60 minutes, or 401--> refreshed --> active
 *     active --refresh in the refresh token's last 24 hours--> active with a new refresh token
 *     active --refresh answered with invalid_grant--> needs_reauthorization --install--> active
 *     active --refresh refused in any form, the refresh token's six months over--> needs_reauthorization
 *     needs_reauthorization, refused to another application --a process starts, see `ended-grants.ts`--> active
 *     any --disconnect--> (none)
 *
 * A refresh is done once however many ask for it: callers in one process share it, processes take turns by locks
 * ({@link RefreshLock}), and whoever gets them looks first whether there is still something to do. What keeps a late
 * holder from overwriting a newer grant is no lock, but the version that every write is checked against.
 *
 * One that fails is followed by a pause, which grows from failure to failure; one that was refused by none: nobody asks
 * again until there is a new authorization. A grant that came and could not be written is kept by this process, which
 * tries on, and nobody asks for another meanwhile: the service may have ended the refresh token before it.
 */
export class Tokens {
  readonly #parts: TokensParts;
  readonly #running = new Map<string, Promise<string>>();
  readonly #lock: RefreshLock;
  readonly #places = new RefreshPlaces();
  readonly #writes: KeptWrites;
  readonly #received: ReceivedGrants;
  readonly #installs: ReceivedInstalls;
  readonly #early: EarlyRefreshes;
  readonly #accepted: AcceptedTokens;
  readonly #ending = new AbortController();
  #isCutOff = false;
  /** By {@link WRITING}, on the clock that only goes forward. */
  #writesUntil: number | undefined;

  constructor(parts: TokensParts) {
    this.#parts = parts;
    this.#lock = new RefreshLock(parts);
    this.#writes = new KeptWrites({
      ...parts,
      onFailure: (instanceId) => parts.pauses.hold('unwritten', instanceId, NOT_WRITTEN),
    });
    this.#received = new ReceivedGrants(parts, this.#writes);
    this.#installs = new ReceivedInstalls(parts, this.#writes);
    this.#early = new EarlyRefreshes(() => parts.clock.steady());
    this.#accepted = new AcceptedTokens(() => parts.clock.steady(), parts.pauses);
  }

  /**
   * Makes sure that the grant of an install could be stored: the service may end the one before by it.
   *
   * @throws Error when the database cannot be written
   */
  checkWritable(): Promise<void> {
    return this.#parts.store.checkWritable();
  }

  /**
   * Stores the grant of an install, as {@link ReceivedInstalls} does.
   *
   * @returns false where a newer one, or a disconnect, stays
   * @throws whatever keeps it from being written for seconds: this process tries on
   */
  install(instance: NewInstance, grant: Grant & { refreshToken: string }): Promise<boolean> {
    return this.#installs.store(instance, grant);
  }

  /**
   * An access token to send requests with: renewed first if it is about to end. It says itself when it is to be asked for anew.
   *
   * @param rejected a token that the service has just answered with 401: another one is wanted
   * @param use what it is for, as a list or a route: for how long a token is good is kept by that
   * @throws ServiceError: to wait, to give up, or that the instance needs a new authorization
   */
  async heldToken(instanceId: string, rejected: string | undefined, use: string): Promise<HeldToken> {
    const row = await this.#find(instanceId);
    const isDue = () =>
      needsRefresh(row.access_expires_at, row.refreshed_at, this.#parts.clock.now()) &&
      !this.#early.isHeld(instanceId);
    const of = { instanceId, version: row.version, use };
    const text = (await this.#open(row)).accessToken;
    if (text !== rejected && !isDue()) return { text, isDue, accepted: () => this.#accepted.note(of) };
    const why: Renewal = isDue()
      ? { reason: 'due' }
      : { reason: 'rejected', usefulMs: await this.#accepted.lasted(of) };
    const renewed = await this.#refreshOnce(instanceId, row.version, why);
    // When the renewed one ends stands in the store: whoever sends a second request reads it there.
    const next = { ...of, version: row.version + 1 };
    return { text: renewed, isDue: () => true, accepted: () => this.#accepted.note(next) };
  }

  /** The instances whose refresh token is due for rotation, earliest first (Authentication, 8). */
  dueForRotation(): Promise<ReadTokens[]> {
    return this.#parts.store.due(this.#parts.clock.now());
  }

  /**
   * Refreshes now, whatever the age of the access token. In the last 24 hours of the refresh token this brings a
   * new one.
   *
   * @param readVersion of the tokens that are to be renewed: if others have come since, there is nothing to do. By
   *   default those of now
   * @throws ServiceError
   */
  async rotate(instanceId: string, readVersion?: number): Promise<void> {
    const version = readVersion ?? (await this.#find(instanceId)).version;
    await this.#refreshOnce(instanceId, version, { reason: 'rotation' });
  }

  /**
   * Begins the end: no refresh is begun any more, and those whose turn it is not yet fail. One that has been sent has some
   * seconds for its answer.
   *
   * @param patienceMs instead of {@link ENDING_MS}
   */
  end(patienceMs = ENDING_MS): void {
    this.#ending.abort(ENDS);
    this.#writes.end();
    this.#writesUntil = performance.now() + WRITING.sinceEndMs;
    setTimeout(() => {
      this.#isCutOff = true;
      this.#parts.oauth.breakOff();
    }, patienceMs).unref();
  }

  /**
   * Writes what has come and could not be written yet, and tries on for some seconds.
   *
   * @throws Error when something of it is lost; `onLost` has been told whose it is
   */
  close(): Promise<void> {
    const now = performance.now();
    const until = this.#writesUntil ?? now + WRITING.sinceCloseMs;
    return this.#writes.close(Math.max(until - now, WRITING.leastMs));
  }

  #refreshOnce(instanceId: string, readVersion: number, why: Renewal): Promise<string> {
    const running = this.#running.get(instanceId);
    if (running !== undefined) return running;
    const { signal } = this.#ending;
    const renew = () => this.#refresh(instanceId, readVersion, why);
    // The place first: whoever has the lock is not to wait for anything but the service and the database.
    const refresh = this.#places
      .within(() => this.#lock.hold(instanceId, LOCK_MS, renew, signal), signal)
      .finally(() => this.#running.delete(instanceId));
    this.#running.set(instanceId, refresh);
    return refresh;
  }

  async #refresh(instanceId: string, readVersion: number, why: Renewal): Promise<string> {
    const row = await this.#find(instanceId);
    const current = await this.#open(row);
    if (row.version !== readVersion) return current.accessToken;

    const received =
      this.#received.find(instanceId, row.version) ?? (await this.#ask(row, current.refreshToken, why));
    if (typeof received === 'string') return received;
    const isNewest = await this.#received.write(instanceId, received);
    const { accessToken, accessExpiresAt, grantedAt } = received.grant;
    if (why.reason === 'due') this.#early.note(instanceId, accessExpiresAt - grantedAt);
    // The answer tells the time: a token that had come to its end was rejected with good reason.
    if (isNewest && why.reason === 'rejected' && grantedAt < row.access_expires_at) {
      await this.#parts.pauses
        .begin('rejection', instanceId, rejectedAgain(), why.usefulMs)
        .catch(() => undefined);
    }
    return isNewest ? accessToken : this.#current(instanceId);
  }

  /** Asks the service. @returns what it has granted; or the access token that a sibling has stored meanwhile */
  async #ask(row: TokenRow, refreshToken: string, { reason }: Renewal): Promise<Received | string> {
    const { instances, oauth, pauses, store, onRefresh } = this.#parts;
    const instanceId = row.instance_id;
    if ((await instances.find(instanceId))?.status === 'needs_reauthorization') {
      throw new ServiceError('reauthorize', 'The app has to be authorized again.');
    }
    await pauses.check('unwritten', instanceId);
    await pauses.check('trouble', instanceId);
    if (reason === 'rejected') await pauses.check('rejection', instanceId);
    await store.checkWritable();
    // A disconnect, say, while Redis was slow, or until the connection stood.
    if (await this.#isChanged(row)) return this.#current(instanceId);
    const lookAgain = async () => {
      if (await this.#isChanged(row)) throw CHANGED;
      this.#ending.signal.throwIfAborted();
    };
    this.#ending.signal.throwIfAborted();
    try {
      // From the answer on, nothing comes before its writing.
      const grant = await oauth.refresh(refreshToken, lookAgain);
      return { grant, readVersion: row.version, refreshToken };
    } catch (error) {
      if (error === CHANGED) return this.#current(instanceId);
      if (error instanceof ServiceError) throw error;
      const failure = refreshFailure(error, row, this.#parts.clock.now());
      if (failure.remedy === 'reauthorize') return this.#refused(row, failure);
      if (this.#isCutOff) {
        onRefresh?.({ instanceId, outcome: 'cut_off' });
        throw ENDS;
      }
      onRefresh?.({ instanceId, outcome: 'failed' });
      await pauses.begin('trouble', instanceId, failure).catch(() => undefined);
      throw failure;
    }
  }

  /** A sibling whose lock ran out under it may have renewed the grant meanwhile: then all is well. */
  async #refused(row: TokenRow, error: ServiceError): Promise<string> {
    const newest = await this.#parts.store.find(row.instance_id);
    if (newest !== undefined && newest.version !== row.version) {
      return (await this.#open(newest)).accessToken;
    }
    const { application } = this.#parts.oauth;
    return this.#end(row, error, (companyId) => refusalNotice(error.message, companyId, application));
  }

  async #isChanged({ instance_id, version }: TokenRow): Promise<boolean> {
    return (await this.#parts.store.find(instance_id))?.version !== version;
  }

  /** The access token as it is by now. */
  async #current(instanceId: string): Promise<string> {
    return (await this.#open(await this.#find(instanceId))).accessToken;
  }

  async #find(instanceId: string): Promise<TokenRow> {
    const row = await this.#parts.store.find(instanceId);
    if (row !== undefined) return row;
    throw new ServiceError('reauthorize', 'The app holds no tokens for this instance.');
  }

  /**
   * @throws ServiceError that the instance needs a new authorization, when what is stored cannot be read any more
   * @throws VaultError when the key is missing or the wrong one, which whoever runs the app can put right
   */
  async #open(row: TokenRow): Promise<{ accessToken: string; refreshToken: string }> {
    const { vault, store } = this.#parts;
    const instanceId = row.instance_id;
    try {
      return {
        accessToken: vault.open(row.access_token, { instanceId, purpose: 'access_token' }),
        refreshToken: vault.open(row.refresh_token, { instanceId, purpose: 'refresh_token' }),
      };
    } catch (error) {
      if (!(error instanceof VaultError)) throw error;
      if (!error.isLost) throw await explainMissingKey(store, error);
      const newest = await store.find(instanceId);
      if (newest !== undefined && newest.version !== row.version) return this.#open(newest);
      await checkTriedKey({ store, vault }, error);
      const end = new ServiceError('reauthorize', error.message, { cause: error });
      return this.#end(row, end, (companyId) => endNotice(error.message, companyId));
    }
  }

  /** Ends a grant: the jobs stop, the dashboard says why and what to do, nothing is deleted. It is told once. */
  async #end(
    row: TokenRow,
    error: ServiceError,
    noticeFor: (companyId: string | null) => string,
  ): Promise<never> {
    const instanceId = row.instance_id;
    const notice = noticeFor((await this.#parts.instances.find(instanceId))?.company_id ?? null);
    const isNew = await this.#parts.store.reject(instanceId, row.version, notice);
    if (isNew) this.#parts.onRefresh?.({ instanceId, outcome: 'rejected' });
    throw error;
  }
}
