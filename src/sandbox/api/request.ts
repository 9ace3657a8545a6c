import type { CheckedBodyOf, Operation, ParamsOf } from '../../contract/api/api.ts';
import { SCOPE } from '../../contract/scopes.ts';
import type { Collection } from '../data/collection.ts';
import type { Document, Teammate, View } from '../data/record.ts';
import { type Answer, Problem } from '../http/answer.ts';
import type { Call } from '../http/call.ts';
import type { LimitScope } from '../limits/limiter.ts';
import type { Company } from '../state/companies.ts';
import type { Tables } from '../state/tables.ts';
import type { Token } from '../state/tokens.ts';
import type { World } from '../world.ts';

export type Table = keyof Tables;
export type RecordOf<Name extends Table> = Tables[Name] extends Collection<infer D> ? D : never;

/** Who asks, what for, and which limit that counts against. */
export interface Caller {
  company: Company;
  /** The application's client id; undefined for an API token, as the access token is. */
  application: string | undefined;
  token: Token | undefined;
  /** What the token is allowed (Authentication, 9). */
  scopes: readonly string[];
  limit: LimitScope;
}

/** A request that is authenticated, and what it reaches in its company. */
export class ApiContext {
  readonly world: World;
  readonly call: Call;
  readonly caller: Caller;
  readonly company: Company;
  readonly tables: Tables;
  /** The service's time, in ms since 1970. */
  readonly now: number;
  /** The same in seconds, as documents have it. */
  readonly at: number;

  constructor(world: World, call: Call, caller: Caller) {
    this.world = world;
    this.call = call;
    this.caller = caller;
    this.company = caller.company;
    this.tables = caller.company.tables;
    this.now = world.clock.now();
    this.at = this.now / 1000;
  }

  /** Whether the caller's token reaches private resources of teammates (Authentication, 9). */
  get reachesPrivate(): boolean {
    return this.caller.scopes.includes(SCOPE.private);
  }

  /** Who looks, and when. */
  get view(): View {
    return { isShared: !this.reachesPrivate, now: this.now };
  }

  /**
   * The teammate who authorized a user-scoped token, as those of tool-protocol applications are (Authentication, 3).
   * Any other token acts for the company: undefined.
   *
   * Our choice: `GET /me` tells the teammate, who is also the author of messages that name no other. The token's reach
   * is the one of every OAuth token, as rule 9 names no exception.
   */
  get actingTeammate(): Teammate | undefined {
    const { application, token } = this.caller;
    if (this.world.applications.get(application)?.kind !== 'tool-protocol') return undefined;
    return token && this.tables.teammates.find(token.grant.teammateId);
  }

  /**
   * The record with this id. Throws a {@link Problem}: 404 when there is none, 403 when it is a teammate's own and the
   * token does not reach such (Authentication, 9).
   *
   * @param missing status in place of 404
   */
  reach<Name extends Table>(table: Name, id: string, missing = 404): RecordOf<Name> {
    const document: Document | undefined = this.tables[table].find(id);
    if (document === undefined) throw new Problem(missing, `There is no ${id} here.`);
    if (document.is_private === true && !this.reachesPrivate) {
      throw new Problem(403, `${id} is private: it takes an API token with the scope ${SCOPE.private}.`);
    }
    return document as RecordOf<Name>;
  }

  /** The record that a body names; throws a {@link Problem} (422) in place of {@link reach}'s 404. */
  named<Name extends Table>(table: Name, id: string): RecordOf<Name> {
    return this.reach(table, id, 422);
  }

  /** The record as the API shows it. */
  show<Name extends Table>(table: Name, record: RecordOf<Name>): object {
    const collection: Collection = this.tables[table];
    return collection.present(record, this.call.baseUrl, this.view);
  }

  /** Adds a record, and shows it. */
  add<Name extends Table>(table: Name, make: (id: string) => RecordOf<Name>): object {
    const collection: Collection = this.tables[table];
    return this.show(table, collection.add(make) as RecordOf<Name>);
  }

  /** Puts a changed record in its place, and shows it. */
  change<Name extends Table>(table: Name, record: RecordOf<Name>): object {
    const collection: Collection = this.tables[table];
    return this.show(table, collection.replace({ ...record, updated_at: this.at }) as RecordOf<Name>);
  }
}

/** A request to one operation: within the limits, allowed, and checked against the contract. */
export type ApiRequest<Op extends Operation> = ApiContext & { params: ParamsOf<Op>; body: CheckedBodyOf<Op> };

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

type SetByService = 'id' | '_links' | 'is_private' | 'created_at' | 'updated_at';

/** JSON has no undefined members. */
type Own<Body> = {
  [Name in keyof Body as Exclude<Name, SetByService>]: Exclude<Body[Name], undefined>;
};

/**
 * The members of a body that are kept with the record: also those that the contract does not name, so that they are
 * read back as they were sent; but not those that the service alone sets.
 */
export function own<Body extends object>(body: Body): Own<Body> {
  const { id, _links, is_private, created_at, updated_at, ...kept } = body as Record<string, unknown>;
  return kept as Own<Body>;
}
