import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Page, ROUTES } from '../contract/api/api.ts';
import { isRepeatable, type RouteContract } from '../contract/api/route.ts';
import { GUARDS, type GuardRules, guardBucket } from '../contract/guards.ts';
import { backoffMs } from './backoff.ts';
import type { Admission, Bucket, RateBudget } from './budget.ts';
import type { CallOptions, ServiceClient } from './calls.ts';
import { rejectedAgain, ServiceError, toServiceError } from './errors.ts';
import type { HttpAnswer, HttpRequest } from './http.ts';
import { PageChain } from './next-url.ts';
import { checkListPage, readJson } from './page.ts';
import type { ServiceApi } from './service-api.ts';

/** The longest that a call waits by default, in milliseconds. */
const MAX_WAIT_MS = 30_000;

/** How often a request that fails is sent, besides waits that the service asks for. */
const MOST_TRIES = 4;

export interface AccessTokens {
  /** @param rejected a token that the service has just answered with 401 */
  accessToken(instanceId: string, rejected: string | undefined): Promise<{ text: string }>;
}

export interface ClientParts {
  api: ServiceApi;
  budget: RateBudget;
  tokens: AccessTokens;
  /** Limits of guards, where they are not the contract's. */
  guards?: Partial<GuardRules>;
}

/** The instance of a client, and how its calls behave. */
export interface ClientFor {
  instanceId: string;
  /** The key of the budget. */
  company: string;
  signal?: AbortSignal;
  /** The longest that a call waits, in milliseconds; half a minute by default. */
  maxWaitMs?: number;
  /** Asked right before each request, because the request may have waited for long. */
  isWanted?: (() => Promise<boolean>) | undefined;
  /** Wraps each call, with all its waits. */
  around?: <Answer>(request: () => Promise<Answer>) => Promise<Answer>;
}

/** A call that can be sent several times. */
interface PreparedCall {
  contract: RouteContract;
  request: HttpRequest;
  /** The route's name in metrics and in the budget. */
  route: string;
  bucket: Bucket | undefined;
  options: CallOptions;
}

/** Makes a client for one instance, with a method for each route of the contract. */
export function createServiceClient(parts: ClientParts, whose: ClientFor): ServiceClient {
  const { around = (request) => request() } = whose;
  const send = (call: PreparedCall) => around(() => sendCall(parts, whose, call));

  /** The pages of a list, each at the address that the one before gave (Pagination, 3 and 4). */
  async function* pagesOf(contract: RouteContract, args: readonly unknown[]) {
    const call = prepareCall(contract, args, parts);
    const chain = new PageChain();
    let { request } = call;
    for (let address = request.url.href; ; ) {
      const page = (await send({ ...call, request })) as Page<unknown>;
      yield page;
      const { next } = page._pagination;
      if (next === null) return;
      chain.follow(address, next);
      address = next;
      request = { ...request, ...parts.api.origins.check(next) };
    }
  }

  async function* itemsOf(pages: AsyncGenerator<Page<unknown>>) {
    for await (const page of pages) yield* page._results;
  }

  const lists = ROUTES.filter(([, { list }]) => list);
  // The types come from the same table as the methods.
  return {
    ...methods(ROUTES, (contract, args) => {
      const answer = (async () => send(prepareCall(contract, args, parts)))();
      // A handler may begin several calls and fail on the first. Unhandled, the rejection of another one ends the process.
      answer.catch(() => undefined);
      return answer;
    }),
    pages: methods(lists, (contract, args) => pagesOf(contract, args)),
    each: methods(lists, (contract, args) => itemsOf(pagesOf(contract, args))),
  } as unknown as ServiceClient;
}

function methods(
  routes: readonly (readonly [string, RouteContract])[],
  call: (contract: RouteContract, args: readonly unknown[]) => unknown,
) {
  return Object.fromEntries(
    routes.map(([operation, contract]) => [operation, (...args: unknown[]) => call(contract, args)]),
  );
}

type Params = Readonly<Record<string, string | number>>;

/** The arguments of a method: values for the path, the body, options. A route without one of them leaves it out. */
export function readArguments({ path, body }: RouteContract, args: readonly unknown[]) {
  const rest = [...args];
  return {
    params: path.includes('/:') ? ((rest.shift() ?? {}) as Params) : {},
    body: body === undefined ? undefined : rest.shift(),
    options: (rest.shift() ?? {}) as CallOptions & { limit?: number; respondAsync?: boolean },
  };
}

/**
 * Makes a request from a method's arguments.
 *
 * @throws ServiceError to give up on, if a value for the path is missing
 */
export function prepareCall(
  contract: RouteContract,
  args: readonly unknown[],
  { api, guards }: Pick<ClientParts, 'api' | 'guards'>,
): PreparedCall {
  const { method, path, mediaType, guard } = contract;
  const { params, body, options } = readArguments(contract, args);

  const url = new URL(api.apiUrl + fillPath(path, params));
  if (options.limit !== undefined) url.searchParams.set('limit', String(options.limit));
  const values = Object.fromEntries(Object.entries(params).map(([name, value]) => [name, String(value)]));
  return {
    contract,
    request: {
      method,
      url,
      headers: {
        ...(mediaType !== undefined && { accept: mediaType }),
        // RFC 7240; the specification does not say how to ask for the asynchronous form.
        ...(options.respondAsync && { prefer: 'respond-async' }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    },
    route: method === 'GET' ? path : `${method} ${path}`,
    bucket: guard && {
      ...{ ...GUARDS, ...guards }[guard.guard],
      // Redis stores the name, and it may hold recipients.
      name: createHash('sha256')
        .update(guardBucket(guard, `${method} ${path}`, values, body))
        .digest('base64url'),
    },
    options,
  };
}

/** Puts values into a path, each as one segment. */
export function fillPath(path: string, params: Params): string {
  return path.replace(/(?<=\/):(\w+)/g, (_placeholder, name: string) => {
    const value: unknown = params[name];
    const text = typeof value === 'number' ? String(value) : value;
    // Dots alone would lead to another path, even if they are encoded.
    if (typeof text !== 'string' || text === '' || text === '.' || text === '..')
      throw new ServiceError('refused', `${path} needs a ${name}. The app sent nothing.`);
    return encodeURIComponent(text);
  });
}

/**
 * Sends a call until it has an answer (Errors):
 *
 * | meets | then |
 * | --- | --- |
 * | no permit (limit, guard, block) | waits for it |
 * | 401 | sends it once more, with a new token |
 * | 429 | sends it again when the service wants it |
 * | 5xx, no answer, a bad answer | sends it again after pauses: four tries in all |
 *
 * A POST that may have taken effect is sent again only if its caller says that it is repeatable.
 *
 * @throws ServiceError, or the reason of a signal
 */
async function sendCall(
  { api, budget, tokens }: ClientParts,
  whose: ClientFor,
  { contract, request, route, bucket, options }: PreparedCall,
): Promise<unknown> {
  const signal = AbortSignal.any([whose.signal, options.signal].filter((one) => one !== undefined));
  const repeatable = options.repeatable ?? isRepeatable(contract);
  let waitLeftMs = options.maxWaitMs ?? whose.maxWaitMs ?? MAX_WAIT_MS;
  let rejected: string | undefined;
  let tries = 1;

  /** @param tooLong the error if that is more than the call may wait */
  async function wait(ms: number, tooLong: ServiceError): Promise<undefined> {
    if (ms > waitLeftMs) throw tooLong;
    waitLeftMs -= ms;
    await sleep(ms, undefined, { signal });
  }

  async function tryOnce(): Promise<{ answer: unknown } | undefined> {
    const token = await tokens.accessToken(whose.instanceId, rejected);
    const admission = await budget.acquire(whose.company, route, bucket);
    // Token and permit may have taken long. Another install may own the token by now.
    const isWanted = await Promise.resolve(whose.isWanted?.()).catch((error: unknown) => error);
    if (isWanted === false || isWanted instanceof Error) {
      if (admission.permit !== undefined) await api.release(admission.permit);
      if (isWanted instanceof Error) throw isWanted;
      throw new ServiceError('refused', 'The app did not send the request: nobody needs it any more.');
    }
    if (admission.permit === undefined) return wait(admission.waitMs, noPermit(route, admission));
    try {
      return { answer: readAnswer(contract, await api.send(request, admission.permit, token.text, signal)) };
    } catch (error) {
      const failure = toServiceError(error);
      const { remedy, status, unsent, retryAfterMs = 0 } = failure;
      if (remedy === 'refresh') {
        if (rejected !== undefined) throw rejectedAgain(failure);
        rejected = token.text;
        return undefined;
      }
      if (status === 429) {
        // The next permit waits as long.
        if (retryAfterMs > waitLeftMs) throw failure;
        return undefined;
      }
      if (remedy !== 'wait') throw failure;
      if (!(repeatable || unsent)) {
        const message = `${failure.message} The request may have taken effect.`;
        throw new ServiceError(failure.kind, message, { ...failure, cause: failure });
      }
      if (tries === MOST_TRIES) throw failure;
      return wait(Math.max(retryAfterMs, backoffMs(tries++, Math.random())), failure);
    }
  }

  try {
    for (;;) {
      signal.throwIfAborted();
      const done = await tryOnce();
      if (done !== undefined) return done.answer;
    }
  } catch (error) {
    signal.throwIfAborted();
    throw toServiceError(error);
  }
}

/**
 * The JSON of an answer, undefined if it is empty, or the text if the route answers something else.
 *
 * @throws ServiceError `bad_answer`
 */
function readAnswer({ mediaType, list }: RouteContract, { body }: HttpAnswer): unknown {
  if (mediaType !== undefined) return body;
  if (body === '' && !list) return undefined;
  const answer = readJson(body, 'an answer');
  if (list) checkListPage(answer);
  return answer;
}

const DENIED_BY = { limit: 'The rate limit', guard: 'A rate guard', blocked: 'The service' } as const;

function noPermit(route: string, { why, waitMs }: Admission & { permit: undefined }): ServiceError {
  const message = `${DENIED_BY[why]} allows no request to ${route} for ${waitMs} ms.`;
  return new ServiceError('rate_limited', message, { retryAfterMs: waitMs });
}
