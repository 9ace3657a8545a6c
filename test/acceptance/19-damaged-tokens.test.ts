import { randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { findFreePort } from '../support/free-port.ts';
import type { HttpBrowser } from '../support/http-browser.ts';
import { startScript } from '../support/spawn-entry.ts';
import { query } from './support/database.ts';
import { syncAgain } from './support/lists.ts';
import type { SandboxCompany } from './support/sandbox-control.ts';
import { storedTokens } from './support/stored-tokens.ts';
import { createWorld, type Status } from './support/world.ts';

type Column = 'access_token' | 'refresh_token';

interface Installed {
  company: SandboxCompany;
  browser: HttpBrowser;
  id: string;
}

describe('19. A flipped bit, or ciphertext moved to another row or column, is an authenticated failure of that instance alone; a missing key never ends a grant.', async () => {
  const world = await createWorld();
  const web = await world.startWeb();
  let worker = await world.startWorker();

  const installed = async (name: string): Promise<Installed> => {
    const { company, browser, id } = await world.synced({ name });
    return { company, browser, id };
  };
  const read = async (id: string, column: Column) => (await storedTokens(world, id))[column];
  const write = (id: string, column: Column, value: string) =>
    query(world.databaseUrl, `update tokens set ${column} = $1 where instance_id = $2`, [value, id]);
  /** Whether the sync has met the trouble and told it. */
  const isRefused = ({ status, resources: { contacts } }: Status) =>
    status === 'needs_reauthorization' || contacts.error !== null;

  const other = await installed('Bystander');

  it.each<[string, (id: string) => Promise<unknown>]>([
    [
      'a flipped bit of the access token',
      async (id) => write(id, 'access_token', flipBit(await read(id, 'access_token'))),
    ],
    [
      'a flipped bit of the refresh token',
      async (id) => write(id, 'refresh_token', flipBit(await read(id, 'refresh_token'))),
    ],
    [
      'the token of another row',
      async (id) => write(id, 'access_token', await read(other.id, 'access_token')),
    ],
    [
      'the token of the other column',
      async (id) => write(id, 'access_token', await read(id, 'refresh_token')),
    ],
  ])('refuses %s, for that instance alone, until it is installed again', async (what, damage) => {
    const one = await installed(`With ${what}`);
    await damage(one.id);
    const mark = await world.control.mark();
    // The access token is old: the refresh token is read, too.
    await world.control.clock({ advance_ms: 24 * 60 * 60_000 });
    await world.press(one.browser, one.id, 'sync');
    await world.waitForStatus(one.browser, one.id, isRefused);
    const sent = await world.control.requests(mark);
    expect(sent.filter(({ company_id, status }) => company_id === one.company.id || status >= 400)).toEqual(
      [],
    );
    expect((await world.download(one.browser, one.id, 'contacts')).length).toBe(5);
    expect((await syncAgain(world, other.browser, other.id)).status).toBe('active');
    expect(await world.install(one.browser, one.company)).toBe(one.id);
    expect((await syncAgain(world, one.browser, one.id)).status).toBe('active');
  });

  it('does not start with another key of the same id, and ends no grant', async () => {
    const id = world.env.TOKEN_KEYS?.split(':')[0];
    const TOKEN_KEYS = `${id}:${randomBytes(32).toString('base64')}`;
    for (const script of ['web', 'reencrypt']) {
      const started = startScript(script, { ...world.env, TOKEN_KEYS, PORT: String(await findFreePort()) });
      expect((await started.exited).code, script).toBe(1);
      expect(started.output()).toMatch(/TOKEN_KEYS|another key/);
    }
    expect((await syncAgain(world, other.browser, other.id)).status).toBe('active');
  });

  it('keeps a grant while its key is missing, and goes on when the key is back', async () => {
    const old = world.env.TOKEN_KEYS ?? '';
    const added = `added:${randomBytes(32).toString('base64')}`;
    const restart = async (TOKEN_KEYS: string) => {
      world.env.TOKEN_KEYS = TOKEN_KEYS;
      await worker.stop();
      worker = await world.startWorker();
    };
    await web.stop();
    world.env.TOKEN_KEYS = `${added},${old}`;
    await world.startWeb();
    await restart(world.env.TOKEN_KEYS);
    const later = await installed('Under the added key');
    await restart(added);
    await world.press(other.browser, other.id, 'sync');
    const without = await world.waitForStatus(other.browser, other.id, isRefused);
    expect(without.status).toBe('active');
    expect((await syncAgain(world, later.browser, later.id)).status).toBe('active');
    await restart(`${added},${old}`);
    expect((await syncAgain(world, other.browser, other.id)).status).toBe('active');
    expect((await world.status(other.browser, other.id)).resources.contacts.error).toBeNull();
  });
});

function flipBit(token: string): string {
  // Well within the ciphertext, where each character of Base64 stands for whole bits.
  const at = token.length - 12;
  return token.slice(0, at) + (token[at] === 'A' ? 'B' : 'A') + token.slice(at + 1);
}
