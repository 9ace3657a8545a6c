import { expect, test } from 'vitest';
import { ServiceError } from '../../src/client/errors.ts';
import { REQUEST_TIMEOUT_MS } from '../../src/client/http.ts';
import { companyOf, LONGEST_QUESTION_MS } from '../../src/install/company.ts';
import type { InstallError } from '../../src/install/install-types.ts';

/** A service that answers each question with trouble, after so many milliseconds of a clock of its own. */
async function askSlowly(answerMs: number) {
  let now = 1_000_000;
  const startedAt = now;
  let asked = 0;
  const identity = async () => {
    asked++;
    now += answerMs;
    throw new ServiceError('wait', 'It has trouble.', { status: 503, retryAfterMs: 0 });
  };
  const error = await companyOf(
    { identity },
    'a token',
    async () => true,
    () => now,
  ).catch((thrown: unknown) => thrown);
  return { error: error as InstallError, asked, tookMs: now - startedAt };
}

test.concurrent('a service that is slow is not asked again where the answer could come too late: the install fails plainly', async () => {
  const { error, asked, tookMs } = await askSlowly(REQUEST_TIMEOUT_MS);
  expect(error.failure).toBe('trouble');
  expect(error.message).toContain('did not say which company this is');
  expect(asked).toBe(3);
  expect(tookMs).toBeLessThanOrEqual(LONGEST_QUESTION_MS);
});

test.concurrent('one that is quick is asked as often as ever', async () => {
  expect((await askSlowly(10)).asked).toBe(4);
});

test.concurrent.each([
  ['a service that does not tell is asked once', { isOwn: false, others: false, times: 1 }],
  ['so is one that says so itself, though it has told of others', { isOwn: true, others: true, times: 1 }],
  [
    'what may be of something before a service that has told of others, a few times',
    { isOwn: false, others: true, times: 4 },
  ],
])('%s', async (_what, { isOwn, others, times }) => {
  let asked = 0;
  const identity = async () => {
    asked++;
    return { company: undefined, isOwn };
  };
  expect(await companyOf({ identity }, 'a token', async () => others)).toBeUndefined();
  expect(asked).toBe(times);
});
