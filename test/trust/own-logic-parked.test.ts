import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, expect, test } from 'vitest';
import type { OwnLogic, RecordBatch } from '../../src/sync/own-logic.ts';
import type { SandboxCompany } from '../acceptance/support/sandbox-control.ts';
import { downloadIds, install, isSynced, readStatus, waitForStatus } from '../support/install.ts';
import { startTestApp } from '../support/test-app.ts';

/** What the own logic does for a company; for others it takes everything. */
const logicOf = new Map<string, OwnLogic>();
const calls: { batch: RecordBatch; took: boolean }[] = [];
const { app, control, log, session } = await startTestApp({
  env: { OWN_LOGIC_TIMEOUT_SECONDS: '0.3' },
  ownLogic: async (batch, context) => {
    const call = { batch, took: false };
    calls.push(call);
    await logicOf.get(batch.companyId ?? '')?.(batch, context);
    call.took = true;
  },
});
const browser = session();

const ids = (documents: RecordBatch['created']) => documents.map(({ id }) => String(id));
const callsOf = ({ id }: SandboxCompany) =>
  calls.filter(({ batch }) => batch.companyId === id && batch.resource === 'contacts');
/** Ids of all that the own logic was told as new or changed, and took. */
const taken = (company: SandboxCompany) =>
  new Set(
    callsOf(company).flatMap(({ batch, took }) =>
      took ? [...ids(batch.created), ...ids(batch.changed)] : [],
    ),
  );

async function start(contacts: number, logic: OwnLogic) {
  const company = await control.addCompany({ name: 'Parked', plan: 'starter', contacts, conversations: 20 });
  logicOf.set(company.id, logic);
  return { company, id: await install(browser, company) };
}

const synced = (id: string) => waitForStatus(browser, id, isSynced);

async function syncAgain(id: string) {
  const last = (await readStatus(browser, id)).resources.contacts?.finished_at;
  await app.control.syncNow(id);
  return waitForStatus(
    browser,
    id,
    (status) => isSynced(status) && status.resources.contacts?.finished_at !== last,
  );
}

async function press(id: string, button: string) {
  const dashboard = await browser.get(`/instances/${id}`);
  return browser.submit(dashboard.form(`/instances/${id}/${button}`));
}

const throws: OwnLogic = async () => {
  throw new Error('the warehouse is closed');
};
/** Does not heed the signal. */
const hangs: OwnLogic = () => new Promise(() => {});

/** Fails on the second page alone, whatever is on it. */
let second: string[] = [];
const failsOnOnePage: OwnLogic = async ({ resource, created, changed }) => {
  if (resource !== 'contacts') return;
  const told = callsOf(poisoned.company);
  if (told.length === 2) second = ids(created);
  if ([...created, ...changed].some(({ id }) => second.includes(String(id)))) {
    throw new Error('one of these breaks it');
  }
};

// Their pauses between tries pass at the same time.
let poisoned: Awaited<ReturnType<typeof start>>;
let hanging: Awaited<ReturnType<typeof start>>;
let deleting: Awaited<ReturnType<typeof start>>;
beforeAll(async () => {
  poisoned = {
    company: await control.addCompany({ name: 'Poisoned', plan: 'starter', contacts: 330 }),
    id: '',
  };
  logicOf.set(poisoned.company.id, failsOnOnePage);
  poisoned.id = await install(browser, poisoned.company);
  hanging = await start(330, hangs);
  deleting = await start(90, async () => {});
  await synced(deleting.id);
  logicOf.set(deleting.company.id, throws);
  const match = { path: '/contacts', company_id: deleting.company.id };
  await control.fault({ match, fault: { status: 200, body: { _results: [], _pagination: { next: null } } } });
  await Promise.all([synced(poisoned.id), synced(hanging.id), syncAgain(deleting.id)]);
});

test('a batch that the own logic throws on is tried a few times, then parked and shown, and the sync goes on', async () => {
  const { company, id } = poisoned;
  const { resources } = await readStatus(browser, id);
  expect(resources.contacts).toMatchObject({ records: 330, stored: 330, error: null });
  expect(new Set(await downloadIds(browser, id, 'contacts')).size).toBe(330);
  expect(callsOf(company).filter(({ took }) => !took).length).toBe(5);
  expect(callsOf(company).filter(({ took }) => took).length).toBe(3);
  expect(resources.contacts?.set_aside).toMatchObject({
    parked: 1,
    parked_batches: [
      {
        records: 100,
        first_id: second[0],
        tries: 5,
        error: "The app's own logic failed on a batch of contacts: one of these breaks it",
      },
    ],
  });
  const { body } = await browser.get(`/instances/${id}`);
  for (const words of ['Needs a look', 'one of these breaks it', 'Tried 5 times', `from ${second[0]} on`]) {
    expect(body).toContain(words);
  }
  const parked = log.lines.filter(({ msg }) => msg === 'the own logic does not take a batch: it is parked');
  expect(parked.filter(({ instanceId }) => instanceId === id)).toMatchObject([{ level: 'warn', tries: 5 }]);
});

test('each later run tries it once more, the button at once; what it takes is off the page, and nothing was left untold', async () => {
  const { company, id } = poisoned;
  const again = await syncAgain(id);
  expect(again.resources.contacts?.set_aside).toMatchObject({ parked: 1, parked_batches: [{ tries: 6 }] });
  expect(callsOf(company).length).toBe(9);

  logicOf.delete(company.id);
  expect((await press(id, 'retry')).body).toContain('What is still parked is tried again now.');
  const status = await waitForStatus(browser, id, (now) => now.resources.contacts?.set_aside.parked === 0);
  expect(taken(company)).toEqual(new Set(await downloadIds(browser, id, 'contacts')));
  expect(callsOf(company).at(-1)?.batch).toMatchObject({ changed: [], deleted: [] });
  expect(status.resources.contacts?.error).toBeNull();
  await synced(id);
  const { body } = await browser.get(`/instances/${id}`);
  expect(body).toMatch(/class="card set-aside"[^>]* hidden/);
  expect(body).not.toContain('Needs a look');
});

test('own logic that hangs is ended by its time limit: its batches are parked, and told when it works again', async () => {
  const { company, id } = hanging;
  const { resources } = await readStatus(browser, id);
  expect(resources.contacts).toMatchObject({ records: 330, stored: 330, set_aside: { parked: 4 } });
  expect(resources.conversations).toMatchObject({ stored: 20, set_aside: { parked: 1 } });
  expect(resources.contacts?.set_aside.parked_batches[0]).toMatchObject({ tries: 2 });
  expect(resources.contacts?.set_aside.parked_batches[0]?.error).toContain('OWN_LOGIC_TIMEOUT_SECONDS');
  expect(taken(company).size).toBe(0);

  // It works again, and the company is paused while the first of them is told: the others wait.
  logicOf.set(company.id, async ({ resource }) => {
    if (resource === 'contacts' && taken(company).size === 0) await app.control.pause(id);
  });
  await app.control.syncNow(id);
  const { resources: paused } = await waitForStatus(
    browser,
    id,
    (now) =>
      now.status === 'paused' && Object.values(now.resources).every(({ state }) => state !== 'running'),
  );
  expect(paused.contacts).toMatchObject({ state: 'waiting', pages: 0, set_aside: { parked: 3 } });
  await press(id, 'resume');
  const { resources: after } = await synced(id);
  expect(after.contacts?.set_aside.parked).toBe(0);
  expect(after.conversations?.set_aside.parked).toBe(0);
  expect(taken(company)).toEqual(new Set(await downloadIds(browser, id, 'contacts')));
});

test('deletions that the own logic does not take are parked, too; what came back since is not told as deleted', async () => {
  const { company, id } = deleting;
  const { resources } = await readStatus(browser, id);
  expect(resources.contacts).toMatchObject({ deleted: 90, stored: 0, set_aside: { parked: 1 } });
  expect(resources.contacts?.set_aside.parked_batches[0]).toMatchObject({ records: 90, tries: 5 });

  logicOf.delete(company.id);
  const before = callsOf(company).length;
  // The service has them all again.
  const { resources: after } = await syncAgain(id);
  expect(after.contacts).toMatchObject({ stored: 90, set_aside: { parked: 0 } });
  const told = callsOf(company).slice(before);
  expect(told.flatMap(({ batch }) => ids(batch.deleted)).length).toBe(90);
  const lastOf = new Map<string, string>();
  for (const { batch } of told) {
    for (const of of ids(batch.deleted)) lastOf.set(of, 'deleted');
    for (const of of ids(batch.created)) lastOf.set(of, 'created');
  }
  expect(new Set(lastOf.values())).toEqual(new Set(['created']));
});

test('its signal is aborted when its time is over, and it can call the service no more; waits for the service do not count', async () => {
  const seen: unknown[] = [];
  const { id } = await start(3, async ({ resource, companyId }, { service, signal }) => {
    if (resource !== 'contacts' || seen.length > 0) return;
    // Longer than it may take itself.
    const match = { path: '/tags', company_id: companyId ?? '' };
    await control.fault({ match, fault: { delay_ms: 500 }, times: 1 });
    seen.push(Array.isArray((await service.listTags())._results));
    await sleep(10_000, undefined, { signal }).catch(() => undefined);
    seen.push(signal.reason instanceof Error && signal.reason.name);
    seen.push(await service.listTags().catch((error: Error) => error.name));
  });
  const { resources } = await synced(id);
  expect(resources.contacts).toMatchObject({ stored: 3, set_aside: { parked: 0 } });
  expect(seen).toEqual([true, 'OwnLogicTimeout', 'OwnLogicTimeout']);
});
