import { describe, expect, it } from 'vitest';
import { REQUEST_TIMEOUT_MS } from '../../../src/service/http.ts';
import { RESET, rate } from './rate.ts';
import { virtualBudget } from './virtual-budget.ts';

const WINDOW_MS = 60_000;

/** As many requests as the budget grants in a window's time from now on, answered with what `answerTo` says. */
async function requestsInAWindow(
  budget: ReturnType<typeof virtualBudget>,
  answerTo: (request: number, atMs: number) => ReturnType<typeof budget.answer>,
): Promise<number> {
  let [granted, atMs] = [0, 0];
  while (atMs < WINDOW_MS) {
    const { permit, ...rest } = await budget.budget.acquire(budget.company, '/contacts');
    const stepMs = 'waitMs' in rest ? rest.waitMs : 20;
    budget.pass(stepMs);
    atMs += stepMs;
    if (permit === undefined) continue;
    granted++;
    await budget.budget.settle(permit, answerTo(granted, atMs));
    budget.pass(1);
    atMs++;
  }
  return granted;
}

/** What a service says that counts our requests in windows of a length, of which the first is named so. */
function fallingRest(limit: number, lengthMs: number, firstReset = RESET) {
  let [window, used] = [0, 0];
  return (_: number, atMs: number) => {
    const now = Math.floor(atMs / lengthMs);
    used = now === window ? used + 1 : 1;
    window = now;
    const [endsInMs, resetMs] = [lengthMs - (atMs % lengthMs), firstReset + now * lengthMs];
    return { answer: { rate: rate(limit - used, { limit, endsInMs, resetMs }) } };
  };
}

describe('whatever windows the service names', () => {
  it('two that take turns, as of two limiters, are one: no more than the limit in a minute', async () => {
    const budget = virtualBudget();
    const granted = await requestsInAWindow(budget, (request, atMs) => {
      const reset = RESET + (request % 2) * 20_000;
      return budget.answer(120 - Math.ceil(request / 2), Math.max(0, reset - RESET + 40_000 - atMs), reset);
    });
    expect(granted).toBeGreaterThan(110);
    expect(granted).toBeLessThanOrEqual(120);
  });

  it('those of two nodes in turns, each of which counts what it sees itself: no more than the limit in a window of both', async () => {
    const { budget, company, pass, answer } = virtualBudget();
    const nodes = [0, 7_000].map((longerMs) => ({ lengthMs: WINDOW_MS + longerMs, endMs: 0, seen: 0 }));
    // What the service refuses by: of both, from the first request after the end of the one before.
    const windows: number[] = [];
    let endMs = 0;
    for (let atMs = 0, request = 0; atMs < 5 * WINDOW_MS; ) {
      const { permit, ...rest } = await budget.acquire(company, '/contacts');
      const stepMs = 'waitMs' in rest ? rest.waitMs : 20;
      pass(stepMs);
      atMs += stepMs;
      if (permit === undefined) continue;
      if (atMs >= endMs) {
        endMs = atMs + WINDOW_MS;
        windows.push(0);
      }
      windows.push((windows.pop() ?? 0) + 1);
      const node = nodes[request++ % 2] ?? expect.unreachable();
      if (atMs >= node.endMs) Object.assign(node, { endMs: atMs + node.lengthMs, seen: 0 });
      node.seen++;
      await budget.settle(permit, answer(120 - node.seen, node.endMs - atMs, RESET + node.endMs));
    }
    expect(windows.length).toBeGreaterThan(3);
    expect(Math.max(...windows)).toBeLessThanOrEqual(120);
    expect(Math.max(...windows)).toBeGreaterThan(100);
  });

  it('one whose end moves on with every answer and whose rest does not fall: no more than the limit in a minute', async () => {
    const budget = virtualBudget();
    const granted = await requestsInAWindow(budget, (_, atMs) =>
      budget.answer(119, WINDOW_MS, RESET + atMs * 100),
    );
    expect(granted).toBe(120);
  });

  it.each([
    { what: 'one by one, half as fast as we', everyMs: 42, burst: 1 },
    { what: 'now and then many at once', everyMs: 420, burst: 10 },
    { what: 'as fast as we, a few at once', everyMs: 84, burst: 5 },
  ])(
    'those of a limit of the customer’s own, which others use $what: no more than ours in a minute',
    async ({ everyMs, burst }) => {
      const budget = virtualBudget();
      const turnsAtMs = 1_500;
      const granted = await requestsInAWindow(budget, (_, atMs) => {
        const [since, reset] =
          atMs < turnsAtMs ? [turnsAtMs - WINDOW_MS, RESET] : [turnsAtMs, RESET + WINDOW_MS];
        const used = Math.floor((atMs - Math.max(0, since)) / everyMs) * burst;
        return budget.answer(Math.max(0, 120 - used), since + WINDOW_MS - atMs, reset);
      });
      expect(granted).toBeGreaterThan(110);
      expect(granted).toBeLessThanOrEqual(120);
    },
  );

  it('none at all: no more than the limit in a minute, wherever that begins', async () => {
    const budget = virtualBudget();
    const bare = { answer: { rate: undefined } };
    await budget.request(bare);
    budget.pass(50_000);
    const granted = await requestsInAWindow(budget, () => bare);
    expect(granted).toBeGreaterThan(110);
    expect(granted).toBeLessThanOrEqual(120);
  });

  it('none, but a limit below the contract’s: no more than that limit in any minute', async () => {
    const { budget, company, pass } = virtualBudget();
    const limit = 50;
    const sentAtMs: number[] = [];
    let atMs = 0;
    const later = (ms: number) => {
      pass(ms);
      atMs += ms;
    };
    /** As many as are granted one after the other, until the first that has to wait. */
    const burst = async (most: number) => {
      for (let sent = 0; sent < most; sent++) {
        const { permit } = await budget.acquire(company, '/contacts');
        if (permit === undefined) return;
        later(20);
        sentAtMs.push(atMs);
        await budget.settle(permit, { answer: { rate: undefined, toldLimit: limit } });
      }
    };
    // The window that the first answer opens ends soon after the burst: the next one begins on our own count alone.
    await burst(1);
    later(50_000);
    await burst(200);
    later(10_000);
    await burst(200);
    later(1_000);
    await burst(200);
    const inMinuteFrom = (start: number) =>
      sentAtMs.filter((sent) => sent >= start && sent < start + WINDOW_MS).length;
    const most = Math.max(...sentAtMs.map(inMinuteFrom));
    expect(most).toBeGreaterThan(40);
    expect(most).toBeLessThanOrEqual(limit);
  });

  it('one that is still named after the end that was told, and whose rest does not fall: the limit in a minute, and one that asks whether it is over', async () => {
    const budget = virtualBudget();
    const granted = await requestsInAWindow(budget, (_, atMs) =>
      budget.answer(119, atMs < 1_000 ? 1_000 - atMs : 300),
    );
    expect(granted).toBeGreaterThan(100);
    expect(granted).toBeLessThanOrEqual(121);
  });

  it.each([0, 1, 2, 3, 5, 10, 20, 40])(
    'one whose end is always %d s ahead, and whose rest does not fall: no more than the limit in a minute',
    async (seconds) => {
      const budget = virtualBudget();
      const granted = await requestsInAWindow(budget, (_, atMs) =>
        budget.answer(119, seconds * 1_000, RESET + Math.ceil(atMs / 1_000) * 1_000),
      );
      expect(granted).toBeGreaterThan(100);
      expect(granted).toBeLessThanOrEqual(120);
    },
  );

  it('short ones whose rest does not fall: no more than the limit in a minute', async () => {
    const budget = virtualBudget();
    const granted = await requestsInAWindow(budget, (_, atMs) =>
      budget.answer(119, 10_000 - (atMs % 10_000), RESET + Math.floor(atMs / 10_000) * 10_000),
    );
    expect(granted).toBeGreaterThan(100);
    expect(granted).toBeLessThanOrEqual(120);
  });

  it('short ones whose rest falls: the limit in each', async () => {
    const granted = await requestsInAWindow(virtualBudget(), fallingRest(120, 10_000));
    expect(granted).toBeGreaterThan(600);
  });

  it('short ones whose rest falls after it did not: the limit in each, when that has shown for a while', async () => {
    const budget = virtualBudget();
    const still = (_: number, atMs: number) => ({
      answer: { rate: rate(44, { limit: 45, endsInMs: WINDOW_MS - atMs }) },
    });
    expect(await requestsInAWindow(budget, still)).toBeLessThanOrEqual(45);
    const granted = await requestsInAWindow(budget, fallingRest(45, 10_000, RESET + 2 * WINDOW_MS));
    expect(granted).toBeGreaterThan(150);
  });

  it('the next one counts from nothing, although it came two seconds before the end that was told', async () => {
    const { budget, company, pass, request, answer } = virtualBudget();
    await request(answer(70));
    pass(28_000);
    await request(answer(119, WINDOW_MS, RESET + WINDOW_MS));
    expect((await budget.read(company)).remaining).toBe(119);
    for (let left = 118; left >= 0; left--) await request(answer(left, 30_000, RESET + WINDOW_MS));
  });
});

describe('a window that the answer to a request without a permit tells of first', () => {
  it('is not taken for another limit’s', async () => {
    const { budget, company, pass, request, answer } = virtualBudget();
    for (let left = 119; left >= 10; left--) await request(answer(left));
    pass(30_000);
    await budget.observe(company, rate(119, { resetMs: RESET + WINDOW_MS, endsInMs: WINDOW_MS }));
    for (let left = 118; left >= 0; left--) await request(answer(left, 50_000, RESET + WINDOW_MS));
  });
});

describe('a window that the service still names after the end that it told', () => {
  const SKEW_MS = 25_000;
  const reset = (window: number) => RESET + window * WINDOW_MS;

  /** Uses up a window whose end is told too early, from its beginning; answers how long the budget waits then. */
  async function useUp({ request, refusal, answer, pass }: ReturnType<typeof virtualBudget>, window: number) {
    const told = WINDOW_MS - SKEW_MS;
    await request(answer(1, told, reset(window)));
    await request(answer(0, told - 10, reset(window)));
    const { waitMs } = await refusal();
    pass(waitMs);
    return waitMs;
  }

  const refused = ({ answer }: ReturnType<typeof virtualBudget>, window: number, forMs: number) => ({
    ...answer(0, 0, reset(window)),
    block: { forMs, of: 'company' as const },
  });

  it('costs a refusal in two windows; from then on its end is where it is', async () => {
    const budget = virtualBudget();
    for (const window of [0, 1]) {
      expect(await useUp(budget, window)).toBeLessThan(WINDOW_MS - SKEW_MS);
      await budget.request(refused(budget, window, SKEW_MS));
      expect((await budget.refusal()).waitMs).toBe(SKEW_MS);
      budget.pass(SKEW_MS);
    }
    const waited = await useUp(budget, 2);
    expect(waited).toBeGreaterThanOrEqual(WINDOW_MS - 100);
    expect(waited).toBeLessThanOrEqual(WINDOW_MS + 1_000);
  });

  it('is asked for by one at a time from the first time on', async () => {
    const budget = virtualBudget();
    await useUp(budget, 0);
    const together = [await budget.acquire(), await budget.acquire()];
    for (const permit of together) await budget.budget.settle(permit, refused(budget, 0, SKEW_MS));
    budget.pass(SKEW_MS);
    await useUp(budget, 1);
    await budget.acquire();
    expect((await budget.refusal()).why).toBe('probe');
  });

  it('is an accident when it comes once', async () => {
    const budget = virtualBudget();
    await useUp(budget, 0);
    await budget.request(refused(budget, 0, SKEW_MS));
    budget.pass(10 * WINDOW_MS);
    await useUp(budget, 20);
    await budget.request(refused(budget, 20, SKEW_MS));
    budget.pass(SKEW_MS);
    expect(await useUp(budget, 21)).toBeLessThan(WINDOW_MS - SKEW_MS);
  });
});

it('an answer that is read after the lease of its permit, by a process that stood still, tells of no window', async () => {
  const budget = virtualBudget();
  await budget.request(budget.answer(100, 20_000));
  const permit = await budget.acquire();
  budget.pass(21_000);
  await budget.request(budget.answer(50, WINDOW_MS, RESET + WINDOW_MS));
  // For longer than a lease: the request may have gone at any time before the window that is known.
  budget.pass(40_000);
  const old = { ...permit, goodUntil: performance.now() - REQUEST_TIMEOUT_MS - 1 };
  await budget.budget.settle(old, budget.answer(99, 20_000));
  expect((await budget.budget.read(budget.company)).remaining).toBe(49);
});
