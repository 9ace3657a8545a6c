import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { waitFor } from '../support/wait-for.ts';
import { query } from './support/database.ts';
import { HandlerReport } from './support/handler-report.ts';
import { syncAgain } from './support/lists.ts';
import { createWorld } from './support/world.ts';

const TRIES = 5;
const MOST_DEAD_IN_ROW = 10;
/** The least that a pause is, by how many tries have failed. */
const LEAST_PAUSES_MS = [500, 1_000, 2_000, 4_000];
const CONTACTS = 30;

describe('35. A handler that throws or hangs is tried again with growing pauses, then the failing record alone becomes a dead letter, shown with its reason and a button; the sync and the other records go on; a handler that fails for every record makes ten dead letters a list, then waits.', async () => {
  const world = await createWorld({ sandbox: { windowMs: 1_000 } });
  const report = new HandlerReport('fail');
  const failures = join(world.dir, 'failures');
  const failing = { throws: [] as string[], hangs: [] as string[] };
  const setFailures = (change: () => unknown = () => {}) => {
    change();
    writeFileSync(`${failures}.new`, JSON.stringify(failing));
    renameSync(`${failures}.new`, failures);
  };
  setFailures();
  Object.assign(report.options.env, { TEST_FAILURES: failures, HANDLER_TIMEOUT_SECONDS: '0.5' });
  await world.start(report.options);

  it.concurrent.each([
    { what: 'throws', kind: 'throws', reason: (id: string) => `Nothing can be done with ${id}.` },
    { what: 'hangs', kind: 'hangs', reason: () => /HANDLER_TIMEOUT_SECONDS/ },
  ] as const)('one record for which it $what becomes a dead letter', async ({ what, kind, reason }) => {
    const { browser, id } = await world.installed({ name: `One ${what}`, contacts: CONTACTS });
    await world.waitForDelivery(browser, id);
    const [, record = ''] = report.changes(id, 'contacts').map((change) => change.id);
    setFailures(() => failing[kind].push(record));
    report.forget(id);
    await world.press(browser, id, 'contacts/replay');
    const tries = () =>
      report
        .calls(id)
        .filter(
          ({ resource, changes: { length, 0: one } }) =>
            length === 1 && one?.id === record && resource === 'contacts',
        )
        .map(({ at }) => at);
    await waitFor(() => tries().length > 1, 'a second try');
    // The sync goes on meanwhile.
    await syncAgain(world, browser, id);

    const { resources } = await world.waitForDelivery(browser, id);
    const times = tries();
    expect(times.length).toBe(TRIES);
    const pauses = times.slice(1).map((at, index) => at - (times[index] ?? 0));
    expect(pauses.map((ms, at) => ms >= (LEAST_PAUSES_MS[at] ?? 0))).toEqual(pauses.map(() => true));
    expect(resources.contacts.handler).toMatchObject({ pending: 0, dead_letters: 1 });
    const [letter] = resources.contacts.problems.dead_letters;
    expect(letter?.id).toBe(record);
    expect(letter?.error).toEqual(
      typeof reason(record) === 'string' ? reason(record) : expect.stringMatching(reason(record)),
    );
    const others = new Set(report.changes(id, 'contacts').map((change) => change.id));
    expect(others.size).toBe(CONTACTS);
    const dashboard = (await browser.get(`/instances/${id}`)).text();
    expect(dashboard).toContain(record);
    expect(dashboard).toMatch(reason(record));

    setFailures(() => failing[kind].splice(failing[kind].indexOf(record), 1));
    report.forget(id);
    await world.press(browser, id, 'contacts/retry');
    await world.waitForStatus(browser, id, (status) => status.resources.contacts.handler?.dead_letters === 0);
    expect(report.changes(id, 'contacts').map((change) => change.id)).toEqual([record]);
  });

  it.concurrent('one that fails for every record makes ten dead letters, then waits', async () => {
    const company = await world.control.addCompany({
      name: 'All fail',
      contacts: CONTACTS,
      conversations: 0,
    });
    const browser = world.browser();
    setFailures(() => failing.throws.push(company.id));
    const id = await world.install(browser, company);
    const waitForLetters = (count: number) =>
      world.waitForStatus(browser, id, (status) => status.resources.contacts.handler?.dead_letters === count);
    await waitForLetters(1);
    // The eight that follow would take a minute and a half.
    await query(
      world.databaseUrl,
      `update consumers set failed_in_row = $1 where failed_in_row = 1 and list in
         (select id from lists where instance_id = $2)`,
      [MOST_DEAD_IN_ROW - 1, id],
    );
    const { resources } = await waitForLetters(2);
    const dead = resources.contacts.problems.dead_letters.map((letter) => letter.id);
    const third = await waitFor(async () => {
      const last = report.calls(id).at(-1)?.changes[0]?.id;
      return last !== undefined && !dead.includes(last) && last;
    }, 'the third record');
    const tries = () =>
      report.calls(id).filter(({ changes: { length, 0: one } }) => length === 1 && one?.id === third);
    await waitFor(() => tries().length > TRIES, 'a sixth try');
    const { contacts } = (await world.status(browser, id)).resources;
    expect(contacts).toMatchObject({ state: 'idle', error: null });
    expect(contacts.handler?.dead_letters).toBe(2);
    expect(contacts.handler?.pending).toBe(CONTACTS - 2);
    const { next_try_at } =
      (
        await world.waitForStatus(
          browser,
          id,
          ({ resources }) => resources.contacts.handler?.next_try_at != null,
        )
      ).resources.contacts.handler ?? {};
    expect(Date.parse(next_try_at ?? '')).toBeGreaterThan(Date.now());

    setFailures(() => failing.throws.splice(failing.throws.indexOf(company.id), 1));
    await world.press(browser, id, 'contacts/retry');
    const delivered = await world.waitForDelivery(browser, id);
    expect(delivered.resources.contacts.handler).toMatchObject({ dead_letters: 0, last_error: null });
  });
});
