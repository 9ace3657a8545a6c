import { expect, it } from 'vitest';
import { checkReadiness } from '../../src/runtime/readiness.ts';

it('is ready if all checks are, and else names the reasons without secrets', async () => {
  const good = { database: async () => {}, redis: async () => 'PONG' };
  expect(await checkReadiness(good, 1_000)).toEqual({ ok: true, checks: { database: 'ok', redis: 'ok' } });
  const checks = {
    ...good,
    leaks: () => Promise.reject(new Error('connect redis://:hush@127.0.0.1 failed')),
    hangs: () => new Promise(() => {}),
    throws: () => {
      throw new Error('not open');
    },
  };
  expect(await checkReadiness(checks, 30)).toEqual({
    ok: false,
    checks: {
      database: 'ok',
      redis: 'ok',
      leaks: 'connect redis://[redacted]@127.0.0.1 failed',
      hangs: 'no answer within 30 ms',
      throws: 'not open',
    },
  });
});
