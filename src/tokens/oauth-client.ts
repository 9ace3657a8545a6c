import { addAbortListener } from 'node:events';
import * as oauth from 'openid-client';
import { type Dispatcher, request } from 'undici';
import { STRAIGHT, serviceAgent, type WayOut } from '../client/agent.ts';
import { LateConnectionError, unlessLate } from '../client/late-connection.ts';
import { runningTimeout } from '../client/running-time.ts';
import type { ServiceClock } from '../client/service-clock.ts';
import { LONGEST_SETTLING_MS, settleTime } from '../client/service-time.ts';
import { OAUTH_ROUTE } from '../contract/routes.ts';
import { accessExpiry } from './expiry.ts';
import { NoTokenAnswerError, readTokenAnswer } from './token-answer.ts';

/** How long a token request may take, in seconds. */
const TOKEN_TIMEOUT_S = 30;

/** How long a token request takes at the most, in milliseconds, with the questions about the time that its answer may raise. */
export const LONGEST_TOKEN_REQUEST_MS = TOKEN_TIMEOUT_S * 1_000 + LONGEST_SETTLING_MS;

/** How long it is tried to have a refresh sent, in milliseconds: so long a connection may take to come about. */
const CONNECTING_MS = 10_000;

/** How long a refresh takes at the most, in milliseconds: it may have waited for its connection before. */
export const LONGEST_REFRESH_MS = CONNECTING_MS + LONGEST_TOKEN_REQUEST_MS;

/** How long a connection is kept for a further request, in milliseconds: less than servers keep it, who end it. */
const KEPT_MS = 4_000;

/** The largest headers of an answer that are read, in bytes: a proxy may add some, and the grant is behind them. */
const LARGEST_HEADERS_BYTES = 256 * 1_024;

/** What an access token can be made of (RFC 6749, appendix A.12), without a space, as it stands in a header. */
const ACCESS_TOKEN = /^[\x21-\x7e]+$/;

/** And a refresh token (appendix A.17), which stands in a form. */
const REFRESH_TOKEN = /^[\x20-\x7e]+$/;

/** What a token response grants. */
export interface Grant {
  accessToken: string;
  /** Absent when the service sent none: the one before stays in force. */
  refreshToken: string | undefined;
  /** When it came, in the token route's time, milliseconds since 1970: what its lives count from. */
  grantedAt: number;
  /** In the same time. */
  accessExpiresAt: number;
}

/** What the OAuth client works with. */
export interface OAuthClientOptions {
  /** `{auth_url}`, without a slash at its end. */
  authUrl: string;
  clientId: string;
  clientSecret: string;
  /** Where the service sends the browser back to; identical in both requests (Endpoints, "Token request"). */
  redirectUri: string;
  /** The token route's, which nobody else tells the time. */
  clock: ServiceClock;
  /** Instead of {@link TOKEN_TIMEOUT_S}. */
  timeoutSeconds?: number;
  wayOut?: WayOut;
  /** Told of every token that is granted; not of codes, which any visitor may make up. */
  onSecret?: (secret: string) => void;
}

/** Who the app is at the service, and where it is asked for grants. */
export type Application = Pick<OAuthClientOptions, 'clientId' | 'authUrl'>;

/** What the library asks to have sent. */
interface TokenRequestInit {
  method: Dispatcher.HttpMethod;
  headers: Record<string, string>;
  body: URLSearchParams;
}

/** The OAuth authorization code flow and refresh of the specification, spoken by openid-client. */
export class OAuthClient {
  readonly application: Application;
  readonly #configuration: oauth.Configuration;
  readonly #redirectUri: string;
  readonly #clock: ServiceClock;
  readonly #onSecret: (secret: string) => void;
  readonly #broken = new AbortController();

  constructor(options: OAuthClientOptions) {
    const { authUrl, clientId, clientSecret, clock } = options;
    this.application = { clientId, authUrl };
    this.#configuration = new oauth.Configuration(
      {
        issuer: authUrl,
        authorization_endpoint: authUrl + OAUTH_ROUTE.authorize,
        token_endpoint: authUrl + OAUTH_ROUTE.token,
      },
      clientId,
      undefined,
      basicAuthentication(clientId, clientSecret),
    );
    // The library's own limit of time would be over for an answer that has come while the process was stopped.
    this.#configuration.timeout = undefined;
    const timeoutMs = (options.timeoutSeconds ?? TOKEN_TIMEOUT_S) * 1_000;
    const agent = serviceAgent(options.wayOut ?? STRAIGHT, KEPT_MS, LARGEST_HEADERS_BYTES);
    const soon = agent.compose(unlessLate);
    const ask = async (url: string, init: TokenRequestInit, dispatcher: Dispatcher, signal: AbortSignal) => {
      // Redirects are not followed: the secret would go along.
      const sent = request(url, {
        method: init.method,
        // Nothing said would mean that any is welcome (RFC 9110, section 12.5.3).
        headers: { ...init.headers, 'accept-encoding': 'identity' },
        body: init.body.toString(),
        signal,
        dispatcher,
      });
      const data = await unlessAborted(signal, sent).catch((error) => {
        throw error instanceof LateConnectionError ? error : new NoTokenAnswerError(error);
      });
      // What is granted here counts from now, and what is refused may be over by now: when that is, is worth a question
      // or two more if it is hard to believe.
      const isDoubted = clock.observe(String(data.headers.date ?? ''));
      return { answer: await readTokenAnswer(data), isDoubted };
    };
    this.#configuration[oauth.customFetch] = async (url, init) => {
      const { body } = init as TokenRequestInit;
      const timeout = runningTimeout(timeoutMs);
      // Whoever installs waits for the exchange, and says when that is over.
      const isRefresh = body.get('grant_type') === 'refresh_token';
      const signal = isRefresh ? AbortSignal.any([timeout.signal, this.#broken.signal]) : timeout.signal;
      const asked = ask(url, init as TokenRequestInit, isRefresh ? soon : agent, signal);
      const { answer, isDoubted } = await asked.finally(timeout.end);
      if (isDoubted) await settleTime(clock, authUrl, agent, this.#broken.signal);
      return answer;
    };
    // Which addresses may be plain http is the configuration's to decide, and it has.
    if (authUrl.startsWith('http:')) oauth.allowInsecureRequests(this.#configuration);
    this.#redirectUri = options.redirectUri;
    this.#clock = clock;
    this.#onSecret = options.onSecret ?? (() => undefined);
  }

  /** The address that starts an authorization (Endpoints, "Authorize request"). */
  authorizeUrl(state: string): URL {
    return oauth.buildAuthorizationUrl(this.#configuration, {
      response_type: 'code',
      redirect_uri: this.#redirectUri,
      state,
    });
  }

  /**
   * Exchanges the callback's code.
   *
   * Of the callback's parameters only these two are specified, and only they are looked at.
   *
   * @throws the errors of openid-client; see `token-errors.ts`
   */
  async exchange(code: string, state: string): Promise<Grant & { refreshToken: string }> {
    const callback = new URL(this.#redirectUri);
    callback.search = new URLSearchParams({ code, state }).toString();
    const response = await oauth.authorizationCodeGrant(this.#configuration, callback, {
      expectedState: state,
    });
    const { refreshToken, ...grant } = this.#read(response);
    if (refreshToken === undefined) throw new TypeError('The token response holds no refresh token.');
    return { ...grant, refreshToken };
  }

  /**
   * Renews the access token (Endpoints, "Token request body parameters, refresh"). Where the connection for it comes about
   * late, it is sent when that stands, if it is still to be.
   *
   * @param lookAgain throws when the grant is not to be renewed any more
   * @throws the errors of openid-client, see `token-errors.ts`; or what `lookAgain` throws
   */
  async refresh(refreshToken: string, lookAgain = async (): Promise<void> => undefined): Promise<Grant> {
    const until = performance.now() + CONNECTING_MS;
    for (;;) {
      try {
        return this.#read(await oauth.refreshTokenGrant(this.#configuration, refreshToken));
      } catch (error) {
        if (!isLate(error)) throw error;
        if (performance.now() > until) throw new NoTokenAnswerError(error);
      }
      await lookAgain();
    }
  }

  /** Breaks off every refresh under way; whatever has its answer asks no more about the time, and goes on. */
  breakOff(): void {
    this.#broken.abort();
  }

  #read(response: oauth.TokenEndpointResponse): Grant {
    const { access_token: accessToken, refresh_token: refreshToken } = response;
    if (
      !ACCESS_TOKEN.test(accessToken) ||
      (refreshToken !== undefined && !REFRESH_TOKEN.test(refreshToken))
    ) {
      throw new TypeError('The token response holds a token that cannot be one.');
    }
    const grantedAt = this.#clock.now();
    this.#onSecret(accessToken);
    if (refreshToken !== undefined) this.#onSecret(refreshToken);
    return {
      accessToken,
      refreshToken,
      grantedAt,
      accessExpiresAt: accessExpiry(response.expires_at, grantedAt),
    };
  }
}

/**
 * `Authorization: Basic <BASE64(client_id:client_secret)>`, to the letter (Authentication, 5). The library's own
 * form-encodes both first, as RFC 6749 has it and the specification does not: a secret with special characters
 * would be another one then.
 */
function basicAuthentication(clientId: string, clientSecret: string): oauth.ClientAuth {
  const credentials = Buffer.from(`${clientId}:${clientSecret}`, 'utf8').toString('base64');
  return (_server, _client, _body, headers) => {
    headers.set('authorization', `Basic ${credentials}`);
  };
}

/** The HTTP client heeds a signal only when there is a connection, which may take its time. */
function unlessAborted<Result>(signal: AbortSignal, work: Promise<Result>): Promise<Result> {
  const aborted = Promise.withResolvers<never>();
  const listener = addAbortListener(signal, () => aborted.reject(signal.reason));
  return Promise.race([work, aborted.promise]).finally(() => listener[Symbol.dispose]());
}

/** Whether a request was not sent, as its connection came about late: the library hands that on in errors of its own. */
function isLate(error: unknown): boolean {
  return error instanceof LateConnectionError || (error instanceof Error && isLate(error.cause));
}
