import { expect, test } from 'vitest';
import {
  LEFT_TO_SYNC,
  type Permit,
  RateBudget,
  type Settlement,
} from '../../../src/service/budget/rate-budget.ts';
import { modelBudget } from './model/model-budget.ts';
import { rate } from './rate.ts';

const START_MS = Date.UTC(2031, 0, 1);
const MINUTE_MS = 60_000;
const MINUTES = 4;
const LATENCY_MS = 200;
const COMPANY = 'company';

/** What answers say, by how many requests their window has, and how long ago it began. */
type Told = (used: number, openForMs: number) => Settlement;

/** One list, a page after the other, and so many calls of the own logic at once, each followed by another one. */
async function grantsAMinute(callers: number, told: Told, minutes = MINUTES, latencyMs = () => LATENCY_MS) {
  const { redis, connection, watch, budget } = modelBudget(START_MS, 2);
  const calls = new RateBudget(connection, 2, undefined, LEFT_TO_SYNC, watch);
  const granted = { pages: Array<number>(MINUTES).fill(0), calls: Array<number>(MINUTES).fill(0) };
  const due: { at: number; go: () => Promise<void> }[] = [];
  let now = 0;
  let window = { began: 0, used: 0 };

  const serve = () => {
    if (now - window.began >= MINUTE_MS) window = { began: now, used: 0 };
    window.used++;
    return told(window.used, now - window.began);
  };
  const actor = (who: keyof typeof granted, from: RateBudget, route: string) => {
    const ask = async (): Promise<void> => {
      const admission = await from.acquire(COMPANY, route);
      if (admission.permit === undefined) due.push({ at: now + Math.max(1, admission.waitMs), go: ask });
      else await send(admission.permit);
    };
    const send = async (permit: Permit) => {
      const minute = Math.floor(now / MINUTE_MS);
      granted[who][minute] = (granted[who][minute] ?? 0) + 1;
      const answer = serve();
      const settle = async () => {
        // Its time is the model's: a slow machine makes no answer late.
        await from.settle({ ...permit, goodUntil: Infinity }, answer);
        due.push({ at: now, go: ask });
      };
      due.push({ at: now + latencyMs(), go: settle });
    };
    return ask;
  };

  due.push({ at: 0, go: actor('pages', budget, '/contacts') });
  for (let caller = 0; caller < callers; caller++)
    due.push({ at: 100 + caller, go: actor('calls', calls, '/tags') });
  for (;;) {
    const next = due.reduce((first, one) => (one.at < first.at ? one : first));
    if (next.at >= minutes * MINUTE_MS) return granted;
    due.splice(due.indexOf(next), 1);
    now = next.at;
    redis.nowUs = (START_MS + now) * 1_000;
    await next.go();
  }
}

const CONTRACTS: [string, Told][] = [
  [
    'the service tells of our limit',
    (used, openForMs) => ({
      answer: {
        rate: rate(120 - used, {
          endsInMs: MINUTE_MS - openForMs,
          resetMs: Math.ceil((START_MS + openForMs) / MINUTE_MS) * MINUTE_MS,
        }),
      },
    }),
  ],
  ['it tells nothing', () => ({ answer: { rate: undefined } })],
];

test.each(CONTRACTS.flatMap(([what, told]) => [3, 20].map((callers) => ({ what, callers, told }))))(
  'where $what, a list and $callers calls at once both go on, minute for minute',
  async ({ callers, told }) => {
    const { pages, calls } = await grantsAMinute(callers, told);
    for (let minute = 1; minute < MINUTES; minute++) {
      expect(pages[minute], `pages in minute ${minute}`).toBeGreaterThanOrEqual(12);
      expect(calls[minute], `calls in minute ${minute}`).toBeGreaterThanOrEqual(70);
    }
  },
);

test('the list gets its tenth also beside hundreds of calls at once, whose answers come in any order', async () => {
  const [[, told] = expect.unreachable()] = CONTRACTS;
  let random = 7;
  const latencyMs = () => {
    random = (random * 16_807) % 2_147_483_647;
    return 100 + (random % 1_000);
  };
  const minutes = 2;
  const { pages, calls } = await grantsAMinute(150, told, minutes, latencyMs);
  for (let minute = 0; minute < minutes; minute++) {
    expect(pages[minute], `pages in minute ${minute}`).toBeGreaterThanOrEqual(12);
    expect((pages[minute] ?? 0) + (calls[minute] ?? 0), `all in minute ${minute}`).toBeGreaterThan(110);
  }
});
