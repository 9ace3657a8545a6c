import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { HEADER } from '../../src/contract/headers.ts';
import { EXPOSE_WORDS } from '../../src/contract/sandbox.ts';
import { tempDir } from '../support/temp-dir.ts';
import { at, startCompany, startFrozen, startSandbox } from './support/test-sandbox.ts';

interface Refusal extends Record<string, unknown> {
  _error?: { title: string; message?: string };
}

describe('Errors (our choice)', () => {
  test('A strict sandbox refuses what the specification lacks, and names all of it', async () => {
    const { service, token, company } = await startCompany({ plan: 'enterprise' }, { strict: true });
    const tag = `/tags/${at(company.tags, 0)}`;
    for (const [method, path, body, names] of [
      [
        'GET',
        '/conversations?q[updated_after]=1&sort_by=x&limit=3',
        undefined,
        'query q[updated_after], query sort_by',
      ],
      ['GET', '/contacts?page=2', undefined, 'query page'],
      ['PATCH', `${tag}?x=1`, { colour: 'red' }, 'query x, body colour'],
    ] as const) {
      const { status, body: answer } = await service.call<Refusal>(method, path, token, body);
      expect([status, JSON.stringify(answer._error)]).toEqual([
        400,
        expect.stringContaining(`${names} (strict)`),
      ]);
    }
    expect((await service.call('GET', '/contacts?limit=3', token)).status).toBe(200);
    expect((await service.call('PATCH', tag, token, { name: 'New' })).status).toBe(200);
    const lenient = await startCompany();
    expect((await lenient.service.call('GET', '/contacts?page=2', lenient.token)).status).toBe(200);
    const seeded = await startSandbox({ seed: { strict: true } });
    const own = at(at(seeded.state().companies, 0).api_tokens, 0).token;
    expect((await seeded.call('GET', '/contacts?page=2', own)).status).toBe(400);
  });
});

describe('The control interface', () => {
  test('Consent and tokens come over HTTP, too, of a teammate or a company', async () => {
    const { service, company } = await startCompany();
    const other = service.application();
    const { client_id } = other;
    const state = { client_id, teammate_id: company.id, state: 's' };
    const consent = await service.done<{ code: string; url: string }>('authorize', state);
    expect(consent.url).toBe(`http://other.example/back?code=${consent.code}&state=s`);
    expect((await service.exchange(consent.code, other)).status).toBe(200);
    const tokens = await service.done<{ access_token: string }>('tokens', { teammate_id: company.id });
    expect(await (await service.api('/me', tokens.access_token)).json()).toMatchObject({ id: company.id });
    expect((await service.control('tokens', { client_id: 'nobody' })).status).toBe(404);
    const guest = company.teammates.find(({ is_admin }) => !is_admin)?.id;
    expect((await service.control('authorize', { teammate_id: guest })).status).toBe(403);
  });

  test('Everything is saved to a file and loaded from it, unless others reach the sandbox', async () => {
    const { service, company, token } = await startCompany();
    const file = join(tempDir(), 'world');
    await service.done('save', { file });
    service.sandbox.reset();
    expect((await service.api('/me', token)).status).toBe(401);
    await service.done('load', { file });
    expect(await (await service.api('/me', token)).json()).toMatchObject({ id: company.id });
    expect(await (await service.control('load', { file: `${file}.no` })).text()).toContain('ENOENT');
    const exposed = await startSandbox({ host: '0.0.0.0', expose: EXPOSE_WORDS });
    for (const call of ['save', 'load']) expect((await exposed.control(call, { file })).status).toBe(403);
  });

  test('A change names values, which are checked; requests are found by method and route', async () => {
    const { service, company, token } = await startCompany({
      contacts: [{ id: 'crd_a', name: 'Ada' }, { id: 'crd_b' }],
    });
    const change = [{ id: 'crd_a', name: 'Countess', custom_fields: { vip: true } }, 'crd_b'];
    const path = `companies/${company.id}/records`;
    expect(await service.done(path, { resource: 'contacts', change })).toMatchObject({
      changed: ['crd_a', 'crd_b'],
    });
    const { body } = await service.call('GET', '/contacts/crd_a', token);
    expect(body).toMatchObject({ id: 'crd_a', name: 'Countess', custom_fields: { vip: true, revision: 1 } });
    for (const [wrong, words] of [
      [{ id: 'crd_a', name: 5 }, 'change.0.name'],
      [{ name: 'nobody' }, 'list of so many ids or records'],
    ] as const) {
      const answer = await service.control(path, { resource: 'contacts', change: [wrong] });
      expect([answer.status, await answer.text()]).toEqual([400, expect.stringContaining(words)]);
    }
    const unknown = await service.control(path, {
      resource: 'contacts',
      change: [{ id: 'crd_x', name: 'X' }],
    });
    expect(unknown.status).toBe(404);

    await service.call('GET', '/contacts', token);
    await service.call('PATCH', `/tags/${at(company.tags, 0)}`, token, { name: 'New' });
    const { sandbox } = service;
    const found = (filter: object) => sandbox.requests(filter).map((row) => `${row.method} ${row.path}`);
    expect(found({ path: '/contacts/:contact_id' })).toEqual(['GET /contacts/crd_a']);
    expect(found({ method: 'patch', path: '/tags/:tag_id' })).toEqual([`PATCH /tags/${at(company.tags, 0)}`]);
    expect(found({ method: 'POST' })).toEqual([]);
    expect(sandbox.requests(2)).toEqual(sandbox.requests({ after: 2 }));
  });

  test('A fault that no request can meet is refused, with the nearest name', async () => {
    const { service, company } = await startCompany();
    const order = (match: object) => service.control('faults', { match, fault: { status: 500 } });
    for (const [match, words] of [
      [{ path: '/contact' }, 'no route has /contact. The nearest is /contacts.'],
      [
        { path: '/conversations/:conversation_id/mesages' },
        'nearest is /conversations/:conversation_id/messages.',
      ],
      [{ company_id: `${company.id}x` }, `The nearest is ${company.id}.`],
    ] as const) {
      const answer = await order(match);
      expect([answer.status, await answer.text()]).toEqual([400, expect.stringContaining(words)]);
    }
    for (const path of ['/contacts/:contact_id', '/contacts/crd_1', '/oauth/token', '/me']) {
      expect((await order({ path })).status, path).toBe(201);
    }
  });
});

describe('Authentication (our choice)', () => {
  test('An application may have a form of expires_at of its own', async () => {
    const service = await startFrozen({ readings: { expiresAt: 'iso' } });
    const company = service.company();
    const form = (expires_at?: string) => {
      const application = service.application(expires_at === undefined ? {} : { expires_at });
      return service.install(company, application).expires_at;
    };
    expect([form('number'), form('string'), form()]).toEqual([
      expect.any(Number),
      expect.stringMatching(/^\d+$/),
      expect.stringContaining('T'),
    ]);
  });
});

describe('Limits: additional rate guards (our choice)', () => {
  test('A new account without an id shares its guard with no other request', async () => {
    const { service, token } = await startCompany({ plan: 'enterprise' });
    for (let request = 0; request < 8; request++) {
      const { status, headers } = await service.call('POST', '/accounts', token, { name: 'New' });
      expect([status, headers.get(HEADER.tier)]).toEqual([201, '2']);
    }
  });
});
