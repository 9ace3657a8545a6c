import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { waitFor } from '../support/wait-for.ts';
import { query } from './support/database.ts';
import { HandlerReport } from './support/handler-report.ts';
import { syncAgain } from './support/lists.ts';
import { createWorld, type Status } from './support/world.ts';

const MOST_DEAD_IN_ROW = 10;
/** Pauses between tries, in milliseconds. */
const PAUSES_MS = [500, 1_000, 2_000];
const TRIES = PAUSES_MS.length + 1;
const CONTACTS = 30;

/** How a dead letter begins that ended the delivery process. With one pause there are two tries. */
const ended = (how: string) => `The handler ended the delivery process: ${how} (2 times)`;

/** A world whose handler fails for the records, or companies, that the test names. */
async function createFailingWorld(env: Record<string, string>) {
  const world = await createWorld({ sandbox: { windowMs: 1_000 } });
  const report = new HandlerReport('fail');
  const file = join(world.dir, 'failures');
  const names = new Map<string, Set<string>>();
  const setFails = (fault: string, name: string, fails: boolean) => {
    const ofFault = names.get(fault) ?? new Set();
    names.set(fault, ofFault);
    ofFault[fails ? 'add' : 'delete'](name);
    const failing = Object.fromEntries([...names].map(([kind, all]) => [kind, [...all]]));
    writeFileSync(`${file}.new`, JSON.stringify(failing));
    renameSync(`${file}.new`, file);
  };
  setFails('throws', '', false);
  Object.assign(report.options.env, { TEST_FAILURES: file, HANDLER_TIMEOUT_SECONDS: '0.5', ...env });
  return { world, report, setFails };
}

describe('35. A handler that throws, hangs, loops without end, fills its memory, calls `process.exit` or lets a promise reject unheard is tried again with growing pauses, then the failing record alone becomes a dead letter, shown with its reason and a button; the sync, the other records, the other companies and the process go on; a handler that fails for every record makes ten dead letters a list, then waits.', async () => {
  const HANDLER_RETRY_SECONDS = PAUSES_MS.map((ms) => ms / 1_000).join(',');
  const { world, report, setFails } = await createFailingWorld({ HANDLER_RETRY_SECONDS });
  await world.startAll(report.options);
  const ending = await createFailingWorld({ HANDLER_RETRY_SECONDS: '0.1', HANDLER_MEMORY_MB: '64' });
  await ending.world.startWeb(ending.report.options);
  const workers = [
    await ending.world.startWorker(ending.report.options),
    await ending.world.startWorker(ending.report.options),
  ];

  it.concurrent.each<[fault: string, what: string, reason: string | undefined]>([
    ['rejects', 'lets a promise reject unheard', 'Nobody hears of crd_'],
    ['exits', 'calls process.exit', ended('process.exit(3)')],
    ['breaks', 'throws in a callback', ended('uncaught exception: It broke in a callback.')],
    ['fills', 'fills its heap', ended('out of memory')],
    ['buffers', 'fills its memory with buffers', ended('out of memory')],
    ['loops', 'loops without an end', ended('no sign of life for 11 s')],
    ['computes', 'computes for longer than a job’s lock', undefined],
  ])('a record that %s costs no other record, company or worker', async (fault, _what, reason) => {
    const { world, report, setFails } = ending;
    const [one, ...others] = [await copied(), await copied(), await copied()];
    const [, record = ''] = one.ids;
    setFails(fault, record, true);
    for (const { id } of [one, ...others]) report.forget(id);
    await world.press(one.browser, one.id, 'contacts/replay');
    for (const { company } of others) {
      const records = { resource: 'contacts', change: CONTACTS };
      await world.control.call('POST', `companies/${company.id}/records`, records);
    }
    for (const { browser, id } of others) await syncAgain(world, browser, id);
    for (const { browser, id } of others) {
      const { resources } = await world.waitForDelivery(browser, id, 240_000);
      expect(resources.contacts.handler).toMatchObject({ dead_letters: 0, last_error: null });
      expect(new Set(report.changes(id, 'contacts').map((change) => change.id)).size).toBe(CONTACTS);
    }
    const { resources } = await world.waitForDelivery(one.browser, one.id, 240_000);
    expect(resources.contacts.problems.dead_letters).toMatchObject(
      reason === undefined ? [] : [{ id: record, error: expect.stringContaining(reason) }],
    );
    expect(new Set(report.changes(one.id, 'contacts').map((change) => change.id)).size).toBe(CONTACTS);
    const output = workers.map((worker) => worker.output()).join('');
    if (reason?.startsWith('The handler ended'))
      expect(output).toContain(`${one.company.name}, contacts, ${record}`);
    setFails(fault, record, false);

    /** A company whose contacts were delivered once. */
    async function copied() {
      const company = await world.control.addCompany({
        name: `Whose handler ${fault}`,
        contacts: CONTACTS,
        conversations: 0,
      });
      const browser = world.browser();
      const id = await world.install(browser, company);
      await world.waitForDelivery(browser, id);
      return { company, browser, id, ids: report.changes(id, 'contacts').map((change) => change.id) };
    }
  });

  it.concurrent.each([
    { what: 'throws', kind: 'throws', reason: (id: string) => `Nothing can be done with ${id}.` },
    { what: 'hangs', kind: 'hangs', reason: () => /HANDLER_TIMEOUT_SECONDS/ },
  ] as const)('one record for which it $what becomes a dead letter', async ({ what, kind, reason }) => {
    const { browser, id } = await world.installed({ name: `One ${what}`, contacts: CONTACTS });
    await world.waitForDelivery(browser, id);
    const [, record = ''] = report.changes(id, 'contacts').map((change) => change.id);
    setFails(kind, record, true);
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

    // Once more after the next success: an outage may have been to blame.
    await waitFor(() => tries().length > TRIES, 'a try after the next success');
    const { resources } = await world.waitForDelivery(browser, id);
    const times = tries();
    expect(times.length).toBe(TRIES + 1);
    const pauses = times.slice(1, TRIES).map((at, index) => at - (times[index] ?? 0));
    expect(pauses.map((ms, at) => ms >= (PAUSES_MS[at] ?? 0))).toEqual(pauses.map(() => true));
    expect(resources.contacts.handler).toMatchObject({ pending: 0, dead_letters: 1 });
    const [letter] = resources.contacts.problems.dead_letters;
    expect(letter?.id).toBe(record);
    expect(letter?.error).toEqual(
      typeof reason(record) === 'string' ? reason(record) : expect.stringMatching(reason(record)),
    );
    const others = new Set(report.changes(id, 'contacts').map((change) => change.id));
    expect(others.size).toBe(CONTACTS);
    const settings = (await browser.get(`/instances/${id}/settings`)).text();
    expect(settings).toContain(record);
    expect(settings).toMatch(reason(record));

    setFails(kind, record, false);
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
    setFails('throws', company.id, true);
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

    setFails('throws', company.id, false);
    await world.press(browser, id, 'contacts/retry');
    const delivered = await world.waitForDelivery(browser, id);
    expect(delivered.resources.contacts.handler).toMatchObject({ dead_letters: 0, last_error: null });
  });

  it('a record that loops in its transaction frees the database, and becomes a dead letter', async () => {
    const { world, report, setFails } = ending;
    const { browser, id } = await world.installed({ name: 'Loops', contacts: 3, conversations: 0 });
    await world.waitForDelivery(browser, id);
    const [record = ''] = report.changes(id, 'contacts').map((change) => change.id);
    setFails('holds', record, true);
    await world.press(browser, id, 'contacts/replay');
    const hasLetter = ({ resources }: Status) => resources.contacts.problems.dead_letters.length > 0;
    const { resources } = await world.waitForStatus(browser, id, hasLetter);
    const error = ended('it computed in a transaction');
    expect(resources.contacts.problems.dead_letters).toMatchObject([{ id: record, error }]);
  });

  it('the workers are the same as before', async () => {
    for (const worker of workers) expect((await worker.stop()).code).toBe(0);
  });
});
