import { expect } from 'vitest';
import type { ApiAnswer, TestSandbox } from './test-sandbox.ts';

/** Sends one request. */
export type Send = () => Promise<ApiAnswer<unknown>>;

/** A guard, as the specification has it, and requests that it lets through. */
export interface Guarded {
  tier: string;
  limit: number;
  windowMs: number;
  /** The requests of one bucket, one after the other: they must work. */
  send: readonly [Send, ...Send[]];
  /** Requests of other buckets: they must work while the first bucket is used up. */
  apart?: readonly Send[];
}

/**
 * Holds a guard to the request, under the frozen clock: as many as the limit pass, the next is refused with what the
 * client needs to know, others are not, and when the window is over it begins anew.
 */
export async function expectGuarded(service: TestSandbox, guarded: Guarded): Promise<void> {
  const { tier, limit, windowMs, send, apart = [] } = guarded;
  const next = (request: number) => (send[request % send.length] ?? send[0])();
  const remaining: number[] = [];
  for (let request = 0; request < limit; request++) {
    const { status, headers } = await next(request);
    expect([request, Math.floor(status / 100), headers.get('x-service-tier')]).toEqual([request, 2, tier]);
    remaining.push(Number(headers.get('x-ratelimit-remaining')));
  }

  const wait = Math.min(1_001, windowMs - 1);
  await service.advance(windowMs - wait);
  for (const request of [0, 1, 2]) {
    const { status, headers, body } = await next(request);
    expect(status).toBe(429);
    expect(headers.get('x-service-tier')).toBe(tier);
    expect(headers.get('retry-after')).toBe(String(Math.ceil(wait / 1000)));
    expect(Number(headers.get('x-ratelimit-remaining'))).toBe(remaining.at(-1));
    expect(remaining.at(-1)).toBeGreaterThan(0);
    expect(body).toMatchObject({
      _error: {
        status: 429,
        title: 'Too Many Requests',
        message: expect.stringMatching(`\\b${wait} milliseconds`),
      },
    });
  }
  for (const other of apart) expect((await other()).status).toBeLessThan(300);

  await service.advance(wait);
  for (let request = 0; request < limit; request++) expect((await next(request)).status).toBeLessThan(300);
  expect((await next(0)).status).toBe(429);
}
