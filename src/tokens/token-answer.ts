import type { Dispatcher } from 'undici';
import { messageOf } from '../client/refusal.ts';
import { statedWaitMs } from '../client/retry-timing.ts';
import { HEADER } from '../contract/headers.ts';
import { readTokenBody } from './token-body.ts';
import { askedWaitMs } from './token-errors.ts';

/** What a token request is refused for (RFC 6749, section 5.2). */
const REFUSALS: ReadonlySet<unknown> = new Set([
  'invalid_request',
  'invalid_client',
  'invalid_grant',
  'unauthorized_client',
  'unsupported_grant_type',
  'invalid_scope',
]);

/** The token route could not be reached, or its answer did not come whole: the cause says why. */
export class NoTokenAnswerError extends TypeError {
  constructor(cause: unknown) {
    super('The token route did not answer.', { cause });
    this.name = 'NoTokenAnswerError';
  }
}

/** The platform's own class of answers knows no further ones; those are trouble of the service, too (RFC 9110, section 15). */
const LAST_STATUS = 599;

/** Statuses with which it takes no body. */
const NO_BODY: ReadonlySet<number> = new Set([204, 205, 304]);

/**
 * Reads an answer of the token route, and hands it on so that the library understands it: to the library the type of an
 * answer, which success its status is, its challenge, and members that nobody has specified weigh more than what the
 * answer says. The specification shows the members of a token response (Endpoints, "Token response"); of a refusal it
 * shows nothing (Errors).
 *
 * @throws TypeError when the answer is larger than any token response, or a whole one that holds no access token
 * @throws NoTokenAnswerError
 */
export async function readTokenAnswer(data: Dispatcher.ResponseData): Promise<Response> {
  const response = new Response(null, {
    status: Math.min(data.statusCode, LAST_STATUS),
    headers: headersOf(data),
  });
  const text = await readText(data, response);
  if (response.status === 429) tellStatedWait(response, text);
  const answer = readObject(text);
  if (answer !== undefined && isRefusal(response.status, answer)) {
    return asJson(answer, response, Math.max(response.status, 400));
  }
  const own = answer === undefined ? undefined : ownRefusal(response.status, answer);
  if (own !== undefined) return asJson(own, response, response.status);
  if (answer !== undefined && response.ok) {
    // Also with 201 or 203: the refresh token before it may have ended with this answer.
    if (typeof answer.access_token === 'string') return asJson(specifiedMembers(answer), response, 200);
    throw new TypeError('The answer of the token route holds no access token.', { cause: response });
  }
  // What is said of a text that is no JSON would quote it, and there may be a token in it.
  const isKept = answer !== undefined && !NO_BODY.has(response.status);
  return new Response(isKept ? JSON.stringify(answer) : null, response);
}

async function readText({ body }: Dispatcher.ResponseData, { headers, ok }: Response): Promise<string> {
  const { text, brokenBy } = await readTokenBody(body, headers.get('content-encoding') ?? '');
  // The refresh token before it may have ended with this answer: a grant that came whole counts, as its JSON says where
  // it ends, though the connection broke before the end of the message, or stayed open until the time was over.
  const isWhole = ok && typeof readObject(text)?.access_token === 'string';
  if (brokenBy !== undefined && !isWhole) throw new NoTokenAnswerError(brokenBy.error);
  return text;
}

function headersOf({ headers }: Dispatcher.ResponseData): [string, string][] {
  return Object.entries(headers).flatMap(([name, values = []]) =>
    [values].flat().map((value): [string, string] => [name, value]),
  );
}

/** What a proxy may have put behind it is no part of it. */
function readObject(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text.slice(0, text.lastIndexOf('}') + 1));
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

/** `token_type` is "always Bearer"; what is given in the place of a refresh token and is none stands for none. */
function specifiedMembers({ access_token, refresh_token, expires_at }: Record<string, unknown>) {
  const hasRefreshToken = typeof refresh_token === 'string' && refresh_token !== '';
  return {
    access_token,
    ...(hasRefreshToken && { refresh_token }),
    expires_at,
    token_type: 'Bearer',
  };
}

/** Some services refuse with the status of success: what grants nothing and names a refusal is one. */
function isRefusal(status: number, { error, access_token }: Record<string, unknown>): boolean {
  const mayRefuse = (status >= 400 && status < 500) || (status < 300 && access_token === undefined);
  return mayRefuse && REFUSALS.has(error);
}

/**
 * A refusal in the form of the service's other errors (Errors), which is how it may refuse here, too: its words may say
 * that an administrator is wanted. Statuses that want credentials, or the same request later, speak for themselves.
 */
function ownRefusal(status: number, { error, _error: own }: Record<string, unknown>) {
  if (status < 400 || status >= 500 || [401, 408, 429].includes(status) || error !== undefined)
    return undefined;
  if (typeof own !== 'object' || own === null) return undefined;
  return { error: String(status), error_description: 'message' in own ? own.message : undefined };
}

/** A refusal's wait may stand in its message alone (Errors): so it is told where it is looked for. */
function tellStatedWait(response: Response, text: string): void {
  const waitMs = statedWaitMs(messageOf(text));
  if (waitMs === undefined || askedWaitMs(response) !== undefined) return;
  response.headers.set(HEADER.retryAfter, String(waitMs / 1_000));
}

function asJson(answer: object, response: Response, status: number): Response {
  const headers = new Headers(response.headers);
  headers.set('content-type', 'application/json');
  headers.delete('www-authenticate');
  return new Response(JSON.stringify(answer), { status, headers });
}
