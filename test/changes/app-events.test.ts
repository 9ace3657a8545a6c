import { afterAll, describe, expect, test } from 'vitest';
import { type AppEvent, EventSender } from '../../src/changes/app-events.ts';
import type { Company } from '../../src/sandbox/types.ts';
import { openDatabase } from '../../src/store/open-database.ts';
import { openStores } from '../../src/store/stores.ts';
import { DATABASES } from '../store/test-store.ts';
import { installCompany } from '../support/install-many.ts';
import { startTestApp } from '../support/test-app.ts';
import { testLogger } from '../support/test-logger.ts';
import { RESOURCES } from '../support/usual-resources.ts';
import { waitFor } from '../support/wait-for.ts';

const HOUR_MS = 60 * 60_000;
const DISCONNECTED = {
  type: 'disconnected',
  instanceId: 'ins_1',
  companyId: null,
  company: 'Acme',
  dataDeleted: true,
  writesDiscarded: 0,
} as const;

test('a failing event handler is logged, and makes no further event', async () => {
  const { logger, lines } = testLogger();
  const events = new EventSender(logger);
  events.send(DISCONNECTED);
  const calls: AppEvent[] = [];
  events.handler = async (event) => {
    calls.push(event);
    throw new Error('It is away.');
  };
  events.send(DISCONNECTED);
  await events.close();
  expect(calls).toEqual([DISCONNECTED]);
  expect(lines).toMatchObject([{ level: 'warn', event: 'disconnected' }]);
});

test('the end of a process waits for an event under way', async () => {
  const { logger } = testLogger();
  const events = new EventSender(logger);
  const gate = Promise.withResolvers<void>();
  events.handler = () => gate.promise;
  events.send(DISCONNECTED);
  const closed = events.close();
  expect(await Promise.race([closed, 'open'])).toBe('open');
  gate.resolve();
  await closed;
});

describe.each(DATABASES)('on %s', async (kind) => {
  const events: AppEvent[] = [];
  const testApp = await startTestApp({
    web: false,
    database: kind,
    // The workers sweep every second.
    env: { SYNC_INTERVAL_MINUTES: '0.03' },
    onEvent: (event) => void events.push(event),
  });
  const { app, config, control, log } = testApp;
  const db = await openDatabase(config.databaseUrl);
  const { runs, instances } = openStores(db);
  afterAll(() => db.destroy());

  const eventsOf = (id: string) =>
    events.filter((event) => event.type !== 'error' && event.instanceId === id);
  /** A company whose lists were copied once. */
  async function synced(contacts = 60) {
    const { id, company } = await installCompany(testApp, db, { contacts });
    await app.control.syncNow(id);
    await waitFor(async () => {
      const lists = await runs.lists(id);
      return lists.length === RESOURCES.length && lists.every(({ run }) => run?.state === 'finished');
    });
    return { id, company, names: { instanceId: id, companyId: company.id, company: company.name } };
  }
  const faultOf = ({ id }: Company, fault: object) =>
    control.fault({ match: { path: '/contacts', company_id: id }, fault, times: 1_000 });
  const runLines = (id: string) => log.lines.filter((line) => line.instanceId === id && 'seconds' in line);

  test('a run that ends logs its counts in one line', async () => {
    const { id, company } = await synced();
    const facts = { level: 'info', company: company.name, resource: 'contacts', records: 60, created: 60 };
    const [line] = runLines(id).filter(({ resource }) => resource === 'contacts');
    expect(line).toMatchObject({ ...facts, changed: 0, deleted: 0, refused: 0, held: 0 });
    expect(line?.requests).toBeGreaterThan(0);
    await faultOf(company, { status: 404 });
    await waitFor(() => runLines(id).some(({ level }) => level === 'warn'));
    expect(runLines(id).find(({ level }) => level === 'warn')).toMatchObject({
      company: company.name,
      resource: 'contacts',
      requests: 1,
      err: { message: expect.stringContaining('404') },
    });
  });

  test('the end of an authorization is one event', async () => {
    const { id, names } = await synced();
    await control.fault({
      match: { path: '/oauth/token' },
      fault: { status: 400, body: { error: 'invalid_grant' } },
    });
    await db.updateTable('tokens').set({ access_expires_at: 0 }).where('instance_id', '=', id).execute();
    await waitFor(() => eventsOf(id).length > 0);
    expect((await instances.find(id))?.status).toBe('needs_reauthorization');
    const error = expect.stringContaining('no longer accepts the refresh token');
    expect(eventsOf(id)).toEqual([{ type: 'authorization_ended', ...names, error }]);
  });

  test('held deletions are an event', async () => {
    const { id, company, names } = await synced();
    await faultOf(company, { status: 200, body: { _results: [], _pagination: { next: null } } });
    await waitFor(() => eventsOf(id).length > 0);
    expect(eventsOf(id)).toEqual([{ type: 'deletions_held', ...names, resource: 'contacts', held: 60 }]);
  });

  test('a list that fails for an hour is one event, with its reason', async () => {
    const { id, company, names } = await synced();
    const contacts = async () => {
      const list = (await runs.lists(id)).find(({ resource }) => resource === 'contacts');
      return list ?? expect.unreachable();
    };
    await faultOf(company, { status: 404 });
    await waitFor(async () => (await contacts()).failing_since !== null);
    expect(eventsOf(id)).toEqual([]);
    const since = Date.now() - HOUR_MS;
    const failing = db.updateTable('lists').set({ failing_since: since });
    await failing.where('id', '=', (await contacts()).id).execute();
    await waitFor(() => eventsOf(id).length > 0);
    const runBefore = (await contacts()).run?.id ?? 0;
    await waitFor(async () => ((await contacts()).run?.id ?? 0) > runBefore + 1);
    expect(eventsOf(id)).toEqual([
      {
        type: 'sync_failing',
        ...names,
        resource: 'contacts',
        since: new Date(since).toISOString(),
        errorKind: 'refused',
        error: expect.stringContaining('404'),
      },
    ]);
  });

  test.each([true, false])(
    'a disconnect is an event, and says whether the data went: %s',
    async (deleteData) => {
      const { id, names } = await synced(3);
      await app.control.disconnect(id, { deleteData });
      await waitFor(() => eventsOf(id).length > 0);
      const facts = { dataDeleted: deleteData, writesDiscarded: 0 };
      expect(eventsOf(id)).toEqual([{ type: 'disconnected', ...names, ...facts }]);
      expect(
        log.lines.filter(({ instanceId, msg }) => instanceId === id && /disconnected/.test(`${msg}`)),
      ).toMatchObject([{ level: 'info', dataDeleted: deleteData }]);
    },
  );
});
