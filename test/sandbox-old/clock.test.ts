import { expect, test } from 'vitest';
import type { ErrorBody } from '../../src/contract/errors.ts';
import { START_MS, startFrozen, startSandbox } from '../sandbox/support/test-sandbox.ts';

test('runs with real time until it is frozen', async () => {
  const service = await startSandbox();
  const before = Date.now();
  const { now, frozen } = await service.state();
  expect(frozen).toBe(false);
  expect(now).toBeGreaterThanOrEqual(before);
  expect(now).toBeLessThanOrEqual(Date.now());
});

test('starts where it is told to', async () => {
  const service = await startSandbox({ now: START_MS });
  const { now } = await service.state();
  expect(now - START_MS).toBeGreaterThanOrEqual(0);
  expect(now - START_MS).toBeLessThan(5_000);
});

test('stands still while frozen, and runs on from there', async () => {
  const service = await startFrozen();
  expect(await service.state()).toMatchObject({ now: START_MS, frozen: true });
  expect(await service.done('clock', { advance_ms: 1_500 })).toEqual({ now: START_MS + 1_500, frozen: true });
  const running = await service.done<{ now: number; frozen: boolean }>('clock', { frozen: false });
  expect(running.frozen).toBe(false);
  expect(running.now - START_MS).toBeGreaterThanOrEqual(1_500);
  expect(running.now - START_MS).toBeLessThan(6_500);
});

test.each([
  ['epoch milliseconds', 1_900_000_000_123, 1_900_000_000_123],
  ['an ISO 8601 date with a zone', '2030-03-17T19:46:40+02:00', Date.UTC(2030, 2, 17, 17, 46, 40)],
  ['an ISO 8601 day', '2030-03-17', Date.UTC(2030, 2, 17)],
])('is set to %s', async (_, set, expected) => {
  const service = await startFrozen();
  expect(await service.done('clock', { set })).toEqual({ now: expected, frozen: true });
});

test('is in the Date header of every answer', async () => {
  const service = await startFrozen();
  await service.done('clock', { set: Date.UTC(2031, 0, 5, 1, 2, 3, 999) });
  const { origin, apiUrl, authUrl } = service.sandbox;
  for (const url of [
    origin,
    `${apiUrl}/me`,
    `${authUrl}/oauth/token`,
    `${origin}/_sandbox/state`,
    `${origin}/nothing`,
  ]) {
    const response = await fetch(url);
    expect(response.headers.get('date'), url).toBe('Sun, 05 Jan 2031 01:02:03 GMT');
  }
});

test.each([
  {},
  { advance_ms: 'soon' },
  { advance_ms: -1 },
  { advance_ms: 0.5 },
  { set: 'soon' },
  { set: -5 },
  { set: 8e15 },
  { advance_ms: Number.MAX_SAFE_INTEGER },
  { frozen: 'yes' },
  { advance: 5 },
  [],
])('refuses %j', async (body) => {
  const service = await startFrozen();
  const response = await service.control('clock', body);
  expect(response.status).toBe(400);
  const { _error } = (await response.json()) as ErrorBody;
  expect(_error).toMatchObject({ status: 400, title: 'Bad Request' });
  expect(_error.message).not.toBe('');
  expect((await service.state()).now).toBe(START_MS);
});
