import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { createSandbox, type Sandbox, type Seed } from '../../src/sandbox/sandbox.ts';
import { useSandbox } from '../../src/sandbox/vitest.ts';
import { tempDir } from '../support/temp-dir.ts';
import { startSandbox, TestSandbox } from './support/test-sandbox.ts';

const ACME = { name: 'Acme', plan: 'professional', contacts: 3 } as const;
const OTHER = { name: 'Other app', redirect_uris: ['https://other.example/1', 'https://other.example/2'] };
const START = Date.UTC(2027, 0, 1);

const sandbox = useSandbox();
const tooEarly = new Promise((resolve) => resolve(sandbox.state())).catch(String);

/** The status of a request for contacts with this access token. */
async function contacts({ apiUrl }: Sandbox, token: string): Promise<number> {
  return (await fetch(`${apiUrl}/contacts`, { headers: { authorization: `Bearer ${token}` } })).status;
}

describe('The handle of a sandbox', () => {
  test('gives an application tokens of a company without a request', async () => {
    const [acme, other] = [sandbox.company(ACME), sandbox.register(OTHER)];
    const { access_token } = sandbox.tokens(other, acme);
    expect(sandbox.requests()).toEqual([]);
    expect(await contacts(sandbox, access_token)).toBe(200);
    const seen = { path: '/contacts', company_id: acme.id, application: other.client_id };
    expect(sandbox.requests()).toEqual([expect.objectContaining(seen)]);
  });

  test('answers a consent with the code, and the address that the browser goes to', async () => {
    const [client, redirectUri] = [sandbox.register(OTHER), 'https://other.example/2'];
    const { code, url } = sandbox.authorize(client.client_id, undefined, { redirectUri, state: 'a b' });
    expect(url).toBe(`${redirectUri}?code=${code}&state=a%20b`);
    const form = { grant_type: 'authorization_code', code, redirect_uri: redirectUri };
    const answer = await new TestSandbox(sandbox).token(form, client);
    expect(await answer.json()).toMatchObject({ token_type: 'Bearer' });
  });

  test('refuses a consent that the service would not give', () => {
    const colleague = sandbox.companies()[0]?.teammates.find(({ is_admin }) => !is_admin);
    expect(() => sandbox.authorize(undefined, colleague)).toThrow('Only an administrator');
    expect(() => sandbox.tokens(undefined, 'tea_none')).toThrow('There is no teammate tea_none.');
    expect(() => sandbox.tokens('app_none')).toThrow('There is no application app_none.');
    const redirectUri = 'https://elsewhere.example';
    expect(() => sandbox.authorize(undefined, undefined, { redirectUri })).toThrow('is not registered');
  });

  const noCompany = { name: '', plan: 'x' as 'starter' };
  const oneContact = { resource: 'contacts', create: 1 } as const;
  test.each<[string, object, () => unknown]>([
    ['companies', noCompany, () => sandbox.company(noCompany)],
    ['restore', { id: 'snp_9' }, () => sandbox.restore('snp_9')],
    ['clock', { set: 'soon' }, () => sandbox.clock.set('soon')],
    ['faults', { fault: {} }, () => sandbox.faults.order({ fault: {} })],
    ['companies/x/records', oneContact, () => sandbox.changeRecords('x', oneContact)],
  ])('throws what %s answers', async (path, body, call) => {
    const answer = await (await new TestSandbox(sandbox).control(path, body)).json();
    const { status, message } = (answer as { _error: { status: number; message: string } })._error;
    expect(call).toThrow(expect.objectContaining({ status, message }));
  });

  test('moves the clock that tokens live by', async () => {
    const { clock } = sandbox;
    expect(clock.freeze(new Date(START))).toBe(START);
    const { access_token } = sandbox.tokens();
    clock.advance(3_600_000);
    expect(await contacts(sandbox, access_token)).toBe(401);
    expect(clock.set('2027-01-01T00:59:59Z')).toBe(clock.now());
    expect(await contacts(sandbox, access_token)).toBe(200);
    clock.run();
    expect(sandbox.state().frozen).toBe(false);
  });

  test('orders faults and guards, changes records, and comes back to a snapshot', async () => {
    const acme = sandbox.company(ACME);
    const { access_token } = sandbox.tokens(undefined, acme);
    const [status, snapshot] = [() => contacts(sandbox, access_token), sandbox.snapshot()];
    const id = sandbox.faults.order({ match: { path: '/contacts' }, fault: { status: 503 }, times: 9 });
    expect(await status()).toBe(503);
    expect(sandbox.faults.list()).toEqual([expect.objectContaining({ id, used: 1, left: 8 })]);
    sandbox.faults.remove(id);
    sandbox.guards.add({ tier: 'lists', requests: 1, per_ms: 60_000 });
    expect([await status(), await status()]).toEqual([200, 429]);
    sandbox.guards.clear();
    sandbox.faults.order({ fault: { status: 500 } });
    sandbox.faults.clear();
    expect(await status()).toBe(200);
    expect(sandbox.changeRecords(acme.id, { resource: 'contacts', delete: 1 }).deleted).toHaveLength(1);
    sandbox.restore(snapshot);
    expect(sandbox.companies().at(-1)?.counts.contacts).toBe(3);
  });

  test('saves everything to a file, from which another sandbox goes on', async () => {
    const file = join(tempDir(), 'world');
    sandbox.clock.freeze(START);
    const { access_token, refresh_token } = sandbox.tokens(undefined, sandbox.company(ACME));
    sandbox.save(file);
    const { sandbox: next } = await startSandbox();
    next.load(file);
    expect([next.clock.now(), next.companies().at(-1)?.name]).toEqual([START, 'Acme']);
    // Tokens of one consent still end together.
    next.faults.order({ fault: { revoke: 'grant' } });
    expect(await contacts(next, access_token)).toBe(200);
    const refreshed = await new TestSandbox(next).refresh(refresh_token);
    expect(await refreshed.json()).toMatchObject({ error: 'invalid_grant' });
  });

  test.each<[string, (saved: string) => string]>([
    ['is no snapshot', () => '{"companies": []}\n'],
    ['was saved by another version', (saved) => saved.replace('snapshot 1', 'snapshot 0')],
    ['is damaged', (saved) => saved.slice(0, -9)],
  ])('says of a file that it %s', (words, change) => {
    const file = join(tempDir(), 'world');
    sandbox.save(file);
    writeFileSync(file, change(readFileSync(file, 'latin1')), 'latin1');
    expect(() => sandbox.load(file)).toThrow(`${file} ${words}`);
  });
});

describe('A seed', () => {
  const seed: Seed = {
    ...{ now: '2027-01-01', frozen: true, companies: [ACME], applications: [OTHER] },
    faults: [{ match: { path: '/contacts' }, fault: { status: 503 } }],
    guards: [{ tier: 'lists', requests: 2, per_ms: 1_000 }],
  };

  test('from a file is what the sandbox starts with, and goes back to', async () => {
    const file = join(tempDir(), 'world.json');
    writeFileSync(file, JSON.stringify(seed));
    const { sandbox: own } = await startSandbox({ seed: file }, ['lists']);
    for (const round of ['at start', 'after a reset']) {
      const { now, frozen, companies, applications } = own.state();
      const found = [now, frozen, companies.map(({ name }) => name), applications.map(({ name }) => name)];
      expect(found, round).toEqual([START, true, ['Acme'], ['Partner app', 'Other app']]);
      const { access_token } = own.tokens();
      for (const status of [503, 200, 429]) expect(await contacts(own, access_token), round).toBe(status);
      own.clock.run();
      own.company(ACME);
      own.reset();
    }
  });

  test('is refused with every problem and its place', async () => {
    const wrong = { companies: [{ ...ACME, plan: 'x' }, ACME], faults: [{ fault: {} }], tenants: [] };
    await expect(createSandbox({ seed: wrong as unknown as Seed })).rejects.toThrow(
      /companies\.0\.plan: .*\n.*faults\.0\.fault: .*\n.*tenants/,
    );
  });
});

describe('useSandbox', () => {
  test.each(['first', 'second'])('puts the sandbox back to its start before the %s test', () => {
    expect(sandbox.companies()).toHaveLength(3);
    sandbox.company(ACME);
  });

  test('says that there is no sandbox before the tests', () =>
    expect(tooEarly).resolves.toContain('use it in tests and hooks'));
});
