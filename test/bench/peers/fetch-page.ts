import { Agent, request } from 'undici';
import type { PlainPage } from '../bare-store.ts';

/** How long to wait when a 429 does not say, in milliseconds. */
const WAIT_MS = 1_000;

/** A page, or how long the service wants no requests, in milliseconds. */
export type Fetched = { next: string; page: PlainPage } | { retryMs: number };

const agent = new Agent({ connections: 4, pipelining: 1 });

/**
 * Asks for a page and reads it as JSON.
 *
 * Throws for anything but 200 and 429, and at the end of the list: lists of benches do not end.
 */
export async function fetchPage(url: string, token: string): Promise<Fetched> {
  const answer = await request(url, {
    headers: { authorization: `Bearer ${token}` },
    dispatcher: agent,
  });
  const text = await answer.body.text();
  if (answer.statusCode === 429) {
    const seconds = Number(answer.headers['retry-after']);
    return { retryMs: seconds > 0 ? seconds * 1_000 : WAIT_MS };
  }
  if (answer.statusCode !== 200) throw new Error(`${answer.statusCode} ${text.slice(0, 300)}`);
  const page = JSON.parse(text) as PlainPage;
  if (page._pagination.next === null) throw new Error('the list has ended');
  return { next: page._pagination.next, page };
}
