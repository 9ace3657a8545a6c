import Sqlite from 'better-sqlite3';
import { Redis } from 'ioredis';
import { afterAll, beforeEach, expect, test } from 'vitest';
import { ServiceClock } from '../../src/client/service-clock.ts';
import { addMonths } from '../../src/contract/lifetimes.ts';
import { openDatabase } from '../../src/store/open-database.ts';
import type { Application } from '../../src/tokens/oauth-client.ts';
import { openVault } from '../../src/tokens/open-vault.ts';
import { Vault } from '../../src/tokens/vault.ts';
import { tempDir } from '../support/temp-dir.ts';
import { startTestRedis } from '../support/test-redis.ts';
import { newKey } from '../trust/encrypted-tokens.ts';
import { accessTokenFrom } from './access-token.ts';
import { tokenProcess } from './token-process.ts';
import { startTokenServer } from './token-server.ts';

const START = Date.UTC(2026, 2, 1, 12, 0, 0);
const HOUR_MS = 60 * 60_000;
/** Six months, and a day for whoever counts otherwise. */
const SURELY_OVER = addMonths(START, 6) + 24 * HOUR_MS + 1;
const TRIED_AGAIN = 'the grant was refused to another application: it is tried again';

const server = await startTokenServer();
const elsewhere = await startTokenServer();
const redis = new Redis((await startTestRedis()).url);
const path = `${tempDir()}/app.db`;
const db = await openDatabase(`file:${path}`);
const database = new Sqlite(path);
afterAll(async () => {
  redis.disconnect();
  database.close();
  await db.destroy();
});

const KEY = newKey('k1');
const vault = new Vault([KEY]);
const PRESENT: Application = { clientId: 'app', authUrl: server.url };

let now: number;
let id: string;
let count = 0;
const clock = new ServiceClock(() => now);

const processOf = (application: Application) => tokenProcess({ db, redis, vault, clock, ...application });
const { instances, tokens: present } = processOf(PRESENT);

beforeEach(async () => {
  now = START;
  id = `ins_${++count}`;
  server.requests.length = 0;
  elsewhere.requests.length = 0;
  const grant = { accessToken: 'at-0', refreshToken: 'rt-0', grantedAt: now, accessExpiresAt: now + HOUR_MS };
  await present.install({ id, companyId: `cmp_${count}`, name: 'Acme', installedAt: Date.now() }, grant);
});

const OVER = { remedy: 'reauthorize' };
const askAs = (application: Application) => processOf(application).tokens.rotate(id);
const read = async () => {
  const { status, notice } = (await instances.find(id)) ?? expect.unreachable();
  return { status, notice };
};
const note = (notice: string) =>
  database
    .prepare("update instances set status = 'needs_reauthorization', notice = ? where id = ?")
    .run(notice, id);

/** What a process that starts with a configuration tells of the instance. */
async function startAs(application: Application): Promise<string[]> {
  const told: string[] = [];
  const started = await openVault(`file:${path}`, [KEY], {
    application,
    onSecret: () => undefined,
    onAwake: (instanceId, reason) => {
      if (instanceId === id) told.push(reason);
    },
  });
  await started.db.destroy();
  return told;
}

const refuses = () => {
  for (const one of [server, elsewhere]) one.answerJson(400, { error: 'invalid_grant' });
};
const refusesOldOnes = () => {
  now = SURELY_OVER;
  for (const one of [server, elsewhere]) one.answerJson(403, { _error: { status: 403 } });
};

test.each<[string, string, Partial<Application>, () => void]>([
  ['another application', 'with invalid_grant', { clientId: 'staging' }, refuses],
  ['another application', 'in a form of its own after six months', { clientId: 'staging' }, refusesOldOnes],
  ['another auth host', 'with invalid_grant', { authUrl: elsewhere.url }, refuses],
  ['another auth host', 'in a form of its own after six months', { authUrl: elsewhere.url }, refusesOldOnes],
])(
  'a grant that was refused to %s %s is tried again after a start with the right one, and goes on',
  async (_which, _form, wrong, answer) => {
    answer();
    const other = { ...PRESENT, ...wrong };
    await expect(askAs(other)).rejects.toMatchObject(OVER);
    const ended = await read();
    expect(ended).toEqual({
      status: 'needs_reauthorization',
      notice: expect.stringMatching(
        /\. Authorize the app again to go on; everything copied so far is kept\. /,
      ),
    });
    expect(ended.notice).toContain(`asked with CLIENT_ID ${other.clientId} at ${other.authUrl}.)`);
    expect(await startAs(other)).toEqual([]);
    expect(await read()).toEqual(ended);

    expect(await startAs(PRESENT)).toEqual([TRIED_AGAIN]);
    expect(await read()).toEqual({ status: 'active', notice: null });
    server.answerRefreshes();
    expect(await accessTokenFrom(present, id, 'at-0')).toBe('at-1');
    expect(await startAs(PRESENT)).toEqual([]);
  },
);

test('a grant that is over is asked for once more as another application, then its end stays, however often one starts', async () => {
  refuses();
  const other = { ...PRESENT, clientId: 'staging' };
  await expect(askAs(other)).rejects.toMatchObject(OVER);
  const told: string[] = [];
  for (let start = 0; start < 5; start++) {
    told.push(...(await startAs(PRESENT)));
    for (const ask of [() => accessTokenFrom(present, id, 'at-0'), () => askAs(PRESENT)]) {
      await expect(ask()).rejects.toMatchObject(OVER);
    }
  }
  expect(told).toEqual([TRIED_AGAIN]);
  expect(server.requests.length).toBe(2);
  expect(await read()).toMatchObject({
    status: 'needs_reauthorization',
    notice: expect.stringContaining(`asked with CLIENT_ID app at ${server.url}.)`),
  });
});

test.each([
  ['app', 'my-app'],
  ['my-app', 'app'],
  ['app', 'App'],
  ['a%_', 'a_%'],
  ['(.*)"\'\\', '(.*)"\\\''],
  ['CLIENT_ID', 'CLIENT_ID,at,x.)'],
])('an application %s is not taken for one %s', async (clientId, otherId) => {
  refuses();
  await expect(askAs({ ...PRESENT, clientId })).rejects.toMatchObject(OVER);
  expect(await startAs({ ...PRESENT, clientId })).toEqual([]);
  expect(await startAs({ ...PRESENT, clientId: otherId })).toEqual([TRIED_AGAIN]);
});

test('an end whose notice names no application stays', async () => {
  note(
    'The service does not accept the refresh token any more. Authorize the app again to go on; everything copied so far is kept.',
  );
  const ended = await read();
  expect(await startAs(PRESENT)).toEqual([]);
  expect(await startAs({ ...PRESENT, clientId: 'staging' })).toEqual([]);
  expect(await read()).toEqual(ended);
});

test.each([
  ['a company', true],
  ['a company that the service does not tell', false],
])(
  'an end that the service has no part in names no application, and no other one takes it back: for %s',
  async (_whose, isTold) => {
    if (!isTold) database.prepare('update instances set company_id = null where id = ?').run(id);
    const moved = vault.seal('at-0', { instanceId: 'elsewhere', purpose: 'access_token' });
    database.prepare('update tokens set access_token = ? where instance_id = ?').run(moved, id);
    database.prepare('insert or ignore into key_checks values (?, ?)').run(KEY.id, vault.checkValue(KEY.id));
    await expect(askAs(PRESENT)).rejects.toMatchObject(OVER);
    expect((await read()).notice).toMatch(
      isTold
        ? /was changed, or belongs elsewhere\. .* is kept\.$/
        : /was changed, or belongs elsewhere\. .* is kept until it is disconnected\.$/,
    );
    expect(await startAs({ ...PRESENT, clientId: 'staging' })).toEqual([]);
    const restored = vault.seal('at-0', { instanceId: id, purpose: 'access_token' });
    database.prepare('update tokens set access_token = ? where instance_id = ?').run(restored, id);
    expect(await startAs(PRESENT)).toEqual(['the tokens open again: the grant goes on']);
  },
);

test('a grant whose refresh token was cut, and is whole again, goes on', async () => {
  const column = (change: string) => `update tokens set refresh_token = ${change} where instance_id = ?`;
  const whole = database.prepare('select refresh_token from tokens where instance_id = ?').pluck().get(id);
  database.prepare(column('substr(refresh_token, 1, 12)')).run(id);
  await expect(askAs(PRESENT)).rejects.toMatchObject(OVER);
  expect((await read()).notice).toMatch(/^The stored refresh token is damaged\. /);
  expect(await startAs(PRESENT)).toEqual([]);
  database.prepare(column('?')).run(whole, id);
  expect(await startAs(PRESENT)).toEqual(['the tokens open again: the grant goes on']);
});
