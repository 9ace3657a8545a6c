import { describe, expect, it } from 'vitest';
import { AppClock } from './support/app-clock.ts';
import { syncAgain } from './support/sync-again.ts';
import { editTokenAnswers, type TokenAnswer } from './support/token-answers.ts';
import { createWorld } from './support/world.ts';

const SECOND_MS = 1_000;
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

type Edit = (answer: TokenAnswer) => TokenAnswer;
const FORMS: Record<string, Edit> = {
  'a number': (answer) => ({ ...answer, expires_at: Number(answer.expires_at) }),
  'a numeric string': (answer) => answer,
  'an ISO date': (answer) => ({
    ...answer,
    expires_at: new Date(Number(answer.expires_at) * SECOND_MS).toISOString(),
  }),
  absent: ({ expires_at: _, ...rest }) => rest,
  nonsense: (answer) => ({ ...answer, expires_at: 'in a while' }),
};

describe('14. Token lifetimes hold to the second on the service’s clock, with a local clock ten minutes off; `expires_at` may be a number, a numeric string, an ISO date, absent or nonsense.', async () => {
  const worlds = [await startWorld(10), await startWorld(-10)];

  it.each(
    worlds.flatMap((started) => Object.entries(FORMS).map(([form, edit]) => ({ ...started, form, edit }))),
  )('holds with expires_at $form and a local clock $minutes min off', async (started) => {
    const { world, clock, form, edit } = started;
    const { control } = world;
    started.answers.edit = edit;
    const browser = world.browser();
    const company = await control.addCompany({ name: form });
    const id = await world.install(browser, company);
    const { now } = await control.state();
    const { token } = await world.waitForSync(browser, id);
    const lifetimeMs = Date.parse(token.access_expires_at ?? '') - now;
    expect(Math.abs(lifetimeMs - HOUR_MS)).toBeLessThanOrEqual(2 * SECOND_MS);

    const mark = await control.mark();
    /** Lets time pass, syncs, and tells how the token route and the API answered since the install. */
    const later = async (ms: number) => {
      await clock.pass(ms);
      await syncAgain(world, browser, id);
      const requests = (await control.requests(mark)).filter(({ company_id }) => company_id === company.id);
      const rejected = requests.filter(({ status }) => status === 401);
      expect(rejected).toEqual([]);
      return requests.filter(({ path }) => path === '/oauth/token').length;
    };
    expect(await later(50 * MINUTE_MS)).toBe(0);
    expect(await later(10 * MINUTE_MS - SECOND_MS)).toBeLessThanOrEqual(1);
    expect(await later(2 * SECOND_MS)).toBe(1);
  });
});

/** The app with a local clock so many minutes off, before a service whose clock stands still. */
async function startWorld(minutes: number) {
  const world = await createWorld({ sandbox: { windowMs: 2_000 } });
  const answers: { edit: Edit } = { edit: (answer) => answer };
  await editTokenAnswers(world, (answer) => answers.edit(answer));
  const clock = new AppClock(world, minutes * MINUTE_MS);
  await world.start();
  await world.control.clock({ frozen: true });
  return { world, clock, answers, minutes };
}
