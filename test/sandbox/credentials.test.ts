import { describe, expect, test } from 'vitest';
import { createSandbox } from '../../src/sandbox/sandbox.ts';
import { at, basic, type Credentials, START_MS, startFrozen } from './support/test-sandbox.ts';

/** As RFC 6749, section 2.3.1, has it; the service does not. */
function formEncoded({ client_id, client_secret }: Credentials): string {
  const encode = (value: string) => new URLSearchParams({ value }).toString().slice('value='.length);
  return `Basic ${btoa(`${encode(client_id)}:${encode(client_secret)}`)}`;
}

async function start() {
  const service = await startFrozen();
  const company = await service.company();
  /** The status of an exchange of a good code, and the description of the error. */
  const exchange = async (
    application: Credentials,
    authorization: string,
    more: Record<string, string> = {},
  ) => {
    const code = await service.code(company, application);
    const redirect_uri = at(application.redirect_uris, 0);
    const response = await fetch(`${service.sandbox.authUrl}/oauth/token`, {
      method: 'POST',
      headers: { authorization },
      body: new URLSearchParams({ grant_type: 'authorization_code', code, redirect_uri, ...more }),
    });
    const { error_description } = (await response.json()) as { error_description?: string };
    return [response.status, error_description ?? ''] as const;
  };
  return { service, company, exchange };
}

describe('Authentication', () => {
  test('5. Form-encoded credentials get a 401 that says so; a generated secret works with both', async () => {
    const { service, exchange } = await start();
    const { application } = service.sandbox;
    const [status, description] = await exchange(application, formEncoded(application));
    expect([status, description]).toEqual([401, expect.stringContaining('form-encoded')]);
    const generated = await service.application();
    expect(generated.client_secret).toMatch(/^[\w-]{40,}$/);
    expect(await exchange(generated, formEncoded(generated))).toEqual([200, '']);
  });
});

describe('Authentication (our choice)', () => {
  test('5. The same credentials in the body are taken, others are not', async () => {
    const { service, exchange } = await start();
    const { application } = service.sandbox;
    const { client_id, client_secret } = application;
    expect(await exchange(application, basic(application), { client_id, client_secret })).toEqual([200, '']);
    const [status] = await exchange(application, basic(application), { client_secret: 'other' });
    expect(status).toBe(400);
  });

  test('An application may be registered with chosen credentials, once', async () => {
    const { service, exchange } = await start();
    const chosen = { client_id: 'acme', client_secret: 'a secret: of ours' };
    const application = await service.application(chosen);
    expect(application).toMatchObject(chosen);
    expect(await exchange(application, basic(application))).toEqual([200, '']);
    const spec = { name: 'X', redirect_uris: ['http://x.example/'] };
    expect((await service.control('applications', { ...spec, client_id: 'acme' })).status).toBe(400);
    expect((await service.control('applications', { ...spec, client_id: 'a:b' })).status).toBe(400);
  });

  test.each([
    ['string', '1805023815'],
    ['number', 1805023815],
    ['iso', '2027-03-14T11:30:15.000Z'],
  ] as const)('expires_at can be read as %s', async (expiresAt, expected) => {
    const sandbox = await createSandbox({ readings: { expiresAt }, seed: { now: START_MS, frozen: true } });
    expect(sandbox.tokens().expires_at).toBe(expected);
    await sandbox.close();
  });
});
