import fc from 'fast-check';
import { afterAll, expect, test } from 'vitest';
import { TestSandbox } from '../sandbox/test-sandbox.ts';
import { install } from '../support/install.ts';
import { startTestApp } from '../support/test-app.ts';
import { waitFor } from '../support/wait-for.ts';

/** Four pages of a hundred. */
const CONTACTS = 330;
const PAGES = 4;

/** Called with what is new and changed on each page of contacts, before it is stored. */
let onPage: () => Promise<void> = async () => {};
let deletedSoFar: string[] = [];
const testApp = await startTestApp({
  workers: false,
  sandbox: { windowMs: 500 },
  ownLogic: async ({ resource, deleted }) => {
    if (resource !== 'contacts') return;
    deletedSoFar.push(...deleted.map(({ id }) => String(id)));
    if (deleted.length === 0) await onPage();
  },
});
const { app, control, session } = testApp;
const sandbox = new TestSandbox(testApp.sandbox);
const browser = session();
let workers = app.startWorkers();
/** The end of the workers that a page has begun. */
let restarting: Promise<void> | undefined;
afterAll(() => workers.close());

interface Company {
  id: string;
  api_tokens: { token: string }[];
}

interface Page {
  _results: { id: string }[];
  _pagination: { next: string | null };
}

/** The list as the service has it: each document's text by its id. A refusal that a run did not come to is met here. */
async function atTheService({ api_tokens }: Company): Promise<Map<string, string>> {
  const documents = new Map<string, string>();
  for (let next: string | null = '/contacts?limit=100'; next !== null; ) {
    const token = api_tokens[0]?.token ?? '';
    const { status, body }: { status: number; body: Page } = await sandbox.call<Page>('GET', next, token);
    if (status !== 200) continue;
    for (const document of body._results) documents.set(document.id, JSON.stringify(document));
    next = body._pagination.next;
  }
  return documents;
}

/** The copy, as it can be downloaded; nothing may be in it twice. */
async function inTheCopy(instanceId: string): Promise<Map<string, string>> {
  const { body } = await browser.get(`/instances/${instanceId}/contacts.ndjson`);
  const lines = body.split('\n').filter((line) => line !== '');
  const copy = new Map(lines.map((line) => [String(JSON.parse(line).id), line]));
  expect(copy.size).toBe(lines.length);
  return copy;
}

async function contactsOf(instanceId: string) {
  const resource = (await app.control.status(instanceId))?.resources.contacts;
  if (resource === undefined) throw new Error('no contacts');
  return resource;
}

async function isPaused(instanceId: string): Promise<boolean> {
  return (await app.control.status(instanceId))?.status === 'paused';
}

/** What breaks into a run. */
const anyTrouble = fc.constantFrom('none', 'refused', 'paused', 'restarted');

const anyMove = fc.record({
  /** After which request of the run. */
  nth: fc.integer({ min: 1, max: PAGES + 1 }),
  records: fc.record({
    create: fc.nat({ max: 120 }),
    delete: fc.nat({ max: 120 }),
    change: fc.nat({ max: 120 }),
    reorder: fc.boolean(),
  }),
});

const anyRun = fc.record({
  moves: fc.array(anyMove, { maxLength: 3 }),
  trouble: anyTrouble,
  /** At which request, or page. */
  at: fc.integer({ min: 2, max: PAGES }),
});

type RunPlan = typeof anyRun extends fc.Arbitrary<infer Plan> ? Plan : never;

/** What must be among the runs that are tried, whatever else is drawn: each trouble in the middle of moves. */
const EXAMPLES = (['refused', 'paused', 'restarted'] as const).map((trouble): [RunPlan, RunPlan] => {
  const records = { create: 20, delete: 30, change: 120, reorder: false };
  const run = { moves: [1, 2, 3].map((nth) => ({ nth, records })), trouble, at: 3 };
  return [run, { ...run, moves: [...run.moves, { nth: 4, records }] }];
});

/** Orders what is to happen while the next run pages. */
async function plan({ moves, trouble, at }: RunPlan, company: Company, instanceId: () => string | undefined) {
  const match = { path: '/contacts', company_id: company.id };
  for (const { nth, records } of moves) {
    const fault = { records: { resource: 'contacts' as const, ...records } };
    await control.fault({ match: { ...match, nth }, fault, times: 1 });
  }
  if (trouble === 'refused') {
    await control.fault({ match: { ...match, nth: at }, fault: { status: 403 }, times: 1 });
  }
  let pages = 0;
  onPage = async () => {
    if (++pages !== at) return;
    if (trouble === 'paused') await app.control.pause(instanceId() ?? '');
    // Its signal is aborted at once; nobody waits for its end in here.
    if (trouble === 'restarted') restarting = workers.close();
  };
}

/** Waits until the run is over, or something broke into it and nobody works on it any more. */
async function standsStill(instanceId: string) {
  await waitFor(
    async () => {
      if (restarting !== undefined) return true;
      const { finished_at, state } = await contactsOf(instanceId);
      return finished_at !== null || (state === 'waiting' && (await isPaused(instanceId)));
    },
    { intervalMs: 5, what: 'the end of the run, or of what it can do' },
  );
  await restarting;
  return contactsOf(instanceId);
}

/** Brings a run that something breaks into to its end, and sees that nothing is lost or marked before. */
async function seeThrough(instanceId: string, before: Map<string, string>): Promise<void> {
  for (;;) {
    const { state } = await standsStill(instanceId);
    if (state !== 'idle') {
      expect(deletedSoFar).toEqual([]);
      const copy = await inTheCopy(instanceId);
      expect([...before.keys()].filter((id) => !copy.has(id))).toEqual([]);
    }
    if (restarting !== undefined) workers = app.startWorkers();
    restarting = undefined;
    await app.control.resume(instanceId);
    if (state === 'idle') return;
    if (state === 'failed') await app.control.syncNow(instanceId);
  }
}

/** A run may miss what moved to a page before, and nothing else: what it marked is not at the service. */
async function expectOnlyGone({ moves }: RunPlan, company: Company): Promise<void> {
  if (moves.some(({ records }) => records.reorder)) return;
  const there = await atTheService(company);
  expect(deletedSoFar.filter((id) => there.has(id))).toEqual([]);
}

test('whatever moves while runs page, and whatever breaks into them, after the following run the copy is the service’s', async () => {
  await fc.assert(
    fc.asyncProperty(anyRun, anyRun, async (first, second) => {
      const company = (await control.addCompany({
        name: 'Moving',
        plan: 'starter',
        contacts: CONTACTS,
      })) as unknown as Company & Parameters<typeof install>[1];
      let instanceId: string | undefined;
      deletedSoFar = [];
      await plan(first, company, () => instanceId);
      instanceId = await install(browser, company);
      await seeThrough(instanceId, new Map());
      await expectOnlyGone(first, company);

      deletedSoFar = [];
      await control.clearFaults();
      await plan(second, company, () => instanceId);
      const before = await inTheCopy(instanceId);
      await app.control.syncNow(instanceId);
      await seeThrough(instanceId, before);
      await expectOnlyGone(second, company);

      onPage = async () => {};
      await control.clearFaults();
      await app.control.syncNow(instanceId);
      expect(await standsStill(instanceId)).toMatchObject({ state: 'idle', error: null });
      expect(await inTheCopy(instanceId)).toEqual(await atTheService(company));
    }),
    { examples: EXAMPLES, numRuns: 8, endOnFailure: true },
  );
});
