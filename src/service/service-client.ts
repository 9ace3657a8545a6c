import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Page, ROUTES } from '../contract/api/api.ts';
import type { RouteContract } from '../contract/api/route.ts';
import { GUARDS, type GuardRules, guardBucket } from '../contract/guards.ts';
import { backoffMs } from './backoff.ts';
import type { Bucket, RateBudget, WaitReason } from './budget.ts';
import type { CallOptions, ServiceClient } from './calls.ts';
import { rejectedAgain, ServiceError, toServiceError } from './errors.ts';
import type { HttpAnswer, HttpRequest } from './http.ts';
import { PageChain } from './next-url.ts';
import { checkListPage, readJson } from './page.ts';
import type { ServiceApi } from './service-api.ts';

/** The longest that a call waits if nothing else is said, in milliseconds. */
const MAX_WAIT_MS = 30_000;

/** How often a request is sent that fails, besides waits that the service asked for. */
const MOST_TRIES = 4;

/** Where access tokens come from. */
export interface AccessTokens {
  /** @param rejected a token that the service has just answered with 401: another one is wanted */
  accessToken(instanceId: string, rejected: string | undefined): Promise<{ text: string }>;
}

/** What a client of the service is made of. */
export interface ClientParts {
  api: ServiceApi;
  budget: RateBudget;
  tokens: AccessTokens;
  /** Other limits of guards than the contract's, whose reading of two of them may be wrong. */
  guards?: Partial<GuardRules>;
}

/** Whose client it is. */
export interface ClientFor {
  instanceId: string;
  /** What the budget is kept by. */
  company: string;
  signal?: AbortSignal;
  /** The longest that a call waits, in milliseconds; half a minute when left out. */
  maxWaitMs?: number;
  /** Whether the reason for the calls goes on: asked right before each request, as it may have waited for long. */
  isWanted?: (() => Promise<boolean>) | undefined;
  /** Sees each request through, with all its waits. */
  around?: <Answer>(request: () => Promise<Answer>) => Promise<Answer>;
}

/** A call that is ready to be sent, as often as it takes. */
interface PreparedCall {
  contract: RouteContract;
  request: HttpRequest;
  /** Names the route in metrics and in the budget, as the sync does. */
  route: string;
  bucket: Bucket | undefined;
  options: CallOptions;
}

/** Makes the methods of a client, one a route of the contract, for one instance. */
export function createServiceClient(parts: ClientParts, whose: ClientFor): ServiceClient {
  const { around = (request) => request() } = whose;
  const { origins } = parts.api;
  const send = (call: PreparedCall) => around(() => sendCall(parts, whose, call));

  /** The pages of a list, each from the address that the one before gave (Pagination, 3 and 4). */
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
      request = { ...request, ...origins.check(next) };
    }
  }

  async function* itemsOf(pages: AsyncGenerator<Page<unknown>>) {
    for await (const page of pages) yield* page._results;
  }

  const lists = ROUTES.filter(([, { list }]) => list);
  // The table that the methods are made from is the one that their types are made from.
  return {
    ...methods(ROUTES, (contract, args) => watched((async () => send(prepareCall(contract, args, parts)))())),
    pages: methods(lists, (contract, args) => watchedEach(pagesOf(contract, args))),
    each: methods(lists, (contract, args) => watchedEach(itemsOf(pagesOf(contract, args)))),
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

/**
 * Marks a failure as handled; who awaits the answer gets it all the same. A handler that begins several calls and awaits
 * them one after the other may be gone when a later one fails, which Node takes for fatal.
 */
function watched<Answer>(answer: Promise<Answer>): Promise<Answer> {
  answer.catch(() => undefined);
  return answer;
}

/** Likewise for what is asked of a generator: also `for await` goes through its own `next`. */
function watchedEach<Item>(items: AsyncGenerator<Item, void, undefined>) {
  const next = items.next.bind(items);
  return Object.assign(items, { next: () => watched(next()) });
}

type Params = Readonly<Record<string, string | number>>;

/**
 * Makes a request of a method's arguments: values for the path, the body, options.
 *
 * @throws ServiceError to give up on, when something is missing in the path
 */
function prepareCall(
  contract: RouteContract,
  args: readonly unknown[],
  { api, guards }: ClientParts,
): PreparedCall {
  const rest = [...args];
  const { method, path, mediaType, guard } = contract;
  const params = path.includes('/:') ? ((rest.shift() ?? {}) as Params) : {};
  const body = contract.body === undefined ? undefined : rest.shift();
  const options = (rest.shift() ?? {}) as CallOptions & { limit?: number; respondAsync?: boolean };

  const url = new URL(api.apiUrl + fillPath(path, params));
  if (options.limit !== undefined) url.searchParams.set('limit', String(options.limit));
  const texts = Object.fromEntries(Object.entries(params).map(([name, value]) => [name, String(value)]));
  const together = guard && guardBucket(guard, `${method} ${path}`, texts, body);
  return {
    contract,
    request: {
      method,
      url,
      headers: {
        ...(mediaType === undefined ? {} : { accept: mediaType }),
        // RFC 7240; the specification does not show how the asynchronous form is asked for.
        ...(options.respondAsync ? { prefer: 'respond-async' } : {}),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    },
    route: method === 'GET' ? path : `${method} ${path}`,
    bucket:
      guard === undefined || together === undefined
        ? undefined
        : {
            ...{ ...GUARDS, ...guards }[guard.guard],
            // It goes into Redis, and there may be recipients in it.
            name: createHash('sha256').update(together).digest('base64url'),
          },
    options,
  };
}

/** Puts values into a path, so that each stays the one segment that it is. */
function fillPath(path: string, params: Params): string {
  return path.replace(/(?<=\/):(\w+)/g, (_placeholder, name: string) => {
    const value: unknown = params[name];
    const text = typeof value === 'number' ? String(value) : value;
    // Dots alone would lead to another path, also when they are encoded.
    if (typeof text !== 'string' || text === '' || text === '.' || text === '..') {
      throw new ServiceError('refused', `${path} needs a ${name}: nothing was sent.`);
    }
    return encodeURIComponent(text);
  });
}

/**
 * Sends a call until there is an answer to it (Errors):
 *
 * - no permit yet (rate limit, guard, block): waits for it
 * - 401: once more with a new token; 429: once more when the service wants it
 * - 5xx, no answer, or a bad one: a few times more, after pauses. A POST may have taken effect by then and is not sent
 *   again, unless its caller says that it is repeatable, or it has surely not reached the service.
 *
 * @throws ServiceError; or the reason of a signal that ended the call
 */
async function sendCall(
  { api, budget, tokens }: ClientParts,
  { instanceId, company, isWanted, ...whose }: ClientFor,
  { contract, request, route, bucket, options }: PreparedCall,
): Promise<unknown> {
  const signals = [whose.signal, options.signal].filter((one) => one !== undefined);
  const signal = AbortSignal.any(signals);
  const repeatable = options.repeatable ?? request.method !== 'POST';
  let waitLeftMs = options.maxWaitMs ?? whose.maxWaitMs ?? MAX_WAIT_MS;
  const wait = async (ms: number, tooLong: () => ServiceError) => {
    if (ms > waitLeftMs) throw tooLong();
    waitLeftMs -= ms;
    await sleep(ms, undefined, { signal });
  };
  let rejected: string | undefined;
  let mayHaveTakenEffect = false;
  let tries = 1;

  async function tryOnce(): Promise<{ answer: unknown } | undefined> {
    const token = await tokens.accessToken(instanceId, rejected);
    const admission = await budget.acquire(company, route, bucket);
    const { permit } = admission;
    // Last of all, as both may have taken long: the token may be of another install by now.
    let isStillWanted = false;
    try {
      isStillWanted = (await isWanted?.()) !== false;
    } finally {
      if (!isStillWanted && permit !== undefined) await api.release(permit);
    }
    if (!isStillWanted)
      throw new ServiceError('refused', 'The request is not sent: the reason for it is over.');
    if (permit === undefined) {
      const { waitMs, why } = admission;
      await wait(waitMs, () => noPermit(route, bucket, waitMs, why));
      return undefined;
    }
    try {
      return { answer: readAnswer(contract, await api.send(request, permit, token.text, signal)) };
    } catch (error) {
      const failure = toServiceError(error);
      const { remedy, status, unsent, retryAfterMs = 0 } = failure;
      if (remedy === 'refresh') {
        if (rejected !== undefined) throw rejectedAgain(failure);
        rejected = token.text;
      } else if (status === 429) {
        // The next permit waits as long.
        if (retryAfterMs > waitLeftMs) throw failure;
      } else {
        if (remedy !== 'wait') throw failure;
        if (request.method !== 'GET' && !unsent) mayHaveTakenEffect = true;
        if (tries === MOST_TRIES || !(repeatable || unsent)) throw failure;
        await wait(Math.max(retryAfterMs, backoffMs(tries++, Math.random())), () => failure);
      }
      return undefined;
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
    const failure = toServiceError(error);
    throw mayHaveTakenEffect ? inDoubt(failure) : failure;
  }
}

/**
 * The JSON of an answer, undefined when there is nothing in it; the text where the route answers something else.
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

function inDoubt(failure: ServiceError): ServiceError {
  const { kind, remedy, status, retryAfterMs, tier } = failure;
  return new ServiceError(kind, `${failure.message} The request may have taken effect.`, {
    mayHaveTakenEffect: true,
    cause: failure,
    remedy,
    status,
    retryAfterMs,
    tier,
  });
}

function noPermit(route: string, bucket: Bucket | undefined, waitMs: number, why: WaitReason): ServiceError {
  const what = { limit: 'The rate limit', blocked: 'The service', guard: 'A rate guard' }[why];
  return new ServiceError('rate_limited', `${what} allows no request to ${route} for ${waitMs} ms.`, {
    retryAfterMs: waitMs,
    tier: why === 'guard' ? bucket?.tier : undefined,
  });
}
