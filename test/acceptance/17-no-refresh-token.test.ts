import { describe, expect, it } from 'vitest';
import { syncAgain } from './support/lists.ts';
import { editTokenAnswers, type TokenAnswer } from './support/token-answers.ts';
import { createWorld } from './support/world.ts';

const HOUR_MS = 60 * 60_000;
const WAIT_MS = 30_000;

describe('17. A response without a refresh token keeps the old one.', async () => {
  const world = await createWorld({ sandbox: { windowMs: 2_000 } });
  let withRefreshToken: (answer: TokenAnswer) => TokenAnswer = (answer) => answer;
  await editTokenAnswers(world, (answer) => withRefreshToken(answer));
  await world.startAll();
  const browser = world.browser();
  const id = await world.install(browser, await world.control.addCompany({ name: 'Kept' }));
  await world.waitForSync(browser, id);

  it.each([
    ['no member', ({ refresh_token: _, ...rest }: TokenAnswer) => rest],
    ['null', (answer: TokenAnswer) => ({ ...answer, refresh_token: null })],
    ['an empty text', (answer: TokenAnswer) => ({ ...answer, refresh_token: '' })],
  ])('goes on with the refresh token that it has after %s', async (_what, edit) => {
    withRefreshToken = edit;
    for (let hour = 0; hour < 2; hour += 1) {
      const mark = await world.control.mark();
      await world.control.clock({ advance_ms: HOUR_MS + 1_000 });
      expect(await syncAgain(world, browser, id, WAIT_MS)).toMatchObject({
        status: 'active',
        token: { rotations: 0 },
      });
      expect((await world.control.tokenRequests(mark)).map(({ status }) => status)).toEqual([200]);
    }
  });
});
