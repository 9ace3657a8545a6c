import { expect, it } from 'vitest';
import { waitFor } from './wait-for.ts';

it('gives what the condition gave, once it is true', async () => {
  let calls = 0;
  const value = await waitFor(
    async () => {
      calls += 1;
      if (calls === 1) throw new Error('not yet');
      return calls > 2 && `after ${calls}`;
    },
    { intervalMs: 1 },
  );
  expect(value).toBe('after 3');
});

it('says what it waited for, and what it saw last', async () => {
  const options = { timeoutMs: 5, intervalMs: 1, what: 'the moon' };
  await expect(waitFor(() => 0, options)).rejects.toThrow('Waited 5 ms for the moon; last: 0');
  await expect(waitFor(() => Promise.reject(new Error('cloudy')), options)).rejects.toThrow('cloudy');
});
