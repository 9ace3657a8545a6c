import Sqlite from 'better-sqlite3';
import { Redis } from 'ioredis';
import { afterAll, expect, test } from 'vitest';
import { SESSION_COOKIE } from '../../src/web/session.ts';
import type { HttpSession } from '../support/http-session.ts';
import { consent, downloadIds, install, isSynced, readStatus, waitForStatus } from '../support/install.ts';
import { startTestApp } from '../support/test-app.ts';

const { app, config, control, redisUrl, session } = await startTestApp();
const redis = new Redis(redisUrl);
afterAll(() => redis.disconnect());

const addCompany = (name: string) => control.addCompany({ name, plan: 'enterprise', contacts: 3 });

/** Presses a button of the instance's dashboard. */
async function press(browser: HttpSession, id: string, action: string, fields: Record<string, string> = {}) {
  const page = await browser.get(`/instances/${id}`);
  return browser.submit(page.form(`/instances/${id}/${action}`), fields);
}

function cookieOf(browser: HttpSession): string {
  return `${SESSION_COOKIE}=${browser.cookies.get(new URL(config.publicUrl), SESSION_COOKIE)}`;
}

/** Changes what is stored of a company behind the app's back. */
function change(source: string, id: string): void {
  const db = new Sqlite(config.databaseUrl.replace('file:', ''));
  db.prepare(source).run(id);
  db.close();
}

async function expectToSee(browser: HttpSession, id: string): Promise<void> {
  expect((await browser.get(`/instances/${id}`)).status).toBe(200);
  expect((await browser.get('/')).body).toContain(id);
}

async function expectNotToSee(browser: HttpSession, id: string): Promise<void> {
  for (const path of ['', '/status', '/live', '/contacts', '/contacts.ndjson', '/contacts/x']) {
    expect((await browser.get(`/instances/${id}${path}`)).status, path).toBe(404);
  }
  for (const action of ['sync', 'pause', 'logout-others', 'disconnect', 'forget']) {
    expect((await browser.post(`/instances/${id}/${action}`)).status, action).toBe(404);
  }
  expect((await browser.get('/')).body).not.toContain(id);
}

test.each([
  ['keeps', {}],
  ['deletes', { delete_data: 'yes' }],
] as [string, Record<string, string>][])(
  'a disconnect that %s the copy ends what every other browser sees of the company, also of what is installed anew',
  async (what, fields) => {
    const company = await addCompany(`Former ${what}`);
    const former = session();
    const id = await install(former, company);
    const next = session();
    expect(await install(next, company)).toBe(id);
    // Who installs it, too, takes nothing from anybody.
    await expectToSee(former, id);
    await waitForStatus(next, id, isSynced);

    const gone = await press(next, id, 'disconnect', fields);
    expect([gone.status, gone.url.pathname]).toEqual([200, `/instances/${id}`]);
    expect(gone.body).toContain('Disconnected. The app has given up its access.');
    await expectNotToSee(former, id);

    expect(await install(next, company)).toBe(id);
    await expectNotToSee(former, id);
    await waitForStatus(next, id, isSynced);
    expect((await downloadIds(next, id, 'contacts')).length).toBe(3);
    expect(await install(former, company)).toBe(id);
    await expectToSee(former, id);
    await expectToSee(next, id);
  },
  60_000,
);

test('who has disconnected a company does not see what another browser installs afterwards', async () => {
  const company = await addCompany('Handed over');
  const former = session();
  const id = await install(former, company);
  await press(former, id, 'disconnect');
  await expectToSee(former, id);
  await install(session(), company);
  await expectNotToSee(former, id);
});

test('who disconnects a company is let into what is left of it before its copy is deleted, which may take long', async () => {
  const company = await addCompany('Large');
  const browser = session();
  const id = await install(browser, company);
  await waitForStatus(browser, id, isSynced);
  const seen: unknown[] = [];
  const onEnded = async (generation: number | undefined) => {
    seen.push(generation === (await app.control.accessGeneration(id)));
    const status = await app.control.status(id);
    seen.push(status?.has_copy, status?.deleting_copy);
  };
  await app.control.disconnect(id, { deleteData: true, onEnded });
  expect(seen).toEqual([true, true, true]);
  expect(await app.control.status(id)).toMatchObject({ has_copy: false, deleting_copy: false });
});

test('“Log out everywhere else” ends what a stolen cookie was made into, and its copies; the sync goes on', async () => {
  const company = await addCompany('Acme');
  const evil = await addCompany('Evil');
  const victim = session();
  const id = await install(victim, company);
  const other = session();
  await install(other, company);
  const stolen = { headers: { cookie: cookieOf(victim) }, follow: false };
  // An install in the victim’s session gives it a new id, which the thief has then.
  const thief = session();
  const begun = await thief.get('/install', stolen);
  const back = await consent(thief, await thief.get(begun.location ?? ''), evil, { follow: false });
  const entered = await thief.get(back.location ?? '', stolen);
  const evilId = entered.location?.pathname.split('/').at(-1) ?? '';
  await expectToSee(thief, id);

  await install(victim, company);
  const copied = { headers: { cookie: cookieOf(victim) } };
  const dashboard = await press(victim, id, 'logout-others');
  expect(dashboard.url.pathname).toBe(`/instances/${id}`);
  expect(dashboard.body).toContain('Every other browser is logged out of this company.');
  await expectNotToSee(thief, id);
  await expectToSee(thief, evilId);
  await expectNotToSee(other, id);
  expect((await session().get(`/instances/${id}`, copied)).status).toBe(404);
  await expectToSee(victim, id);
  expect((await readStatus(victim, id)).status).toBe('active');
  // Once more, as the form is good in the new session.
  await press(victim, id, 'logout-others');
  await expectToSee(victim, id);
});

test('a session from before access was counted sees its companies until that of one has ended', async () => {
  const companies = [await addCompany('Old one'), await addCompany('Old two')];
  const browser = session();
  const ids: string[] = [];
  for (const company of companies) ids.push(await install(browser, company));
  const [first = '', second = ''] = ids;
  for (const id of ids) change('update instances set access_generation = 1 where id = ?', id);
  for (const key of await redis.keys('session:*')) {
    const { accessGenerations: _, ...older } = JSON.parse((await redis.get(key)) ?? '{}');
    if (older.instances?.includes(first)) await redis.set(key, JSON.stringify(older), 'KEEPTTL');
  }
  await expectToSee(browser, first);
  await app.control.endAccess(second, 1);
  await expectNotToSee(browser, second);
  await expectToSee(browser, first);
});

test('who was logged out of a company does not see what another browser installs of it into a new database', async () => {
  const company = await addCompany('Lost');
  const [former, next] = [session(), session()];
  const id = await install(former, company);
  await install(next, company);
  await press(next, id, 'logout-others');
  await expectNotToSee(former, id);
  for (const table of ['runs', 'tokens']) change(`delete from ${table} where instance_id = ?`, id);
  change('delete from instances where id = ?', id);
  const other = session();
  expect(await install(other, company)).toBe(id);
  await expectToSee(other, id);
  await expectNotToSee(former, id);
});

test('access is ended by whoever sees the company as it is by now, and by one of two at once', async () => {
  const id = await install(session(), await addCompany('Contended'));
  const { control: instances } = app;
  const first = (await instances.accessGeneration(id)) ?? expect.unreachable();
  const ended = await Promise.all([instances.endAccess(id, first), instances.endAccess(id, first)]);
  expect(ended.sort()).toEqual([first + 1, undefined]);
  await instances.disconnect(id, { deleteData: false });
  expect(await instances.endAccess(id, first + 1)).toBeUndefined();
  expect(await instances.accessGeneration(id)).toBe(first + 2);
});

test('whoever has a copy of the cookie that disconnected is logged out by that button, which is there still', async () => {
  const browser = session();
  const id = await install(browser, await addCompany('Copied'));
  await press(browser, id, 'disconnect');
  const copied = { headers: { cookie: cookieOf(browser) } };
  expect((await session().get(`/instances/${id}`, copied)).status).toBe(200);
  await press(browser, id, 'logout-others');
  expect((await session().get(`/instances/${id}`, copied)).status).toBe(404);
  await expectToSee(browser, id);
});
