import type { z } from 'zod';
import type { AnswerOf, API, BodyOf, Operation, ParamsOf } from '../contract/api/api.ts';
import type { acceptedMessage } from '../contract/api/common.ts';

type Table = typeof API;

export interface CallOptions {
  /** Ends the call, which rejects with the signal's reason. */
  signal?: AbortSignal;
  /** The longest that the call waits in all, in milliseconds. Then it fails with a `ServiceError`. */
  maxWaitMs?: number;
  /** Whether the call may be sent again though it may have taken effect. By default most POSTs may not. */
  repeatable?: boolean;
}

interface ListOptions extends CallOptions {
  /** Results a page. The default is the service's (Limits, "Pagination sizes"). */
  limit?: number;
}

/** Asks for the answer before the message exists (Resources, "Message"). */
interface AsyncOptions extends CallOptions {
  respondAsync: true;
}

/** The operations that list something, page by page. */
export type ListOperation = {
  [Op in Operation]: Table[Op] extends { list: true } ? Op : never;
}[Operation];

export type ItemOf<Op extends ListOperation> = z.output<Table[Op]['answer']>;

/** Values for the path, then the body. A route without one of them leaves it out. */
export type Arguments<Op extends Operation> = [
  ...(keyof ParamsOf<Op> extends never ? [] : [params: ParamsOf<Op>]),
  ...(Table[Op] extends { body: z.ZodType } ? [body: BodyOf<Op>] : []),
];

type OptionsOf<Op extends Operation> = Op extends ListOperation ? ListOptions : CallOptions;

type SyncCall<Op extends Operation> = (
  ...args: [...Arguments<Op>, options?: OptionsOf<Op>]
) => Promise<AnswerOf<Op>>;

type AsyncCall<Op extends Operation> = (
  ...args: [...Arguments<Op>, options: AsyncOptions]
) => Promise<z.output<typeof acceptedMessage>>;

type Calls = {
  readonly [Op in Operation]: Table[Op] extends { async: true } ? AsyncCall<Op> & SyncCall<Op> : SyncCall<Op>;
};

type ListCall<Op extends ListOperation, Part> = (
  ...args: [...Arguments<Op>, options?: ListOptions]
) => AsyncGenerator<Part, void, undefined>;

/**
 * The API of the service for one instance: `client.createChildTag({ tag_id }, { name })`. A method waits for its permit,
 * and rejects with a `ServiceError` or with the reason of its signal.
 */
export type ServiceClient = Calls & {
  /** All items of a list: `for await (const tag of client.each.listTags()) …` */
  readonly each: { readonly [Op in ListOperation]: ListCall<Op, ItemOf<Op>> };
  /** All pages of a list: `for await (const page of client.pages.listTags()) …` */
  readonly pages: { readonly [Op in ListOperation]: ListCall<Op, AnswerOf<Op>> };
};
