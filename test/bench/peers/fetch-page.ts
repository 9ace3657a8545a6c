import { Agent, request } from 'undici';

/** How long to wait when a 429 does not say, in milliseconds. */
const WAIT_MS = 1_000;

/** A page, as far as a peer looks at it, or how long the service wants no requests, in milliseconds. */
export type Fetched = { next: string } | { retryMs: number };

const agent = new Agent({ connections: 4, pipelining: 1 });

/**
 * Asks for a page and reads it as JSON; nothing is stored, which favours the peers.
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
  const page = JSON.parse(text) as { _pagination: { next: string | null } };
  if (page._pagination.next === null) throw new Error('the list has ended');
  return { next: page._pagination.next };
}
