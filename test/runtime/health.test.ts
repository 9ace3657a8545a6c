import { expect, it } from 'vitest';
import { checkReadiness } from '../../src/runtime/health.ts';

it('is ready when every check is', async () => {
  const readiness = await checkReadiness({ database: async () => {}, redis: async () => 'PONG' }, 1_000);
  expect(readiness).toEqual({ ok: true, checks: { database: 'ok', redis: 'ok' } });
});

it('says what is wrong with each, without secrets, and does not wait for ever', async () => {
  const readiness = await checkReadiness(
    {
      database: async () => {
        throw new Error('connect redis://:hush@127.0.0.1 failed');
      },
      redis: () => new Promise(() => {}),
      rest: async () => {},
    },
    30,
  );
  expect(readiness).toEqual({
    ok: false,
    checks: {
      database: 'connect redis://[redacted]@127.0.0.1 failed',
      redis: 'no answer within 30 ms',
      rest: 'ok',
    },
  });
});

it('takes a check that throws before it promises anything', async () => {
  const broken = (): Promise<void> => {
    throw new Error('not open');
  };
  expect(await checkReadiness({ broken }, 100)).toEqual({ ok: false, checks: { broken: 'not open' } });
});
