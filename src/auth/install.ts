import { createHash, randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { WINDOW_MS } from '../contract/limits.ts';
import { backoffMs } from '../service/backoff.ts';
import { ServiceError, toServiceError } from '../service/errors.ts';
import type { Identity, ServiceApi } from '../service/service-api.ts';
import { hashSecret } from '../store/browsers.ts';
import type { BrowserProof, InstallRow, InstallStore } from '../store/installs.ts';
import { rotationDueAt } from './expiry.ts';
import {
  authorizeError,
  exchangeError,
  InstallError,
  type InstallErrorKind,
  waitMessage,
} from './install-errors.ts';
import type { Grant, OAuthClient } from './oauth-client.ts';
import type { TokenCipher } from './token-cipher.ts';
import { encryptTokens, writeForSeconds } from './tokens.ts';

/** Length of a state and of a nonce, in bytes. */
const SECRET_BYTES = 32;

/** Tries of the identity request, and the longest pause between two, in milliseconds: a person is waiting. */
const IDENTITY_TRIES = 3;
const LONGEST_PAUSE_MS = 5_000;

/** How long an install waits in all while the limit is used up: a window, and then some. In milliseconds. */
const LONGEST_LIMIT_WAIT_MS = WINDOW_MS + 5_000;

/** How long an install takes at most, and how often a second callback looks for its result, in milliseconds. */
const LONGEST_INSTALL_MS = 170_000;
const RESULT_POLL_MS = 100;

/** A later callback waits so long for the result. Then a page says that it takes longer. */
const LONGEST_SILENCE_MS = 20_000;

interface InstallsParts {
  oauth: OAuthClient;
  api: Pick<ServiceApi, 'identity'>;
  cipher: TokenCipher;
  store: InstallStore;
  /** The names of the lists of an instance. */
  resources: readonly string[];
  /** Starts the sync of a new or returning instance. */
  onInstalled: (instanceId: string) => Promise<unknown>;
  now?: () => number;
}

/** The request of a browser to the callback route. */
interface Callback {
  query: URLSearchParams;
  /** The values of the browser's nonce cookies. */
  nonces: readonly string[];
  /** The id of the browser's session, and of the session that the answer starts. */
  carriedSid: string | undefined;
  newSid: string;
}

/**
 * The OAuth authorization code flow (Authentication, 4), from the button to an active instance.
 *
 *     begin ── row, nonce cookie ── consent ── callback ── claim the row ──┬─ code ── company ── complete ── dashboard
 *                                                                          └─ error, stored in the row
 *     second callback or reload ── polls the row until it holds an instance or an error
 *
 * While other requests of the company use up its limit, the install waits for the next window. The callback then ends
 * early, and the browser comes again.
 */
export class Installs {
  readonly #parts: InstallsParts;
  readonly #now: () => number;
  readonly #running = new Set<Promise<unknown>>();
  /** Installs that wait for the limit, by the hashes of their states. */
  readonly #waiting = new Map<string, () => void>();

  constructor(parts: InstallsParts) {
    this.#parts = parts;
    this.#now = parts.now ?? Date.now;
  }

  /**
   * Begins an install.
   *
   * @param browserId the browser of the session; undefined adds a browser
   * @param returnTo the path of the app that the browser wants to see afterwards
   * @returns the address of the service's consent page, and the nonce for the browser's cookie
   */
  async begin(browserId: string | undefined, returnTo?: string): Promise<{ address: URL; nonce: string }> {
    const [state, nonce] = [newSecret(), newSecret()];
    const hashes = { stateHash: hashSecret(state), nonceHash: hashSecret(nonce) };
    await this.#parts.store.begin({ ...hashes, returnTo }, browserId, this.#now());
    return { address: this.#parts.oauth.authorizeUrl(state), nonce };
  }

  /**
   * Finishes an install, or waits until an earlier request with the same code has finished it. Starts the session `newSid`.
   *
   * @returns the instance, whether this call installed it, and the path that the browser wanted to see; undefined while it
   *   takes long, as in a wait for the company's limit: the browser must call again
   * @throws InstallError
   */
  async finish(
    callback: Callback,
  ): Promise<{ instanceId: string; isNew: boolean; returnTo: string | null } | undefined> {
    const { query, nonces, carriedSid, newSid } = callback;
    const proof: BrowserProof = {
      nonceHashes: nonces.map(hashSecret),
      carriedSid: carriedSid === undefined ? undefined : hashSecret(carriedSid),
      newSid: hashSecret(newSid),
    };
    const { store } = this.#parts;
    const state = query.get('state') ?? '';
    const row = await store.find(hashSecret(state));
    if (row === undefined || !proof.nonceHashes.includes(row.nonce_hash) || row.expires_at <= this.#now()) {
      const message = 'This browser did not start this installation, or started it too long ago.';
      throw new InstallError('state', message);
    }
    try {
      const finished = await this.#finishRow(row, query, state, proof);
      return finished && { ...finished, returnTo: row.return_to };
    } catch (failure) {
      if (failure instanceof InstallError) failure.returnTo = row.return_to;
      throw failure;
    }
  }

  async #finishRow(
    row: InstallRow,
    query: URLSearchParams,
    state: string,
    proof: BrowserProof,
  ): Promise<{ instanceId: string; isNew: boolean } | undefined> {
    const { store } = this.#parts;
    const error = query.get('error');
    if (error !== null) {
      await store.claim(row.state_hash, null, this.#now());
      throw authorizeError(error, query.get('error_description'));
    }
    const code = query.get('code');
    if (!code) throw new InstallError('malformed', 'The service sent neither a code nor an error.');
    const codeHash = hashSecret(code);
    if (await store.claim(row.state_hash, codeHash, this.#now())) {
      const { promise: waits, resolve } = Promise.withResolvers<undefined>();
      this.#waiting.set(row.state_hash, () => resolve(undefined));
      const work = this.#run(row, code, state, proof).finally(() => {
        this.#running.delete(work);
        this.#waiting.delete(row.state_hash);
      });
      this.#running.add(work);
      const instanceId = await Promise.race([work, waits]);
      // The next callback also tells of a failure.
      return instanceId === undefined ? undefined : { instanceId, isNew: true };
    }
    const instanceId = await this.#awaitResult(row.state_hash, codeHash, proof);
    return instanceId === undefined ? undefined : { instanceId, isNew: false };
  }

  /** Waits for the installs that are under way. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#running);
  }

  async #run(row: InstallRow, code: string, state: string, proof: BrowserProof): Promise<string> {
    const { store } = this.#parts;
    try {
      return await this.#install(row, code, state, proof);
    } catch (thrown) {
      const message = 'The app could not store the tokens that the service granted.';
      const isKnown = thrown instanceof InstallError;
      const failure = isKnown ? thrown : new InstallError('store', message, { cause: thrown });
      await store.fail(row.state_hash, failure.kind, failure.message).catch(() => undefined);
      throw failure;
    }
  }

  async #install(row: InstallRow, code: string, state: string, proof: BrowserProof): Promise<string> {
    const { oauth, cipher, store } = this.#parts;
    const grant = await oauth.exchange(code, state).catch((error: unknown) => {
      throw exchangeError(error);
    });
    let hasAnswered = false;
    const company = await this.#companyOf(grant, () => {
      hasAnswered = true;
      this.#waiting.get(row.state_hash)?.();
    });
    const id = instanceIdOf(company?.id);
    const day = new Date(this.#now()).toISOString().slice(0, 10);
    const instance = {
      id,
      company_id: company?.id ?? null,
      name: company?.name ?? company?.id ?? `Company installed on ${day}`,
    };
    const tokens = {
      ...encryptTokens(cipher, id, grant.accessToken, grant.refreshToken),
      access_expires_at: grant.accessExpiresAt,
      refresh_issued_at: grant.grantedAt,
      refresh_due_at: rotationDueAt(grant.grantedAt, id),
      refreshed_at: grant.grantedAt,
    };
    // The browser has the page that says to wait. Its next callback starts the session.
    const enters = hasAnswered ? { ...proof, newSid: undefined } : proof;
    const { isSeen, isSignIn } = await writeForSeconds(() =>
      store.complete(row.state_hash, instance, tokens, enters, this.#now(), this.#parts.resources),
    );
    // A company that is well needs no sync because another device signs in.
    if (!isSignIn) await this.#parts.onInstalled(id);
    if (isSeen) return id;
    throw new InstallError('logged_out', 'This browser logged out during the installation.');
  }

  /**
   * Asks which company a new token belongs to. Retries errors that may pass.
   *
   * @param onLongWait called while the company's limit is used up
   * @returns undefined when the service has no identity route
   */
  async #companyOf({ accessToken }: Grant, onLongWait: () => void): Promise<Identity | undefined> {
    const limitEndsAt = performance.now() + LONGEST_LIMIT_WAIT_MS;
    for (let attempt = 1; ; attempt++) {
      const answer = await this.#parts.api.identity(accessToken).catch(toServiceError);
      if (!(answer instanceof ServiceError)) return answer;
      const pauseMs = Math.max(answer.retryAfterMs ?? 0, backoffMs(attempt, Math.random()));
      const isLimited = answer.status === 429;
      const isTooLong = isLimited
        ? performance.now() + pauseMs > limitEndsAt
        : attempt >= IDENTITY_TRIES || pauseMs > LONGEST_PAUSE_MS;
      if (answer.remedy !== 'wait' || isTooLong) {
        const kind = answer.unsent ? 'unreachable' : isLimited ? 'busy' : 'trouble';
        const message = `The service did not say which company this is. ${answer.message}${waitMessage(answer.retryAfterMs)}`;
        throw new InstallError(kind, message, { cause: answer });
      }
      if (pauseMs > LONGEST_PAUSE_MS) onLongWait();
      await sleep(pauseMs);
    }
  }

  async #awaitResult(stateHash: string, codeHash: string, proof: BrowserProof): Promise<string | undefined> {
    const { store } = this.#parts;
    const endsAt = performance.now() + LONGEST_SILENCE_MS;
    for (;;) {
      const row = await store.find(stateHash);
      if (row === undefined || row.code_hash !== codeHash) {
        throw new InstallError('state', 'This consent page was used before.');
      }
      if (row.error_kind !== null) {
        throw new InstallError(row.error_kind as InstallErrorKind, row.error_detail ?? '');
      }
      if (row.instance_id !== null) {
        if (await store.enterAgain(stateHash, proof, this.#now())) return row.instance_id;
        throw new InstallError('logged_out', 'This browser logged out during the installation.');
      }
      if (this.#now() > (row.claimed_at ?? 0) + LONGEST_INSTALL_MS) {
        throw new InstallError('trouble', 'The app stopped in the middle of this installation.');
      }
      if (performance.now() > endsAt) return undefined;
      await sleep(RESULT_POLL_MS);
    }
  }
}

function newSecret(): string {
  return randomBytes(SECRET_BYTES).toString('base64url');
}

/** A company always gets the same instance id. Without a company id, every install gets a new one. */
function instanceIdOf(companyId: string | undefined): string {
  const source = companyId === undefined ? randomBytes(SECRET_BYTES) : Buffer.from(companyId, 'utf8');
  return `ins_${createHash('sha256').update(source).digest('hex').slice(0, 32)}`;
}
