import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { createSandbox, type Seed } from '../../src/sandbox/sandbox.ts';
import { useSandbox } from '../../src/sandbox/vitest.ts';
import { tempDir } from '../support/temp-dir.ts';
import { at, START_MS, startSandbox, TestSandbox } from './support/test-sandbox.ts';

const ACME = { name: 'Acme', plan: 'professional', contacts: 3 } as const;
const OTHER = { name: 'Other app', redirect_uris: ['https://other.example/1', 'https://other.example/2'] };

const sandbox = useSandbox();
const tooEarly = new Promise((resolve) => resolve(sandbox.state())).catch(String);

describe('The handle of a sandbox', () => {
  test('It answers or refuses a consent as the service does, with the browser’s address', async () => {
    const [client, redirectUri] = [sandbox.register(OTHER), 'https://other.example/2'];
    const { code, url } = sandbox.authorize(client.client_id, undefined, { redirectUri, state: 'a b' });
    expect(url).toBe(`${redirectUri}?code=${code}&state=a%20b`);
    const service = new TestSandbox(sandbox);
    const { body } = await service.exchange(code, { ...client, redirect_uris: [redirectUri] });
    const me = await service.call('GET', '/me', body.access_token);
    expect(me.body.id, 'of the first company').toBe(at(sandbox.companies(), 0).id);
    const colleague = at(at(sandbox.companies(), 0).teammates, 1);
    expect(() => sandbox.authorize(undefined, colleague)).toThrow('Only an administrator');
    expect(() => sandbox.tokens(undefined, 'tea_none')).toThrow('There is no teammate tea_none.');
    expect(() => sandbox.tokens('app_none')).toThrow('There is no application app_none.');
    expect(() => sandbox.authorize(undefined, undefined, { redirectUri })).toThrow('is not registered');
  });

  test('Its calls do what control calls do, and throw what these answer', async () => {
    const noCompany = { name: '', plan: 'x' as 'starter' };
    const oneContact = { resource: 'contacts', create: 1 } as const;
    const calls: [string, object, () => unknown][] = [
      ['companies', noCompany, () => sandbox.company(noCompany)],
      ['restore', { id: 'snp_9' }, () => sandbox.restore('snp_9')],
      ['clock', { set: 'soon' }, () => sandbox.clock.set('soon')],
      ['faults', { fault: {} }, () => sandbox.faults.order({ fault: {} })],
      ['companies/x/records', oneContact, () => sandbox.changeRecords('x', oneContact)],
    ];
    for (const [path, body, call] of calls) {
      const answer = await (await new TestSandbox(sandbox).control(path, body)).json();
      const { status, message } = (answer as { _error: { status: number; message: string } })._error;
      expect(call).toThrow(expect.objectContaining({ status, message }));
    }
    const { id } = sandbox.company(ACME);
    expect(sandbox.changeRecords(id, { resource: 'contacts', delete: 1 }).deleted).toHaveLength(1);
    expect(sandbox.clock.freeze(new Date(START_MS))).toBe(START_MS);
    sandbox.clock.run();
    expect(sandbox.state().frozen).toBe(false);
  });

  test('It saves everything to a file, from which another sandbox goes on', async () => {
    const file = join(tempDir(), 'world');
    sandbox.clock.freeze(START_MS);
    const { access_token, refresh_token } = sandbox.tokens(undefined, sandbox.company(ACME));
    sandbox.save(file);
    const next = await startSandbox();
    next.sandbox.load(file);
    expect([next.state().now, next.state().companies.at(-1)?.name]).toEqual([START_MS, 'Acme']);
    // Tokens of one consent still end together.
    next.sandbox.faults.order({ fault: { revoke: 'grant' } });
    expect(await next.statuses(1, '/contacts', access_token)).toEqual([200]);
    expect((await next.refresh(refresh_token)).body.error).toBe('invalid_grant');
    const client = { client_id: next.sandbox.application.client_id, client_secret: 'of another' };
    (await startSandbox({ seed: { applications: [{ ...OTHER, ...client }] } })).sandbox.save(`${file} 2`);
    next.sandbox.load(`${file} 2`);
    expect(next.sandbox.application).toMatchObject(client);
    const saved = readFileSync(file, 'latin1');
    for (const [words, content] of [
      ['is no snapshot', '{"companies": []}\n'],
      ['was saved by another version', saved.replace('snapshot 2', 'snapshot 1')],
      ['is damaged', saved.slice(0, -9)],
    ] as const) {
      writeFileSync(file, content, 'latin1');
      expect(() => sandbox.load(file)).toThrow(`${file} ${words}`);
    }
  });
});

describe('A seed', () => {
  const seed: Seed = {
    ...{ now: START_MS, frozen: true, companies: [ACME], applications: [OTHER] },
    faults: [{ match: { path: '/contacts' }, fault: { status: 503 } }],
    guards: [{ tier: 'lists', requests: 2, per_ms: 1_000 }],
  };

  test('From a file it is what the sandbox starts with, and goes back to', async () => {
    const file = join(tempDir(), 'world.json');
    writeFileSync(file, JSON.stringify(seed));
    const service = await startSandbox({ seed: file }, ['lists']);
    for (const round of ['at start', 'after a reset']) {
      const { now, frozen, companies, applications } = service.state();
      const names = [...companies, ...applications].map(({ name }) => name);
      expect([now, frozen, ...names]).toEqual([START_MS, true, 'Acme', 'Partner app', 'Other app']);
      const { access_token } = service.sandbox.tokens();
      expect(await service.statuses(3, '/contacts', access_token), round).toEqual([503, 200, 429]);
      service.sandbox.clock.run();
      service.company(ACME);
      service.sandbox.reset();
    }
  });

  test('It is refused with every problem and its place', async () => {
    const wrong = { companies: [{ ...ACME, plan: 'x' }, ACME], faults: [{ fault: {} }], tenants: [] };
    await expect(createSandbox({ seed: wrong as unknown as Seed })).rejects.toThrow(
      /companies\.0\.plan: .*\n.*faults\.0\.fault: .*\n.*tenants/,
    );
  });
});

describe('useSandbox', () => {
  test.each(['first', 'second'])('It puts the sandbox back to its start before each test: %s', async () => {
    expect(sandbox.companies()).toHaveLength(3);
    sandbox.company(ACME);
    expect(await tooEarly, 'before the tests').toContain('use it in tests and hooks');
  });
});
