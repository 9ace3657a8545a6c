import Sqlite from 'better-sqlite3';
import { afterAll, expect, test } from 'vitest';
import { Vault } from '../../src/tokens/vault.ts';
import type { HttpSession } from '../support/http-session.ts';
import { install, isSynced, readStatus, waitForStatus } from '../support/install.ts';
import { startTestApp } from '../support/test-app.ts';
import { newKey } from './encrypted-tokens.ts';

type Column = 'access_token' | 'refresh_token';

const { config, control, session } = await startTestApp();
const database = new Sqlite(config.databaseUrl.replace(/^file:/, ''));
afterAll(() => database.close());

/** An installed company whose first sync is over. */
async function newCompany() {
  const company = await control.addCompany({ name: 'Acme', plan: 'starter', contacts: 5, conversations: 5 });
  const browser = session();
  const id = await install(browser, company);
  await waitForStatus(browser, id, isSynced);
  return { company, browser, id };
}

const bystander = await newCompany();

function read(id: string, column: Column): string {
  return database.prepare(`select ${column} from tokens where instance_id = ?`).pluck().get(id) as string;
}

function write(id: string, column: Column, envelope: string): void {
  expect(
    database.prepare(`update tokens set ${column} = ? where instance_id = ?`).run(envelope, id).changes,
  ).toBe(1);
}

function flipBit(envelope: string): string {
  const at = envelope.lastIndexOf('.') + 1;
  const bytes = Buffer.from(envelope.slice(at), 'base64url');
  bytes.writeUInt8((bytes[20] ?? 0) ^ 1, 20);
  return envelope.slice(0, at) + bytes.toString('base64url');
}

async function press(browser: HttpSession, id: string, button: string): Promise<void> {
  await browser.submit((await browser.get(`/instances/${id}`)).form(`/instances/${id}/${button}`));
}

async function syncBystander(): Promise<void> {
  const before = (await readStatus(bystander.browser, bystander.id)).resources.contacts?.finished_at;
  await press(bystander.browser, bystander.id, 'sync');
  const after = await waitForStatus(
    bystander.browser,
    bystander.id,
    (status) => isSynced(status) && status.resources.contacts?.finished_at !== before,
  );
  expect(after).toMatchObject({ status: 'active', notice: null });
}

test.each<[string, RegExp, (id: string) => void]>([
  [
    'a flipped bit in the access token',
    /stored access token was changed, or belongs elsewhere/,
    (id) => write(id, 'access_token', flipBit(read(id, 'access_token'))),
  ],
  [
    'a flipped bit in the refresh token',
    /stored refresh token was changed, or belongs elsewhere/,
    (id) => write(id, 'refresh_token', flipBit(read(id, 'refresh_token'))),
  ],
  [
    'the access token of another instance',
    /stored access token was changed, or belongs elsewhere/,
    (id) => write(id, 'access_token', read(bystander.id, 'access_token')),
  ],
  [
    'the refresh token in the column of the access token',
    /stored access token was changed, or belongs elsewhere/,
    (id) => write(id, 'access_token', read(id, 'refresh_token')),
  ],
  [
    'half of the refresh token',
    /stored refresh token is damaged/,
    (id) => write(id, 'refresh_token', 'v1.dev.AAAA'),
  ],
])(
  '%s ends that instance’s grant alone, says so and what to do, and a new authorization repairs it',
  async (_what, notice, damage) => {
    const { company, browser, id } = await newCompany();
    damage(id);
    const asked = (await control.requests()).length;
    await press(browser, id, 'sync');
    const status = await waitForStatus(browser, id, (now) => now.status === 'needs_reauthorization');
    expect(status.notice).toMatch(notice);
    expect(status.notice).toMatch(/Authorize the app again/);
    expect(status.resources.contacts?.stored).toBe(5);
    const dashboard = await browser.get(`/instances/${id}`);
    expect(dashboard.body).toMatch(notice);
    expect(dashboard.body).toContain('Authorize again');
    const forCompany = (await control.requests(asked)).filter(({ company_id }) => company_id === company.id);
    expect(forCompany).toEqual([]);
    await syncBystander();

    expect(await install(browser, company)).toBe(id);
    const repaired = await waitForStatus(browser, id, isSynced);
    expect(repaired).toMatchObject({ status: 'active', notice: null });
  },
);

test('a key that TOKEN_KEYS does not hold stops that instance’s runs, names the key, and they go on when it is back', async () => {
  const { browser, id } = await newCompany();
  const kept = read(id, 'access_token');
  const stranger = new Vault([newKey('2019-lost')]);
  write(id, 'access_token', stranger.seal('at', { instanceId: id, purpose: 'access_token' }));
  await press(browser, id, 'sync');
  const status = await waitForStatus(browser, id, ({ resources }) =>
    Object.values(resources).every(({ state }) => state === 'failed'),
  );
  expect(status.status).toBe('active');
  expect(status.resources.contacts?.error).toMatch(
    /the key "2019-lost", which TOKEN_KEYS does not hold and this database does not know: either the key is missing/,
  );
  expect((await browser.get(`/instances/${id}`)).body).toMatch(/2019-lost/);
  await syncBystander();

  write(id, 'access_token', kept);
  await press(browser, id, 'sync');
  const repaired = await waitForStatus(browser, id, isSynced);
  expect(repaired).toMatchObject({ status: 'active', resources: { contacts: { error: null } } });
});

test('a flipped bit in the key’s id of a stored token: both that the key is missing and that the text was changed are said, and a new authorization repairs it', async () => {
  const { company, browser, id } = await newCompany();
  // One bit of its first letter.
  const changed = Buffer.from(read(id, 'access_token'));
  changed.writeUInt8(changed.readUInt8(3) ^ 1, 3);
  write(id, 'access_token', changed.toString());
  await press(browser, id, 'sync');
  const status = await waitForStatus(browser, id, ({ resources }) =>
    Object.values(resources).every(({ state }) => state === 'failed'),
  );
  expect(status.status).toBe('active');
  expect(status.resources.contacts?.error).toMatch(
    /either the key is missing, and whoever runs this app has to put it back, or the text was changed, and the company has to authorize the app again/,
  );
  expect(await install(browser, company)).toBe(id);
  const repaired = await waitForStatus(browser, id, isSynced);
  expect(repaired).toMatchObject({ status: 'active', resources: { contacts: { error: null } } });
});
