import { type Page, ROUTES } from '../../contract/api/api.ts';
import type { RouteContract } from '../../contract/api/route.ts';
import { GUARDS, type GuardRules } from '../../contract/guards.ts';
import type { AllowedOrigins, PageAddress } from '../next-address.ts';
import { PageChain } from '../page-chain.ts';
import type { ServiceClient } from './call-types.ts';
import { type PreparedCall, prepareCall } from './prepare-call.ts';
import { type CallFor, type SenderParts, sendCall } from './send-call.ts';

/** The longest that a call waits if nothing else is said, in milliseconds. */
const MAX_WAIT_MS = 30_000;

/** What a client of the service is made of. */
export interface ClientParts extends SenderParts {
  /** `{base_url}`, without a slash at its end. */
  apiUrl: string;
  origins: AllowedOrigins;
  /** Other limits of guards than the contract's, whose reading of two of them may be wrong. */
  guards?: Partial<GuardRules>;
}

/** Whose client it is. */
export interface ClientFor extends Omit<CallFor, 'maxWaitMs'> {
  /** Half a minute when left out, in milliseconds. */
  maxWaitMs?: number;
  /** Sees each request through, with all its waits: so that somebody knows when one is under way. */
  around?: <Answer>(request: () => Promise<Answer>) => Promise<Answer>;
}

/**
 * Makes the methods of a client, one a route of the contract, for one instance. Whoever begins several calls and awaits
 * them one after the other may be gone when a later one fails: that ends no process.
 */
export function createServiceClient(parts: ClientParts, whose: ClientFor): ServiceClient {
  const rules = { ...GUARDS, ...parts.guards };
  const target = { ...whose, maxWaitMs: whose.maxWaitMs ?? MAX_WAIT_MS };
  const { around = (request) => request() } = whose;
  const send = (prepared: PreparedCall) => around(() => sendCall(parts, target, prepared));
  const prepare = (contract: RouteContract, args: readonly unknown[]) =>
    prepareCall(contract, args, parts.apiUrl, rules);

  const call =
    (contract: RouteContract) =>
    (...args: unknown[]) =>
      watched((async () => send(prepare(contract, args)))());
  const pages =
    (contract: RouteContract) =>
    (...args: unknown[]) =>
      watchedEach(pagesOf(parts, send, () => prepare(contract, args)));
  const each =
    (contract: RouteContract) =>
    (...args: unknown[]) =>
      watchedEach(itemsOf(pagesOf(parts, send, () => prepare(contract, args))));

  const lists = ROUTES.filter(([, { list }]) => list);
  // The table that the methods are made from is the one that their types are made from.
  return {
    ...methods(ROUTES, call),
    pages: methods(lists, pages),
    each: methods(lists, each),
  } as unknown as ServiceClient;
}

function methods<Made>(
  routes: readonly (readonly [string, RouteContract])[],
  make: (contract: RouteContract) => Made,
): Record<string, Made> {
  return Object.fromEntries(routes.map(([operation, contract]) => [operation, make(contract)]));
}

/** Handles an answer's failure, which whoever awaits it gets all the same: Node takes what nobody does for fatal. */
function watched<Answer>(answer: Promise<Answer>): Promise<Answer> {
  answer.catch(() => undefined);
  return answer;
}

/** Likewise for what is asked of a generator: also `for await` goes through its own `next`. */
function watchedEach<Item>(items: AsyncGenerator<Item, void, undefined>) {
  const next = items.next.bind(items);
  return Object.assign(items, { next: () => watched(next()) });
}

/** The pages of a list, each from the address that the one before gave (Pagination, 3 and 4). */
async function* pagesOf(
  parts: ClientParts,
  send: (call: PreparedCall) => Promise<unknown>,
  first: () => PreparedCall,
) {
  const call = first();
  const chain = new PageChain();
  let address = call.request.url.href;
  for (let at: PageAddress = { url: call.request.url }; ; ) {
    const page = (await send({ ...call, request: { ...call.request, ...at } })) as Page<unknown>;
    yield page;
    const { next } = page._pagination;
    if (next === null) return;
    chain.follow(address, next);
    address = next;
    at = parts.origins.check(next);
  }
}

async function* itemsOf(pages: AsyncGenerator<Page<unknown>>) {
  for await (const page of pages) yield* page._results;
}
