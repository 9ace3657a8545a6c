import { randomBytes } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { startScript } from '../support/spawn-entry.ts';
import { tempDir } from '../support/temp-dir.ts';
import { waitFor } from '../support/wait-for.ts';
import { query } from './support/database.ts';
import { syncAgain } from './support/lists.ts';
import { createWorld } from './support/world.ts';

const KEY = randomBytes(32).toString('base64');
const PRODUCTION = {
  NODE_ENV: 'production',
  SERVICE_API_URL: 'https://api.example.com',
  SERVICE_AUTH_URL: 'https://auth.example.com',
  CLIENT_ID: 'the-client',
  CLIENT_SECRET: 'kFz8secretN0dX2qYwWm7Lr9TtPbA',
  PUBLIC_URL: 'https://app.example.com',
  DATABASE_URL: `file:${tempDir()}/app.db`,
  REDIS_URL: 'redis://127.0.0.1:9',
  SESSION_SECRET: randomBytes(48).toString('base64'),
  OPERATOR_PASSWORD: randomBytes(24).toString('base64'),
  TOKEN_KEYS: `a:${KEY}`,
};
const zeros = Buffer.alloc(32).toString('base64');

describe('18. Production does not start without keys, or with short, repeated or example ones; `keys` and `reencrypt` change keys while the app runs and may be killed half-way.', async () => {
  it.each<[string, 'web' | 'worker' | 'start', Partial<typeof PRODUCTION>, string[]]>([
    [
      'no keys',
      'web',
      { TOKEN_KEYS: '', SESSION_SECRET: '' },
      ['TOKEN_KEYS is needed', 'SESSION_SECRET is needed'],
    ],
    [
      'short ones',
      'start',
      { TOKEN_KEYS: `a:${KEY.slice(0, 20)}`, SESSION_SECRET: 'a'.repeat(31), OPERATOR_PASSWORD: 'Zk4pQ' },
      ['TOKEN_KEYS .*bytes', 'SESSION_SECRET .*characters', 'OPERATOR_PASSWORD .*characters'],
    ],
    ['a key twice', 'start', { TOKEN_KEYS: `a:${KEY},b:${KEY}` }, ['TOKEN_KEYS .*twice']],
    [
      'one character repeated',
      'web',
      { TOKEN_KEYS: `a:${zeros}`, SESSION_SECRET: 'a'.repeat(64) },
      ['TOKEN_KEYS .*random', 'SESSION_SECRET .*random'],
    ],
    [
      'examples',
      'start',
      {
        SESSION_SECRET: 'change-me-change-me-change-me-change-me',
        CLIENT_SECRET: 'your-client-secret',
        OPERATOR_PASSWORD: 'change-me-please',
      },
      ['SESSION_SECRET .*placeholder', 'CLIENT_SECRET .*placeholder', 'OPERATOR_PASSWORD .*placeholder'],
    ],
  ])('does not start with %s, and says so by name', async (_what, script, wrong, says) => {
    const cwd = tempDir();
    const started = startScript(
      script,
      { ...PRODUCTION, DATABASE_URL: `file:${cwd}/app.db`, ...wrong },
      { cwd },
    );
    expect((await started.exited).code).toBe(1);
    for (const problem of says) expect(started.output()).toMatch(new RegExp(`\\b${problem}`));
    for (const secret of [KEY, PRODUCTION.SESSION_SECRET]) expect(started.output()).not.toContain(secret);
    expect(readdirSync(cwd)).toEqual([]);
  });

  it('changes keys under a running app, though killed on the way', async () => {
    const world = await createWorld();
    const browser = world.browser();
    const ids: string[] = [];
    await world.startWeb();
    let worker = await world.startWorker();
    for (const name of ['One', 'Two', 'Three']) {
      ids.push(await world.install(browser, await world.control.addCompany({ name })));
    }
    const syncAll = async () => {
      for (const id of ids) {
        await world.waitForSync(browser, id);
        await syncAgain(world, browser, id);
      }
    };
    const restart = async (TOKEN_KEYS: string) => {
      world.env.TOKEN_KEYS = TOKEN_KEYS;
      await worker.stop();
      worker = await world.startWorker();
    };
    const old = world.env.TOKEN_KEYS ?? '';
    const printed = startScript('keys', world.env);
    await printed.exited;
    const both = printedKeys(printed.output());
    expect(both.endsWith(`,${old}`)).toBe(true);
    await restart(both);
    const stored = () => readTokens(world.databaseUrl);
    const before = await stored();

    const killed = startScript('reencrypt', world.env, { cwd: world.dir });
    await waitFor(
      async () => JSON.stringify(await stored()) !== JSON.stringify(before),
      'a token to be encrypted anew',
    );
    await killed.stop('SIGKILL');
    await syncAll();
    const whole = startScript('reencrypt', world.env, { cwd: world.dir });
    expect((await whole.exited).code, whole.output()).toBe(0);
    const after = await stored();
    expect(after.filter((token) => before.includes(token))).toEqual([]);

    await restart(both.split(',')[0] ?? '');
    // A day later the access tokens are old: the refresh tokens are decrypted, too.
    await world.control.clock({ advance_ms: 24 * 60 * 60_000 });
    await syncAll();
    expect(await Promise.all(ids.map(async (id) => (await world.status(browser, id)).status))).toEqual(
      ids.map(() => 'active'),
    );
  });
});

function printedKeys(output: string): string {
  return /^TOKEN_KEYS=(\S+)$/m.exec(output)?.[1] ?? '';
}

async function readTokens(url: string): Promise<unknown[]> {
  const rows = await query(url, 'select access_token, refresh_token from tokens order by instance_id');
  return rows.flatMap((row) => Object.values(row));
}
