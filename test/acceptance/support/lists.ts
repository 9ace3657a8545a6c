import { setTimeout as sleep } from 'node:timers/promises';
import { request } from 'undici';
import { expect } from 'vitest';
import type { JournalRow } from '../../../src/sandbox/types.ts';
import type { HttpBrowser } from '../../support/http-browser.ts';
import type { SandboxCompany } from './sandbox-control.ts';
import { isSynced, type Status, type World } from './world.ts';

type ListName = 'contacts' | 'conversations';

/** The documents of a list as the service has them now, sorted, read with the company's own API token. */
export async function readService(world: World, company: SandboxCompany, list: ListName): Promise<string[]> {
  const documents: string[] = [];
  const headers = { authorization: `Bearer ${company.api_tokens[0]?.token}` };
  let next: string | null = `${world.env.SERVICE_API_URL}/${list}?limit=100`;
  while (next !== null) {
    const { statusCode, body } = await request(next, { headers });
    const page = (await body.json()) as { _results: unknown[]; _pagination: { next: string | null } };
    if (statusCode === 429) await sleep(100);
    if (statusCode !== 200) continue;
    documents.push(...page._results.map((document) => JSON.stringify(document)));
    next = page._pagination.next;
  }
  return documents.sort();
}

/** The documents of a list as the copy has them, sorted. */
export async function readCopy(world: World, browser: HttpBrowser, id: string, list: ListName) {
  return (await world.download(browser, id, list)).sort();
}

/** Expects lists of the copy to hold what the service has now, document by document. */
export async function expectWhole(
  world: World,
  company: SandboxCompany,
  browser: HttpBrowser,
  id: string,
  lists: readonly ListName[] = ['contacts', 'conversations'],
): Promise<void> {
  for (const list of lists) {
    const copy = await readCopy(world, browser, id, list);
    const service = await readService(world, company, list);
    expect(copy.length).toBe(service.length);
    // A difference of thousands of documents would take minutes to print.
    expect(copy.filter((document, at) => document !== service[at])).toEqual([]);
  }
}

/** Presses *Sync now*, and waits until both lists have come to the end of another run. */
export async function syncAgain(
  world: World,
  browser: HttpBrowser,
  id: string,
  timeoutMs?: number,
): Promise<Status> {
  const { resources: before } = await world.status(browser, id);
  await world.press(browser, id, 'sync');
  return world.waitForStatus(
    browser,
    id,
    (status) =>
      isSynced(status) &&
      status.resources.contacts.finished_at !== before.contacts.finished_at &&
      status.resources.conversations.finished_at !== before.conversations.finished_at,
    timeoutMs,
  );
}

/** The partner limit: requests of one company in a window. */
export const LIMIT = 120;

/** Expects no window to hold more requests than the limit, and the service to have refused none. */
export function expectLimitHeld(requests: readonly JournalRow[], windowMs: number): void {
  expect(requests.filter(({ status }) => status === 429)).toEqual([]);
  expect(largestWindow(requests, windowMs)).toBeLessThanOrEqual(LIMIT);
}

/** The most requests that one window saw: a window begins with its first request, and ends `windowMs` later. */
function largestWindow(requests: readonly JournalRow[], windowMs: number): number {
  let start = Number.NEGATIVE_INFINITY;
  let count = 0;
  let largest = 0;
  // The journal has them in the order of their answers.
  for (const { at } of requests.toSorted((one, other) => one.at - other.at)) {
    if (at - start >= windowMs) [start, count] = [at, 0];
    largest = Math.max(largest, ++count);
  }
  return largest;
}
