import { createHash } from 'node:crypto';
import type { API, Operation } from '../contract/api/api.ts';
import { ROUTES } from '../contract/api/api.ts';
import { isRepeatable, type RouteContract } from '../contract/api/route.ts';
import type { Arguments } from '../service/calls.ts';
import { fillPath, readArguments } from '../service/service-client.ts';
import { type NewWrite, objectOf } from '../store/outbox.ts';

/** The longest key, and the largest body, in UTF-16 units. */
const LONGEST_KEY = 500;
const LARGEST_BODY = 1024 * 1024;

type WriteOperation = {
  [Op in Operation]: (typeof API)[Op]['method'] extends 'GET' ? never : Op;
}[Operation];

interface WriteOptions {
  /** Names what the write is for, such as `refund:cnv_1`. A key that was used once adds nothing again. */
  key: string;
  /** Whether the first request under the key stands, instead of an error, if this one differs: say so if texts change. */
  keepFirst?: boolean;
}

/**
 * Writes to the service that happen once: `outbox.addConversationTags({ conversation_id }, { tag_ids }, { key })`. A worker
 * sends them after the transaction, in their order for each object.
 */
export type Outbox = {
  readonly [Op in WriteOperation]: (...args: [...Arguments<Op>, options: WriteOptions]) => Promise<void>;
};

/** Collects what the function of a handler wants written. Nothing is collected after `close`. */
export function collectWrites(instanceId: string) {
  const writes = new Map<string, NewWrite>();
  let isOver = false;
  const add = (operation: Operation, contract: RouteContract, args: readonly unknown[]) => {
    if (isOver) throw new Error('The transaction is over.');
    const write = toWrite(instanceId, operation, contract, args);
    const known = writes.get(write.key_hash);
    if (known !== undefined && known.request_hash !== write.request_hash) {
      throw new Error(`The outbox got the key "${write.key}" twice, for different requests.`);
    }
    writes.set(write.key_hash, known ?? write);
  };
  const methods = ROUTES.filter(([, { method }]) => method !== 'GET').map(([operation, contract]) => {
    return [operation, async (...args: unknown[]) => add(operation, contract, args)];
  });
  return {
    // The types come from the same table as the methods.
    outbox: Object.fromEntries(methods) as Outbox,
    close(): NewWrite[] {
      isOver = true;
      return [...writes.values()];
    },
  };
}

/** The hash of a key, which stays when the key is forgotten. */
export function hashKey(instanceId: string, key: string): string {
  return hashOf([instanceId, key]);
}

function toWrite(
  instanceId: string,
  operation: Operation,
  contract: RouteContract,
  args: readonly unknown[],
): NewWrite {
  const { params, body, options } = readArguments(contract, args);
  const { key, keepFirst = false } = options as Partial<WriteOptions>;
  if (typeof key !== 'string' || key.trim() === '' || key.length > LONGEST_KEY) {
    const what = `a text of 1 to ${LONGEST_KEY} characters that names what the write is for`;
    throw new Error(`outbox.${operation} needs { key } as its last argument: ${what}.`);
  }
  const object = objectOf(fillPath(contract.path, params));
  const text = body === undefined ? null : JSON.stringify(body);
  if (contract.body !== undefined && typeof text !== 'string')
    throw new Error(`outbox.${operation} needs a body.`);
  if ((text?.length ?? 0) > LARGEST_BODY) {
    throw new Error(`outbox.${operation} got a body of more than ${LARGEST_BODY} characters.`);
  }
  return {
    key,
    keepsFirst: keepFirst,
    key_hash: hashKey(instanceId, key),
    request_hash: hashOf([operation, params, text]),
    operation,
    is_repeatable: isRepeatable(contract) ? 1 : 0,
    object,
    path_values: JSON.stringify(params),
    body: text,
  };
}

function hashOf(value: unknown): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('base64url');
}
