import { once } from 'node:events';
import { renameSync } from 'node:fs';
import Sqlite from 'better-sqlite3';
import { expect, test } from 'vitest';
import type { HttpPage } from '../support/http-session.ts';
import { consent, install } from '../support/install.ts';
import { startTcpProxy } from '../support/tcp-proxy.ts';
import { startTestApp } from '../support/test-app.ts';
import { waitFor } from '../support/wait-for.ts';

/** An app that has a company, and is asked by its administrator once more; its API is behind a proxy. */
async function start() {
  const proxy = await startTcpProxy(0);
  const testApp = await startTestApp({
    workers: false,
    env: { SERVICE_API_URL: `http://127.0.0.1:${proxy.port}/api` },
  });
  proxy.lead(Number(new URL(testApp.sandbox.apiUrl).port));
  const { control, session, config } = testApp;
  const path = config.databaseUrl.replace(/^file:/, '');
  const company = await control.addCompany({ name: 'Acme', plan: 'starter' });
  const browser = session();
  const id = await install(browser, company);
  const exchanges = async () =>
    (await control.requests()).filter((row) => row.path.endsWith('/token')).length;
  /** Comes back from the consent page of another install. */
  const comeBack = async () => consent(browser, await browser.get('/install'), company);
  return { ...testApp, proxy, path, company, browser, id, exchanges, comeBack };
}

/** The way back is good for nothing any more: the page takes it out of the address, and leads to a new one later on. */
function expectSpent(page: HttpPage) {
  expect(page.headers.get('retry-after')).toBe('5');
  expect(page.body).toContain('src="/assets/spent-address.js"');
  expect(page.body).toContain('>Start again</a>');
}

/** What the page says, and that the install has cost nothing that is still to be had. */
async function expectRefused({ comeBack, exchanges }: Awaited<ReturnType<typeof start>>) {
  const before = await exchanges();
  expect(before).toBeGreaterThan(0);
  const page = await comeBack();
  expect(page.status).toBe(503);
  expect(page.body).toContain('The app cannot use its database at the moment, so nothing was done.');
  expectSpent(page);
  expect(await exchanges()).toBe(before);
}

test('an install while the database is locked exchanges no code: the grant that it would end could not be replaced', async () => {
  const started = await start();
  const other = new Sqlite(started.path);
  other.exec('begin immediate');
  await expectRefused(started);
  other.exec('rollback');
  other.close();
  expect(await install(started.browser, started.company)).toBe(started.id);
});

test('an install while the database file is gone exchanges no code, and a page says that nothing was done', async () => {
  const started = await start();
  renameSync(started.path, `${started.path}-away`);
  await expectRefused(started);
  const lines = started.log.lines.filter(({ msg }) => msg === 'Not available right now');
  expect(lines).toEqual([
    expect.objectContaining({ err: expect.objectContaining({ type: 'LostFileError' }) }),
  ]);
  expect(JSON.stringify(lines)).not.toContain('"stack"');
});

/** Comes back from the consent page, and has its grant when the database is in trouble that was not there before. */
async function comeBackInto(trouble: () => void, { proxy, comeBack }: Awaited<ReturnType<typeof start>>) {
  proxy.silence();
  const asked = once(proxy.events, 'held');
  const coming = comeBack();
  // The code is exchanged, and the API is asked whose grant it is.
  await asked;
  trouble();
  await proxy.pass();
  return coming;
}

test('a grant that comes when the database is locked for longer than anybody waits is kept, a page says so, and it is stored afterwards', async () => {
  const started = await start();
  const { path, log, id, app } = started;
  const database = new Sqlite(path, { readonly: true });
  const version = () => database.prepare('select version from tokens').pluck().get();
  const before = version();
  const other = new Sqlite(path);
  const page = await comeBackInto(() => other.exec('begin immediate'), started);
  expect(page.status).toBe(503);
  expect(page.body).toContain('Authorized, but not stored yet');
  expect(page.body).toContain('The app keeps what the service has granted, and stores it as soon as it can');
  expect(page.body).not.toContain('Nothing was stored');
  expect(page.body).toContain('>Start again</a>');
  expect(log.lines.filter(({ msg }) => String(msg).includes('cannot be written yet'))).toEqual([
    expect.objectContaining({ level: 'warn', instanceId: id }),
  ]);
  expect(version()).toBe(before);
  other.close();
  await waitFor(() => version() !== before);
  database.close();
  // What was stored is good.
  await app.tokens.rotate(id);
});

test('a grant that comes when the database file is gone meanwhile is not said to be stored, nor that all is as it was', async () => {
  const started = await start();
  const { path, log, id, app } = started;
  const page = await comeBackInto(() => renameSync(path, `${path}-away`), started);
  expect(page.status).toBe(503);
  expect(page.body).toContain('Authorized, but not stored</h1>');
  expect(page.body).toContain('Nothing was stored. If the service had authorized the app by then');
  expect(page.body).toContain('>Start again</a>');
  // Whose grant is lost is told when the process ends.
  await expect(app.tokens.close()).rejects.toThrow(/could not be written/);
  expect(log.lines.filter(({ level }) => level === 'error').at(-1)).toMatchObject({
    instanceId: id,
    msg: 'a new grant is lost: it could not be written before the end of the process',
  });
});

test('a grant that gives way to a disconnect, as it could not be stored before, is not told as installed', async () => {
  const started = await start();
  const { path, id, app } = started;
  const other = new Sqlite(path);
  const coming = comeBackInto(() => other.exec('begin immediate'), started);
  await waitFor(() => started.log.lines.some(({ msg }) => String(msg).includes('cannot be written yet')));
  other.close();
  await app.control.disconnect(id, { deleteData: false });
  const page = await coming;
  expect(page.status).toBe(409);
  expect(page.body).toContain('The company was disconnected meanwhile');
  expect(page.body).toContain('The app has given up what the service had granted.');
});
