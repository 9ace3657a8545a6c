import { Redis } from 'ioredis';
import { afterAll, expect, test } from 'vitest';
import { findOvercome } from '../../src/sync/overcome.ts';
import { RefreshPauses } from '../../src/tokens/refresh-pauses.ts';
import { CREDENTIALS_REFUSED } from '../../src/tokens/token-errors.ts';
import { missingKeyMessages } from '../../src/tokens/vault.ts';
import { NOW, openTestStore } from '../store/test-store.ts';
import { startTestRedis } from '../support/test-redis.ts';

const store = await openTestStore();
const redis = new Redis((await startTestRedis()).url);
afterAll(() => redis.disconnect());

async function failedWith(error: string) {
  const { claim } = await store.claimRun();
  await store.runs.fail(claim, { error, keepsPlace: true, now: NOW });
  return { instanceId: claim.instanceId, resource: claim.resource };
}

test('runs that a key was missing for are found at every look, those that credentials were refused for at the first that comes to its end', async () => {
  const look = findOvercome({
    db: store.db,
    pauses: new RefreshPauses(redis),
    keyIds: ['k1'],
    hideSecrets: (text) => text,
  });
  const [missing = ''] = missingKeyMessages(['k1']);
  const unlocked = await failedWith(missing);
  const refused = await failedWith(CREDENTIALS_REFUSED);
  await failedWith('The service has trouble (500).');

  redis.disconnect();
  await expect(look()).rejects.toThrow();
  await redis.connect();
  // Those that come at once are one.
  expect(await Promise.all([look(), look()])).toEqual([[unlocked, refused], [unlocked]]);
  expect(await look()).toEqual([unlocked]);
});
