import { randomInt } from 'node:crypto';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { JournalRow } from '../../src/sandbox/types.ts';
import type { TestProcess } from '../support/spawn-entry.ts';
import { waitFor } from '../support/wait-for.ts';
import { MESSAGES, type WriteTargets } from './handlers/write-to-service.ts';
import { expectLimitHeld } from './support/lists.ts';
import type { SandboxCompany } from './support/sandbox-control.ts';
import { createWorld } from './support/world.ts';

const WINDOW_MS = 2_000;
const CONVERSATIONS = 460;
const CONTACTS = 20;
/** Of each conversation, in their order. */
const STEPS = ['POST tags', 'POST messages', 'PUT assignee', 'PATCH '];
/** Four to each conversation, and the messages: 2,000. */
const WRITES = CONVERSATIONS * STEPS.length + CONTACTS * MESSAGES;
const KILLS = 15;
/** The leases of killed workers, the pauses after them, and a sync. */
const SETTLED_MS = 240_000;

interface OutboxFacts {
  pending: number;
  sending: number;
  refused: number;
  unknown: number;
}

describe('43. What a handler puts into the outbox is sent to the service at least once, in order for each path, under limit and guards; what must not be repeated is sent once or shown as unknown, through SIGKILLs at any moment.', async () => {
  const world = await createWorld({ sandbox: { windowMs: WINDOW_MS, latencyMs: 20 } });
  const { control } = world;
  const company: SandboxCompany & Partial<Record<'channels' | 'tags', string[]>> = await control.addCompany({
    name: 'Written to',
    plan: 'enterprise',
    contacts: CONTACTS,
    conversations: CONVERSATIONS,
  });
  const targets: WriteTargets = {
    tag: company.tags?.[0] ?? '',
    teammate: company.teammates[0]?.id ?? '',
    channel: company.channels?.[1] ?? '',
  };
  const handler = join(import.meta.dirname, 'handlers/write-to-service.ts');
  const options = { handler, env: { TEST_TARGETS: JSON.stringify(targets) } };
  await world.startWeb(options);

  /** Orders a fault. @returns its id: `drop: 'before'` and a status leave the service as it was */
  const fault = async (method: string, path: string, effect: object, times: number) => {
    const match = { method, path: `/conversations/:conversation_id${path}`, company_id: company.id };
    return (await control.fault({ match, fault: effect, times })).id;
  };

  it('2,000 writes, fifteen killed workers, lost answers and failing routes', {
    timeout: 600_000,
  }, async () => {
    const uncounted = [
      await fault('POST', '/messages', { drop: 'before' }, 8),
      await fault('PUT', '/assignee', { drop: 'before' }, 8),
    ];
    const without = new Set([
      ...uncounted,
      await fault('POST', '/messages', { status: 500 }, 8),
      await fault('POST', '/tags', { status: 503 }, 8),
    ]);
    await fault('POST', '/messages', { drop: 'after' }, 8);
    await fault('POST', '/tags', { drop: 'after' }, 8);
    await fault('PATCH', '', { drop: 'after' }, 8);
    const browser = world.browser();
    const id = await world.install(browser, company);
    const journal = async () => (await world.counted(company)).filter(({ method }) => method !== 'GET');
    const outbox = async () =>
      (await browser.get(`/instances/${id}/status`)).json<{ outbox: OutboxFacts }>().outbox;

    const workers: TestProcess[] = await Promise.all([
      world.startWorker(options),
      world.startWorker(options),
    ]);
    const moments = Array.from({ length: KILLS }, () => randomInt(WRITES - 300)).sort(
      (one, other) => one - other,
    );
    const starting: Promise<TestProcess>[] = [];
    for (const moment of moments) {
      await waitFor(async () => (await journal()).length >= moment, `write ${moment}`, SETTLED_MS);
      if (workers.length === 0) workers.push(...(await Promise.all(starting.splice(0))));
      const [victim] = workers.splice(randomInt(workers.length), 1);
      await victim?.stop('SIGKILL');
      starting.push(world.startWorker(options));
    }
    await Promise.all(starting);

    // What is left waits for a person: each unknown reply holds up the two writes behind it.
    const settled = await waitFor(
      async () => {
        const now = await outbox();
        const isQuiet =
          now.sending === 0 && now.pending === 2 * now.unknown && (await journal()).length >= WRITES / 2;
        if (!isQuiet) throw new Error(JSON.stringify(now));
        return now;
      },
      'the outbox to be settled',
      SETTLED_MS,
    );
    expect(settled.refused).toBe(0);
    expect(settled.unknown).toBeGreaterThanOrEqual(24);

    const page = (await browser.get(`/instances/${id}/problems`)).body;
    const keys = [...new Set([...page.matchAll(/name="id" value="([^"]+)"/g)].map(([, key = '']) => key))];
    expect(keys.length).toBe(settled.unknown);
    const unknown = await effectsOf(await journal(), without);
    for (const key of keys) {
      expect(key).toMatch(/^reply:/);
      const hasArrived = unknown.some(([object, step]) => key === `reply:${object}` && step === 1);
      const decision = hasArrived ? 'end-write' : 'send-again';
      expect((await browser.post(`/instances/${id}/${decision}`, { id: key })).status).toBe(200);
    }
    await waitFor(
      async () => {
        const { pending, sending, unknown: left } = await outbox();
        return pending + sending + left === 0;
      },
      'all to be written',
      SETTLED_MS,
    );

    const requests = await world.counted(company);
    // What never reached the service neither counts in a window nor begins one.
    const reached = requests.filter(({ fault }) => fault === null || !uncounted.includes(fault));
    expectLimitHeld(reached, WINDOW_MS);
    expect(requests.filter(({ status }) => status === 429)).toEqual([]);
    const effects = await effectsOf(await journal(), without);
    const byObject = Map.groupBy(effects, ([object]) => object);
    const conversations = [...byObject.values()].filter(([first]) => (first?.[1] ?? 0) >= 0);
    expect(conversations.length).toBe(CONVERSATIONS);
    for (const steps of conversations) {
      const order = steps.map(([, step]) => step);
      expect(order).toEqual(order.toSorted());
      expect([...new Set(order)]).toEqual([0, 1, 2, 3]);
      expect(order.filter((step) => step === 1)).toEqual([1]);
    }
    const messages = new Set(effects.filter(([, step]) => step < 0).map(([object]) => object));
    expect(messages.size).toBe(CONTACTS * MESSAGES);
  });
});

/** What took effect at the service, in order: which conversation, which step; or which message of the channel, and -1. */
function effectsOf(
  journal: readonly JournalRow[],
  without: ReadonlySet<string>,
): [object: string, step: number][] {
  const taken = journal.filter(({ fault }) => fault === null || !without.has(fault));
  return taken.map(({ method, path }) => {
    const [, conversation = '', rest = ''] = /^\/conversations\/([^/]+)\/?(.*)$/.exec(path) ?? [];
    return conversation === '' ? [path, -1] : [conversation, STEPS.indexOf(`${method} ${rest}`)];
  });
}
