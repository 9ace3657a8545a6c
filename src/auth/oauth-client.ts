import { createHash, createHmac } from 'node:crypto';
import type { Redis } from 'ioredis';
import * as oauth from 'openid-client';
import { RateLimiterMemory, RateLimiterQueue, RateLimiterRedis } from 'rate-limiter-flexible';
import { OAUTH_ROUTE } from '../contract/routes.ts';
import { redact } from '../runtime/redaction.ts';
import { messageOf, readObject } from '../service/errors.ts';
import { retryAfterMs, type ServiceClock, statedWaitMs } from '../service/headers.ts';
import { type HttpAnswer, HttpClient } from '../service/http.ts';
import { accessExpiry } from './expiry.ts';

/** How long a token request may take, in milliseconds. */
export const TOKEN_TIMEOUT_MS = 20_000;

/** How long a request for the service's time may take, in milliseconds. */
const TIME_TIMEOUT_MS = 3_000;

/** How long an idle connection stays open, in milliseconds. */
const KEEP_ALIVE_MS = 4_000;

/** How much of the service's words an error repeats, in UTF-16 units. */
const LONGEST_WORDS = 200;

/** The largest token response, in characters. */
const LONGEST_ANSWER = 256 * 1024;

/** RFC 6749, appendix A; an access token must fit into a header. */
const ACCESS_TOKEN = /^[\x21-\x7e]+$/;
const REFRESH_TOKEN = /^[\x20-\x7e]+$/;

/** The tokens of a token response. Times are the service's, in milliseconds since 1970. */
export interface Grant {
  accessToken: string;
  /** Undefined when the service sent none: the old one stays valid. */
  refreshToken: string | undefined;
  grantedAt: number;
  accessExpiresAt: number;
}

/** An answer of the token route without tokens. */
export interface TokenRefusal {
  /** HTTP status; undefined without an answer. */
  status: number | undefined;
  /** The `error` of RFC 6749, section 5.2. */
  code?: string | undefined;
  /** `error_description`, or the message of `_error`. */
  description?: string | undefined;
  /** How long the service asks to wait, in milliseconds. */
  retryAfterMs?: number | undefined;
}

/** A token request that brought no tokens. */
export class TokenRequestError extends Error {
  readonly refusal: TokenRefusal;

  constructor(refusal: TokenRefusal, cause: unknown) {
    super(`The token request failed (${refusal.status ?? 'no answer'}${wordsOf(refusal)}).`, { cause });
    this.name = 'TokenRequestError';
    this.refusal = refusal;
  }
}

/** The service's own words, for the log and the engineer on call: `: invalid_grant, The code has expired`. */
export function wordsOf({ code, description }: TokenRefusal): string {
  const words = [code, description].filter((text) => text !== undefined && text !== '').join(', ');
  return words === '' ? '' : `: ${redact(words).replace(/\s+/g, ' ').slice(0, LONGEST_WORDS)}`;
}

interface OAuthClientOptions {
  /** `{auth_url}`, without a slash at its end. */
  authUrl: string;
  clientId: string;
  clientSecret: string;
  /** Whether to send PKCE (RFC 7636). */
  pkce?: boolean;
  /** The callback's address; the same in both requests (Endpoints, "Token request"). */
  redirectUri: string;
  clock: ServiceClock;
  outbound?: { usesProxy: boolean; checksCertificates: boolean; userAgent?: string };
  /** Waits until all processes together may send another token request. */
  pace?: () => Promise<unknown>;
}

/** The authorization code flow and the refresh of the specification, over openid-client. */
export class OAuthClient {
  readonly #options: OAuthClientOptions;
  readonly #http: HttpClient;
  readonly #ending = new AbortController();

  constructor(options: OAuthClientOptions) {
    this.#options = options;
    const limits = { timeoutMs: TOKEN_TIMEOUT_MS, keepAliveMs: KEEP_ALIVE_MS };
    this.#http = new HttpClient({ ...options.outbound, ...limits });
  }

  /** The address that starts an authorization (Endpoints, "Authorize request"). */
  authorizeUrl(state: string): URL {
    return oauth.buildAuthorizationUrl(this.#configure(), {
      response_type: 'code',
      redirect_uri: this.#options.redirectUri,
      state,
      ...(this.#options.pkce && {
        code_challenge: createHash('sha256').update(this.#verifier(state)).digest('base64url'),
        code_challenge_method: 'S256',
      }),
    });
  }

  /** PKCE's verifier of an install. Only the app can make it of the state, which travels with the code. */
  #verifier(state: string): string {
    return createHmac('sha256', this.#options.clientSecret).update(`pkce ${state}`).digest('base64url');
  }

  /**
   * Exchanges the callback's code.
   *
   * @throws TokenRequestError
   */
  async exchange(code: string, state: string): Promise<Grant & { refreshToken: string }> {
    const callback = new URL(this.#options.redirectUri);
    callback.search = new URLSearchParams({ code, state }).toString();
    await this.pace();
    const { refreshToken, ...grant } = await this.#grant((configuration) =>
      oauth.authorizationCodeGrant(configuration, callback, {
        expectedState: state,
        ...(this.#options.pkce && { pkceCodeVerifier: this.#verifier(state) }),
      }),
    );
    if (refreshToken === undefined) throw noGrant('The token response holds no refresh token.');
    return { ...grant, refreshToken };
  }

  /**
   * Renews the access token (Endpoints, "Token request body parameters, refresh").
   *
   * @throws TokenRequestError
   */
  refresh(refreshToken: string): Promise<Grant> {
    const { signal } = this.#ending;
    return this.#grant((configuration) => oauth.refreshTokenGrant(configuration, refreshToken), signal);
  }

  /** Waits for the next token request. A refresh waits before it takes its lease. */
  async pace(): Promise<void> {
    await this.#options.pace?.();
  }

  /** Sets the clock by the `Date` of any answer of the service. Sends no token. */
  async askTime(): Promise<void> {
    const signal = AbortSignal.any([AbortSignal.timeout(TIME_TIMEOUT_MS), this.#ending.signal]);
    try {
      const request = { method: 'HEAD', url: new URL(this.#options.authUrl) } as const;
      const { headers } = await this.#http.send(request, signal);
      this.#options.clock.observe(headers.date);
    } catch {
      // The next request reports that the service cannot be reached.
    }
  }

  /** Aborts every refresh under way. */
  breakOff(): void {
    this.#ending.abort();
  }

  async #grant(
    send: (configuration: oauth.Configuration) => Promise<oauth.TokenEndpointResponse>,
    signal?: AbortSignal,
  ): Promise<Grant> {
    let refusal: TokenRefusal | undefined;
    const configuration = this.#configure(async (url, init) => {
      const answer = await this.#post(url, init, signal);
      refusal = answer.refusal;
      return answer.response;
    });
    let response: oauth.TokenEndpointResponse;
    try {
      response = await send(configuration);
    } catch (cause) {
      throw new TokenRequestError(refusal ?? { status: undefined }, cause);
    }
    const { access_token: accessToken, refresh_token: refreshToken } = response;
    const isRefreshable = refreshToken === undefined || REFRESH_TOKEN.test(refreshToken);
    if (!ACCESS_TOKEN.test(accessToken) || !isRefreshable) {
      throw noGrant('The token response holds a malformed token.');
    }
    const { clock } = this.#options;
    const grantedAt = clock.now();
    const accessExpiresAt = accessExpiry(response.expires_at, grantedAt);
    return { accessToken, refreshToken, grantedAt, accessExpiresAt };
  }

  #configure(fetch?: oauth.CustomFetch): oauth.Configuration {
    const { authUrl, clientId, clientSecret } = this.#options;
    const configuration = new oauth.Configuration(
      {
        issuer: authUrl,
        authorization_endpoint: authUrl + OAUTH_ROUTE.authorize,
        token_endpoint: authUrl + OAUTH_ROUTE.token,
      },
      clientId,
      undefined,
      basicAuthentication(clientId, clientSecret),
    );
    configuration.timeout = undefined;
    if (fetch !== undefined) configuration[oauth.customFetch] = fetch;
    // The app's configuration has checked which addresses may be plain http.
    if (authUrl.startsWith('http:')) oauth.allowInsecureRequests(configuration);
    return configuration;
  }

  /** Sends a token request. Follows no redirect, since the secret would go along. */
  async #post(url: string, init: oauth.CustomFetchOptions, signal?: AbortSignal) {
    const headers = init.headers as Record<string, string>;
    const request = { method: 'POST', url: new URL(url), headers, body: String(init.body) } as const;
    const answer = await this.#http.send(request, signal);
    if (answer.body.length > LONGEST_ANSWER) throw new TypeError('The token response is too large.');
    const { clock } = this.#options;
    clock.observe(answer.headers.date);
    return readAnswer(answer, clock.now());
  }
}

function noGrant(message: string): TokenRequestError {
  return new TokenRequestError({ status: 200 }, new TypeError(message));
}

/**
 * Reads an answer of the token route. The library wants what the specification does not promise: content type, status
 * 200, `token_type`. So it gets the specified members alone (Endpoints, "Token response").
 */
function readAnswer(
  { status, headers, body }: HttpAnswer,
  now: number,
): { response: Response; refusal: TokenRefusal } {
  const { access_token, refresh_token, expires_at, error, error_description } = readObject(body);
  const message = messageOf(body);
  const refusal = {
    status,
    code: typeof error === 'string' ? error : undefined,
    description: typeof error_description === 'string' ? error_description : message || undefined,
    retryAfterMs: retryAfterMs(headers, now) ?? (status === 429 ? statedWaitMs(message) : undefined),
  };
  if (status >= 200 && status < 300 && typeof access_token === 'string') {
    const hasRefreshToken = typeof refresh_token === 'string' && refresh_token !== '';
    const members = { access_token, expires_at, ...(hasRefreshToken && { refresh_token }) };
    return { response: Response.json({ ...members, token_type: 'Bearer' }), refusal };
  }
  return { response: Response.json({ error: 'refused' }, { status: 400 }), refusal };
}

/**
 * `Authorization: Basic <BASE64(client_id:client_secret)>` (Authentication, 5). The library's own function form-encodes
 * both first, as in RFC 6749 but not in the specification.
 */
function basicAuthentication(clientId: string, clientSecret: string): oauth.ClientAuth {
  const credentials = Buffer.from(`${clientId}:${clientSecret}`, 'utf8').toString('base64');
  return (_server, _client, _body, headers) => {
    headers.set('authorization', `Basic ${credentials}`);
  };
}

/**
 * Token requests of all processes: 600 a minute, spread over its seconds. The specification names no limit of the token
 * route, so this one is ours: ten thousand companies whose tokens end together must not flood it.
 */
const EVERY = { points: 10, duration: 1 } as const;

/** What a process takes while Redis is away: there may be four others. */
const ALONE = { points: 2, duration: 1 } as const;

/** Makes a function that waits until another token request may go. @param redis all processes share it */
export function createTokenPace(redis: Redis): () => Promise<unknown> {
  const store = { keyPrefix: 'limit:tokens', storeClient: redis, rejectIfRedisNotReady: true };
  const limiter = new RateLimiterRedis({
    ...EVERY,
    ...store,
    insuranceLimiter: new RateLimiterMemory(ALONE),
  });
  const queue = new RateLimiterQueue(limiter);
  return () => queue.removeTokens(1);
}
