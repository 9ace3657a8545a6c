import type { CheckedBodyOf, Operation, ParamsOf } from '../../contract/api/api.ts';
import { SCOPE } from '../../contract/scopes.ts';
import type { Collection } from '../data/collection.ts';
import type { Document, Teammate, View } from '../data/kinds.ts';
import { type Answer, Problem } from '../http/answer.ts';
import type { Call } from '../http/call.ts';
import type { LimitScope } from '../limits/limiter.ts';
import type { Company } from '../state/company.ts';
import type { Tables } from '../state/tables.ts';
import type { Token } from '../state/tokens.ts';
import type { World } from '../world.ts';

/** Who asks, what for, and which limit that counts against. */
export interface Caller {
  company: Company;
  /** The application's client id; undefined for an API token. */
  application: string | undefined;
  /** The access token; undefined for an API token. */
  token: Token | undefined;
  /** What the token is allowed (Authentication, 9). */
  scopes: readonly string[];
  /** Which limit its requests count against. */
  scope: LimitScope;
}

/** A request that is authenticated, within the limits and allowed. */
export interface ApiContext {
  world: World;
  call: Call;
  caller: Caller;
  company: Company;
  tables: Tables;
  /** The service's time, in ms since 1970. */
  now: number;
  /** The same in seconds, as documents have it. */
  at: number;
}

/** A request to one operation, whose body has been checked. */
export interface ApiRequest<Op extends Operation> extends ApiContext {
  /** Values of the path's placeholders. */
  params: ParamsOf<Op>;
  body: CheckedBodyOf<Op>;
}

/** An answer that is ready as it is: another status than the contract's, or text that is JSON already. */
export class Ready {
  readonly answer: Answer;

  constructor(answer: Answer) {
    this.answer = answer;
  }
}

/** Answers each operation: the document, sent with the contract's status. Throws a `Problem` if it cannot. */
export type Handlers = {
  [Op in Operation]: (request: ApiRequest<Op>) => object | Promise<object>;
};

/**
 * The teammate for whom a token acts: the one who authorized it, when it is user-scoped as those of tool-protocol
 * applications are (Authentication, 3). Any other token acts for the company: undefined.
 *
 * The specification only names user-scoped tokens. Our choice: `GET /me` tells the teammate, who is also the author of
 * messages that name no other. The token's reach is that of every OAuth token, as rule 9 names no exception.
 */
export function actingTeammate({ world, caller }: ApiContext): Teammate | undefined {
  const { company, application, token } = caller;
  const isUserScoped = world.applications.get(application ?? '')?.kind === 'tool-protocol';
  return isUserScoped && token ? company.tables.teammates.find(token.grant.teammateId) : undefined;
}

/** Whether the caller's token reaches private resources of teammates (Authentication, 9). */
export function reachesPrivate({ caller }: ApiContext): boolean {
  return caller.scopes.includes(SCOPE.private);
}

/**
 * The record with this id, which the caller may reach. Throws a {@link Problem}: 404 when there is none, 403 when it is a
 * teammate's own and the token does not reach such (Authentication, 9).
 *
 * @param missing status in place of 404
 */
export function reach<D extends Document>(
  request: ApiContext,
  collection: Collection<D>,
  id: string,
  missing = 404,
): D {
  const document = collection.find(id);
  if (document === undefined) throw new Problem(missing, `There is no ${id} here.`);
  if (document.is_private === true && !reachesPrivate(request)) {
    throw new Problem(403, `${id} is private: it takes an API token with the scope ${SCOPE.private}.`);
  }
  return document;
}

/** The record that is named in a body; throws a {@link Problem} (422) in place of {@link reach}'s 404. */
export function named<D extends Document>(request: ApiContext, collection: Collection<D>, id: string): D {
  return reach(request, collection, id, 422);
}

/** Who looks, and when. */
export function viewOf(request: ApiContext): View {
  return { isShared: !reachesPrivate(request), now: request.now };
}

/** The record as the API shows it. */
export function show<D extends Document>(request: ApiContext, collection: Collection<D>, document: D) {
  return collection.present(document, request.call.baseUrl, viewOf(request));
}

/** Adds a record, and shows it. */
export function added<D extends Document>(
  request: ApiContext,
  collection: Collection<D>,
  make: (id: string) => D,
) {
  return show(request, collection, collection.add(make));
}

/** Puts a changed record in its place, and shows it. */
export function changed<D extends Document>(request: ApiContext, collection: Collection<D>, document: D) {
  return show(request, collection, collection.replace({ ...document, updated_at: request.at }));
}

type Own<Body> = Omit<Body, 'id' | '_links' | 'is_private' | 'created_at' | 'updated_at'>;

/**
 * The members of a body that are kept with the record: also those that the contract does not name, so that they are
 * read back as they were sent; but not those that the service alone sets.
 */
export function own<Body extends object>(body: Body): Own<Body> {
  const { id, _links, is_private, created_at, updated_at, ...kept } = body as Record<string, unknown>;
  return kept as Own<Body>;
}
