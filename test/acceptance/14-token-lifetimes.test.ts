import { describe, expect, it } from 'vitest';
import { AppClock } from './support/app-clock.ts';
import { syncAgain } from './support/lists.ts';
import { editTokenAnswers, type TokenAnswer } from './support/token-answers.ts';
import { createWorld } from './support/world.ts';

const SECOND_MS = 1_000;
const MINUTE_MS = 60_000;

type Edit = (answer: TokenAnswer) => TokenAnswer;
interface Form {
  form: string;
  edit: Edit;
  /** When the token ends by the answer, in minutes; an hour where it does not tell. */
  life: number;
}

/** The sandbox's tokens last an hour: a form that can be read tells an earlier end. */
const FORMS: Form[] = [
  { form: 'a number', edit: ending((seconds) => seconds), life: 40 },
  { form: 'a numeric string', edit: ending(String), life: 40 },
  { form: 'an ISO date', edit: ending((seconds) => new Date(seconds * SECOND_MS).toISOString()), life: 40 },
  { form: 'absent', edit: ({ expires_at: _, ...rest }) => rest, life: 60 },
  { form: 'nonsense', edit: (answer) => ({ ...answer, expires_at: 'in a while' }), life: 60 },
];

function ending(write: (seconds: number) => unknown): Edit {
  return (answer) => ({ ...answer, expires_at: write(Number(answer.expires_at) - 20 * 60) });
}

describe('14. Token lifetimes hold to the second on the service’s clock, with a local clock ten minutes off; `expires_at` may be a number, a numeric string, an ISO date, absent or nonsense.', async () => {
  const worlds = [await startWorld(10), await startWorld(-10)];

  it.each(worlds.flatMap((started) => FORMS.map((form) => ({ ...started, ...form }))))(
    'holds with expires_at $form and a local clock $minutes min off',
    async (started) => {
      const { world, clock, form, edit, life } = started;
      const { control } = world;
      started.answers.edit = edit;
      const { company, browser, id } = await world.installed({ name: form });
      const { now } = await control.state();
      const { token } = await world.waitForSync(browser, id);
      const lifetimeMs = Date.parse(token.access_expires_at ?? '') - now;
      expect(Math.abs(lifetimeMs - life * MINUTE_MS)).toBeLessThanOrEqual(2 * SECOND_MS);

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
      expect(await later((life - 10) * MINUTE_MS)).toBe(0);
      expect(await later(10 * MINUTE_MS - SECOND_MS)).toBeLessThanOrEqual(1);
      expect(await later(2 * SECOND_MS)).toBe(1);
    },
  );
});

/** The app with a local clock so many minutes off, before a service whose clock stands still. */
async function startWorld(minutes: number) {
  const world = await createWorld({ sandbox: { windowMs: 2_000 } });
  const answers: { edit: Edit } = { edit: (answer) => answer };
  await editTokenAnswers(world, (answer) => answers.edit(answer));
  const clock = new AppClock(world, minutes * MINUTE_MS);
  await world.startAll();
  await world.control.clock({ frozen: true });
  return { world, clock, answers, minutes };
}
