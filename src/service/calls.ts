import type { z } from 'zod';
import type { AnswerOf, API, BodyOf, Operation, ParamsOf } from '../contract/api/api.ts';
import type { acceptedMessage } from '../contract/api/common.ts';

type Table = typeof API;

/** How a call is made, beside what it says. */
export interface CallOptions {
  /** Ends the call early: it then rejects with the signal's reason. */
  signal?: AbortSignal;
  /** The longest that the call waits in all, in milliseconds; beyond that it fails with a `ServiceError` to wait on. */
  maxWaitMs?: number;
  /**
   * Whether sending it twice does no harm, so that it is tried again also when it may have taken effect. If nothing is
   * said, no POST is, and everything else.
   */
  repeatable?: boolean;
}

/** How a list is asked for. */
export interface ListOptions extends CallOptions {
  /** Results on a page; the service's own number when left out (Limits, "Pagination sizes"). */
  limit?: number;
}

/** How a message is created that is answered before it is (Resources, "Message"). */
export interface AsyncOptions extends CallOptions {
  respondAsync: true;
}

/** Names of the operations that list something, page by page. */
export type ListOperation = {
  [Op in Operation]: Table[Op] extends { list: true } ? Op : never;
}[Operation];

/** One item of a list. */
export type ItemOf<Op extends ListOperation> = z.output<Table[Op]['answer']>;

/** What the route needs comes first: values for its path, then what is sent; parts that it has none of are left out. */
type Said<Op extends Operation> = [
  ...(keyof ParamsOf<Op> extends never ? [] : [params: ParamsOf<Op>]),
  ...(Table[Op] extends { body: z.ZodType } ? [body: BodyOf<Op>] : []),
];

type OptionsOf<Op extends Operation> = Op extends ListOperation ? ListOptions : CallOptions;

type Plain<Op extends Operation> = (...args: [...Said<Op>, options?: OptionsOf<Op>]) => Promise<AnswerOf<Op>>;

type Accepting<Op extends Operation> = (
  ...args: [...Said<Op>, options: AsyncOptions]
) => Promise<z.output<typeof acceptedMessage>>;

/** One method a route. */
export type Calls = {
  readonly [Op in Operation]: Table[Op] extends { async: true } ? Accepting<Op> & Plain<Op> : Plain<Op>;
};

/** One method a list: all items of all pages, asked for as they are needed. */
export type EachCalls = {
  readonly [Op in ListOperation]: (
    ...args: [...Said<Op>, options?: ListOptions]
  ) => AsyncGenerator<ItemOf<Op>, void, undefined>;
};

/** One method a list: its pages, asked for as they are needed. */
export type PageCalls = {
  readonly [Op in ListOperation]: (
    ...args: [...Said<Op>, options?: ListOptions]
  ) => AsyncGenerator<AnswerOf<Op>, void, undefined>;
};

/**
 * The API of the service for one instance: `client.createChildTag({ tag_id }, { name })`. Each method waits for its
 * permit, and rejects with a `ServiceError` (or with the reason of a signal that was given).
 */
export type ServiceClient = Calls & {
  /** `for await (const tag of client.each.listTags()) …` */
  readonly each: EachCalls;
  /** `for await (const page of client.pages.listTags()) …` */
  readonly pages: PageCalls;
};
