import { readJson } from './read-json.ts';

/** The company behind a token. */
export interface Identity {
  id: string;
  name: string | undefined;
}

/** Reads the answer of the identity route; undefined when it holds no usable id. */
export function readIdentity(body: string): Identity | undefined {
  let identity: { id?: unknown; name?: unknown } | null;
  try {
    identity = readJson(body, 'an answer') as typeof identity;
  } catch {
    return undefined;
  }
  const id = identity?.id;
  if (!(typeof id === 'string' && id !== '') && !Number.isSafeInteger(id)) return undefined;
  const name = identity?.name;
  return { id: String(id), name: typeof name === 'string' && name.trim() !== '' ? name.trim() : undefined };
}
