import { beforeAll, expect, test } from 'vitest';
import { ServiceError } from '../../src/client/errors.ts';
import type { OwnLogic, OwnLogicContext } from '../../src/sync/own-logic.ts';
import type { InstanceStatus } from '../../src/sync/status-types.ts';
import { install, isSynced, readStatus, waitForStatus } from '../support/install.ts';
import { startTestApp } from '../support/test-app.ts';

/** What the own logic does for a company's contacts. */
const logicOf = new Map<string, OwnLogic>();
const callsOf = new Map<string, number>();
const { app, control, log, session } = await startTestApp({
  ownLogic: async (batch, context) => {
    const company = batch.companyId ?? '';
    if (batch.resource !== 'contacts') return;
    callsOf.set(company, (callsOf.get(company) ?? 0) + 1);
    await logicOf.get(company)?.(batch, context);
  },
});
const browser = session();

interface Installed {
  company: string;
  id: string;
}

async function start(name: string, logic: OwnLogic, contacts = 3): Promise<Installed> {
  const company = await control.addCompany({ name, plan: 'enterprise', contacts, conversations: 1 });
  logicOf.set(company.id, logic);
  return { company: company.id, id: await install(browser, company) };
}

const contactsOf = (status: InstanceStatus) => status.resources.contacts;
const synced = ({ id }: Installed) => waitForStatus(browser, id, isSynced);
const parkedOf = async (one: Installed) => contactsOf(await synced(one))?.set_aside;

/** Refuses what the own logic asks for: the sync itself asks for no tags. */
const refuse = (company: string, path: string, status: number, headers: Record<string, string>) =>
  control.fault({ match: { path, company_id: company }, fault: { status, headers }, times: 1_000 });

/** A POST that may have taken effect is not sent again by itself: so each call of the logic is one request. */
const writes = (service: OwnLogicContext['service']) =>
  service.createChildTag({ tag_id: 'tag_1' }, { name: 'Refund' });

const HOSTILE: Record<string, () => unknown> = {
  'a message that throws': () =>
    Object.defineProperty(new Error('a'), 'message', {
      get: () => {
        throw new Error('m');
      },
    }),
  'a stack that throws': () =>
    Object.defineProperty(new Error('b'), 'stack', {
      get: () => {
        throw new Error('s');
      },
    }),
  'nothing but traps': () => {
    const trap = () => {
      throw new Error('trap');
    };
    return new Proxy(new ServiceError('wait', 'x'), { get: trap, getPrototypeOf: trap, has: trap });
  },
  'traps behind a good class': () =>
    new Proxy(new ServiceError('wait', 'x'), {
      get: () => {
        throw new Error('trap');
      },
    }),
  'a wait that is no number': () =>
    new ServiceError('wait', 'x', { retryAfterMs: Number.NaN, status: 'no' as unknown as number }),
  'a wait without end': () => new ServiceError('wait', 'x', { retryAfterMs: Number.POSITIVE_INFINITY }),
  'a cause that is itself': () => {
    const error = new Error('loop');
    error.cause = error;
    return error;
  },
  'a cause of traps': () => {
    const cause = new Proxy(new Error('x'), {
      get: () => {
        throw new Error('trap');
      },
    });
    return new Error('caused', { cause });
  },
  'a text that cannot be made': () => Object.create(null),
  'an end of the grant that is none': () => new ServiceError('reauthorize', 'mine'),
};

let trouble: Installed;
let shown: InstanceStatus | undefined;
let ownWait: Installed;
let guarded: Installed;
let later: Installed;
const hostile = new Map<string, Installed>();
beforeAll(async () => {
  const throwing = (make: () => unknown): OwnLogic => {
    return async () => {
      throw make();
    };
  };
  ownWait = await start(
    'Waits by itself',
    throwing(() => new ServiceError('wait', 'mine', { retryAfterMs: 20 })),
  );
  trouble = await start('Trouble', async ({ companyId }, { service }) => {
    await refuse(companyId ?? '', '/tags/:tag_id/children', 503, { 'retry-after': '0.1' });
    await writes(service);
  });
  // Between its tries: the longest pause is of seconds.
  const isShown = (status: InstanceStatus) =>
    contactsOf(status)?.state === 'waiting' && Boolean(contactsOf(status)?.error);
  const showing = waitForStatus(browser, trouble.id, isShown).then((status) => {
    shown = status;
  });
  showing.catch(() => undefined);
  for (const [name, make] of Object.entries(HOSTILE)) hostile.set(name, await start(name, throwing(make)));
  const hour = { 'retry-after': '3600', 'x-service-tier': '2' };
  const asksForAnHour: OwnLogic = async ({ companyId }, { service }) => {
    await refuse(companyId ?? '', '/tags', 429, hour);
    await service.listTags();
  };
  guarded = await start('Guarded', asksForAnHour, 330);
  later = await start(
    'Later',
    throwing(() => new ServiceError('wait', 'x', { retryAfterMs: 3_600_000, tier: '2', status: 429 })),
  );
  // Their pauses between tries pass at the same time.
  const all = [ownWait, trouble, guarded, later, ...hostile.values()];
  await Promise.allSettled([showing, ...all.map(synced)]);
});

test('a call that the service answers with trouble and a wait is shown, tried a few times, then parked, and the sync goes on', async () => {
  expect(shown?.resources.contacts).toMatchObject({ state: 'waiting', waiting_for: 'retry', pages: 0 });
  expect(shown?.resources.contacts?.error).toMatch(/own logic failed on a batch of contacts: .*503/);
  expect(contactsOf(await readStatus(browser, trouble.id))).toMatchObject({ stored: 3, error: null });
  expect(await parkedOf(trouble)).toMatchObject({
    parked: 1,
    parked_batches: [{ tries: 5, error: expect.stringContaining('503') }],
  });
  const requests = await control.requests();
  const sent = requests.filter(
    ({ company_id, path }) => company_id === trouble.company && path === '/tags/tag_1/children',
  );
  expect(sent.map(({ status }) => status)).toEqual(Array(5).fill(503));
});

test('a wait that the own logic has made up is bounded by its number', async () => {
  expect(callsOf.get(ownWait.company)).toBe(5);
  expect(await parkedOf(ownWait)).toMatchObject({ parked: 1, parked_batches: [{ tries: 5 }] });
});

test('a guard that asks for an hour parks each page’s batch at once', async () => {
  expect(contactsOf(await readStatus(browser, guarded.id))).toMatchObject({ stored: 330, error: null });
  expect(callsOf.get(guarded.company)).toBe(4);
  expect(await parkedOf(guarded)).toMatchObject({ parked: 4, parked_batches: Array(4).fill({ tries: 1 }) });
});

test.each(Object.keys(HOSTILE))('an error with %s parks its batch like any other', async (name) => {
  const one = hostile.get(name) as Installed;
  expect(await parkedOf(one)).toMatchObject({ parked: 1 });
  expect(contactsOf(await readStatus(browser, one.id))).toMatchObject({ stored: 3, error: null });
  expect((await readStatus(browser, one.id)).status).toBe('active');
  expect(log.lines.filter(({ msg }) => msg === 'a job failed')).toEqual([]);
});

test('a parked batch that has to wait stays parked and holds up no page; a button brings it back before its time', async () => {
  const before = contactsOf(await readStatus(browser, later.id))?.finished_at;
  await app.control.retryParked(later.id);
  const { resources } = await waitForStatus(
    browser,
    later.id,
    (status) => isSynced(status) && contactsOf(status)?.finished_at !== before,
  );
  expect(resources.contacts).toMatchObject({ error: null, pages: 1, set_aside: { parked: 1 } });
  expect(callsOf.get(later.company)).toBe(2);

  // A run before its time leaves it alone.
  await app.control.syncNow(later.id);
  await waitForStatus(
    browser,
    later.id,
    (status) => isSynced(status) && contactsOf(status)?.finished_at !== resources.contacts?.finished_at,
  );
  expect(callsOf.get(later.company)).toBe(2);

  logicOf.delete(later.company);
  await app.control.retryParked(later.id);
  await waitForStatus(browser, later.id, (status) => contactsOf(status)?.set_aside.parked === 0);
});
