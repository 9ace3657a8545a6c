import { afterAll, expect, test } from 'vitest';
import { openDatabase } from '../../src/store/open-database.ts';
import { downloadIds, install, isSynced, waitForStatus } from '../support/install.ts';
import { startTestApp } from '../support/test-app.ts';
import { waitFor } from '../support/wait-for.ts';
import { goodHeaders, type HostileTurn, sendPage, startHostileService } from './hostile-service.ts';

const HOUR_MS = 60 * 60_000;
const PAGES = 5;

const hostile = await startHostileService();
const { config, control, log, sandbox, session } = await startTestApp({
  env: { SERVICE_API_URL: `${hostile.origin}/api` },
});
hostile.lead(sandbox.origin);
const db = await openDatabase(config.databaseUrl);
afterAll(() => db.destroy());

/** What the address of a page answers that is no good any more. */
const STALE: [string, (turn: HostileTurn) => void][] = [
  ['names itself', ({ url, response }) => sendPage(response, ['c4', 'c5'], url.href)],
  [
    'is trouble',
    ({ response }) =>
      response.writeHead(500, goodHeaders()).end('{"_error":{"message":"unknown page token"}}'),
  ],
  [
    'does not say what comes next',
    ({ response }) => response.writeHead(200, goodHeaders()).end('{"_results":[]}'),
  ],
];

/** A company whose list is whole, but the pages of its first listing are stale from the third on; installed, and failed. */
async function failedCompany(respond: (turn: HostileTurn) => void, before: { stuck_since?: number } = {}) {
  const company = await control.addCompany({
    name: 'Stale',
    plan: 'starter',
    contacts: 0,
    conversations: 0,
  });
  let listings = 0;
  hostile.answer(company.id, (turn) => {
    const token = turn.url.searchParams.get('page_token');
    if (token === null) listings++;
    const [listing = 1, page = 0] = (token ?? `${listings}.0`).split('.').map(Number);
    if (listing === 1 && page >= 2) return respond(turn);
    const next = page + 1 < PAGES ? `${hostile.origin}/api/contacts?page_token=${listing}.${page + 1}` : null;
    sendPage(turn.response, [`c${page * 2}`, `c${page * 2 + 1}`], next);
  });
  const browser = session();
  const id = await install(browser, company);
  await hurry(id, before);
  const status = await waitForStatus(browser, id, ({ resources }) => resources.contacts?.state === 'failed');
  return { browser, id, status, listings: () => listings };
}

function runOf(id: string) {
  return db.updateTable('runs').where('instance_id', '=', id).where('resource', '=', 'contacts');
}

/** Waits until a page has failed, and then it is as if it had been tried for half a minute already, or for longer. */
async function hurry(id: string, before: { stuck_since?: number }): Promise<void> {
  await waitFor(
    async () => {
      const hurried = await runOf(id)
        .set({ attempt: 6, ...before })
        .where('waiting_for', '=', 'retry')
        .executeTakeFirst();
      return hurried.numUpdatedRows > 0n || undefined;
    },
    { intervalMs: 20, what: 'a page that has failed' },
  );
}

const everyId = Array.from({ length: PAGES * 2 }, (_, n) => `c${n}`);

test.concurrent.each(STALE)(
  'a page that %s for good is left by “Sync now”: the list is read anew, and nothing is taken for deleted',
  async (_what, respond) => {
    const { browser, id, status, listings } = await failedCompany(respond);
    expect(status.resources.contacts).toMatchObject({ pages: 2, stored: 4 });
    expect(status.resources.contacts?.error).toContain('Tried 7 times; it will be tried again by itself.');
    expect(listings()).toBe(1);
    const dashboard = await browser.get(`/instances/${id}`);
    await browser.submit(dashboard.form(`/instances/${id}/sync`));
    await waitForStatus(browser, id, isSynced);
    expect(listings()).toBe(2);
    expect(await downloadIds(browser, id, 'contacts')).toEqual(everyId);
  },
);

test.concurrent.each(STALE)(
  'a page that %s for good is left by itself after an hour, and the dashboard and the log say so',
  async (_what, respond) => {
    const hourAgo = Date.now() - HOUR_MS;
    const { browser, id, status: left, listings } = await failedCompany(respond, { stuck_since: hourAgo });
    expect(left.resources.contacts).toMatchObject({ deleted: 0, stored: 4 });
    expect(left.resources.contacts?.error).toContain(
      'No page has come from there for 45 minutes: the list is read again from its first page, by itself.',
    );
    const told = log.lines.filter((line) => line.instanceId === id && /will begin anew/.test(line.msg ?? ''));
    expect(told.length).toBe(1);
    expect(listings()).toBe(1);
    await runOf(id).set({ finished_at: hourAgo }).execute();
    await waitForStatus(browser, id, isSynced);
    expect(listings()).toBe(2);
    expect(await downloadIds(browser, id, 'contacts')).toEqual(everyId);
  },
  120_000,
);
