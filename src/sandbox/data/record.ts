import type { AnswerOf, Operation } from '../../contract/api/api.ts';

/** A record as it is kept: without links, as these depend on how the client reached the service. */
export type Document = Readonly<Record<string, unknown>> & { readonly id: string };

/** What an operation of the contract answers, as it is kept: without links, and without the members named here. */
export type Stored<Op extends Operation, Left extends string = never> = {
  readonly [Name in keyof AnswerOf<Op> as Exclude<Name, '_links' | Left>]: AnswerOf<Op>[Name];
};

export type Account = Stored<'getAccount'>;
export type CannedAnswer = Stored<'getResponse'>;
export type Channel = Stored<'getChannel'>;
export type Inbox = Stored<'getInbox'>;
export type Link = Stored<'getLink'>;
export type Tag = Stored<'getTag'>;
export type Teammate = Stored<'getTeammate'>;

/** Who looks at records, and when: some of them show more, or something else, then. */
export interface View {
  /** Whether the caller reaches what is shared alone, no private resources (Authentication, 9). */
  isShared: boolean;
  /** The service's time, in ms since 1970. */
  now: number;
}

/** What the records of one kind are. */
export interface Kind<D extends Document> {
  /** First letters of the ids. */
  prefix: string;
  /** The record as the API shows it. @param baseUrl `{base_url}` as the client reached it, for links */
  present(document: D, baseUrl: string, view: View): object;
}
