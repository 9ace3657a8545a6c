import { expect, test } from 'vitest';
import { downloadIds, install, isSynced, readStatus, waitForStatus } from '../support/install.ts';
import { startTestApp } from '../support/test-app.ts';

const CONTACTS = 150;

/** Twenty pages. */
const CONVERSATIONS = 2_000;

/** No wait is believed to be longer. */
const LONGEST_WAIT_MS = 15 * 60_000;

/** As often as a page may fail before its run does. */
const OFTEN = 7;

/** As often as a refusal that does not pass by itself is waited out. */
const PATIENTLY = 6;

const { control, log, session } = await startTestApp({ sandbox: { windowMs: 1_000 } });

/** The header's value; a date is given as "date+2", in seconds from the service's now. */
async function headerOf(said: string): Promise<string> {
  const seconds = /^date(.+)$/.exec(said)?.[1];
  if (seconds === undefined) return said;
  return new Date((await control.state()).now + Number(seconds) * 1_000).toUTCString();
}

/** A company whose first requests for contacts are refused so; installed. */
async function refusedCompany(status: number, said: string | undefined, times: number, conversations = 0) {
  const company = await control.addCompany({
    name: 'Patient',
    plan: 'starter',
    contacts: CONTACTS,
    conversations,
  });
  const header = said === undefined ? undefined : await headerOf(said);
  const headers = header === undefined ? {} : { 'retry-after': header };
  const match = { path: '/contacts', company_id: company.id };
  await control.fault({ match, fault: { status, headers }, times });
  const browser = session();
  return { company, browser, header, id: await install(browser, company) };
}

/** What was asked for contacts of a company, oldest first. */
async function askedFor(companyId: string) {
  const rows = await control.requests();
  return rows.filter(({ company_id, path }) => company_id === companyId && path === '/contacts');
}

function failuresOf(instanceId: string) {
  return log.lines.filter((line) => line.instanceId === instanceId && /failed/.test(line.msg ?? ''));
}

test.concurrent.each<[number, string, string | undefined, number, number]>([
  ...[429, 503].flatMap((status): [number, string, string | undefined, number, number][] => [
    [status, 'whole seconds', '1', 1, 1_000],
    [status, 'a decimal', '0.25', 2, 250],
    [status, 'a date', 'date+2', 1, 50],
    [status, 'a date that is over', 'date-3600', 2, 50],
    [status, 'nothing', '0', OFTEN, 50],
    [status, 'less than nothing', '-30', 2, 50],
    [status, 'two values', '1, 0', 1, 1_000],
    [status, 'seconds with their unit', '1s', 1, 1_000],
  ]),
  ...[307, 403, 409, 423].flatMap((status): [number, string, string | undefined, number, number][] => [
    [status, 'whole seconds', '1', 1, 1_000],
    [status, 'nothing', '0', PATIENTLY, 50],
  ]),
  [429, 'no value at all', undefined, 1, 50],
  [429, 'words', 'soon', 1, 50],
])(
  '%d with retry-after of %s is waited for, and uses up no try',
  async (status, _what, said, times, leastMs) => {
    const { browser, company, header, id } = await refusedCompany(status, said, times);
    await waitForStatus(browser, id, isSynced);
    expect((await downloadIds(browser, id, 'contacts')).length).toBe(CONTACTS);
    expect(failuresOf(id)).toEqual([]);

    const rows = await askedFor(company.id);
    expect(rows.map((row) => row.status)).toEqual([...Array<number>(times).fill(status), 200, 200]);
    const waits = rows.slice(1, times + 1).map(({ at }, index) => at - (rows[index]?.at ?? 0));
    expect(Math.min(...waits)).toBeGreaterThanOrEqual(leastMs);
    const date = said?.startsWith('date') ? Date.parse(header ?? '') : 0;
    expect(rows[1]?.at).toBeGreaterThanOrEqual(date);
  },
);

test.concurrent.each([
  [429, '86400'],
  [503, '1e300'],
  [429, '99999999999999999999999999'],
  [503, 'Fri, 31 Dec 9999 23:59:59 GMT'],
])('%d with retry-after: %s holds its company up for a bounded time, and no other', async (status, said) => {
  const { browser, company, id } = await refusedCompany(status, said, 1);
  const shown =
    status === 429
      ? { waiting_for: 'limit', error: null }
      : {
          waiting_for: 'retry',
          error: expect.stringMatching(
            /^The service has trouble \(503.*It asked to wait before the next try\.$/,
          ),
        };
  const held = await waitForStatus(
    browser,
    id,
    ({ resources }) => resources.contacts?.waiting_for === shown.waiting_for,
  );
  const until = Date.parse(held.resources.contacts?.waiting_until ?? '');
  expect(until - Date.now()).toBeGreaterThan(LONGEST_WAIT_MS / 2);
  expect(until - Date.now()).toBeLessThanOrEqual(LONGEST_WAIT_MS);
  const blockedUntil = Date.parse(held.budget.blocked_until ?? '');
  expect(blockedUntil - Date.now()).toBeLessThanOrEqual(LONGEST_WAIT_MS + 1_000);

  const other = await control.addCompany({
    name: 'Other',
    plan: 'starter',
    contacts: 250,
    conversations: 120,
  });
  const otherBrowser = session();
  const otherId = await install(otherBrowser, other);
  await waitForStatus(otherBrowser, otherId, isSynced);

  expect((await readStatus(browser, id)).resources.contacts).toMatchObject({
    state: 'waiting',
    waiting_until: held.resources.contacts?.waiting_until,
    ...shown,
  });
  expect((await askedFor(company.id)).length).toBe(1);
  expect(failuresOf(id)).toEqual([]);
});

test.concurrent.each([403, 503])(
  'a list that is refused (%d) with retry-after again and again does not hold up the other one of its company',
  async (status) => {
    const { browser, company, id } = await refusedCompany(status, '2', 1_000, CONVERSATIONS);
    await waitForStatus(browser, id, ({ resources }) => Boolean(resources.conversations?.finished_at));
    // One a second or more would be no wait; a page between two refusals no way to get on.
    expect((await askedFor(company.id)).length).toBeLessThan(CONVERSATIONS / 100 / 2);
    expect((await downloadIds(browser, id, 'conversations')).length).toBe(CONVERSATIONS);
  },
);

test.concurrent('a service that asks for waits without an end is shown as in trouble, not as the limit', async () => {
  const { browser, company, id } = await refusedCompany(503, '0.3', 1_000);
  await waitForStatus(browser, id, ({ resources }) => Boolean(resources.contacts?.error));
  const shown = new Set<unknown>();
  while ((await askedFor(company.id)).length < 8) {
    const { state, waiting_for, error } = (await readStatus(browser, id)).resources.contacts ?? {};
    shown.add(error);
    expect([null, 'retry', 'turn'], `${state}`).toContain(waiting_for);
  }
  expect([...shown]).toEqual([
    expect.stringMatching(/^The service has trouble \(503.*It asked to wait before the next try\.$/),
  ]);
  expect((await browser.get(`/instances/${id}`)).body).toContain('The service has trouble (503');
  expect(failuresOf(id)).toEqual([]);
});
