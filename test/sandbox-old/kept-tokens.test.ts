import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createCheckedSandbox } from '../sandbox/support/checked-sandbox.ts';
import { basic } from '../sandbox/support/test-sandbox.ts';
import { createHttpSession } from '../support/http-session.ts';
import { tempDir } from '../support/temp-dir.ts';

interface Tokens {
  access_token: string;
  refresh_token: string;
}

async function status(apiUrl: string, token: string): Promise<number> {
  return (await fetch(`${apiUrl}/me`, { headers: { authorization: `Bearer ${token}` } })).status;
}

async function authorize(sandbox: Awaited<ReturnType<typeof createCheckedSandbox>>): Promise<Tokens> {
  const { application, authUrl, origin } = sandbox;
  const redirectUri = application.redirect_uris[0] ?? '';
  const query = new URLSearchParams({
    response_type: 'code',
    client_id: application.client_id,
    redirect_uri: redirectUri,
  });
  const session = createHttpSession(origin);
  const state = (await session.get('/_sandbox/state')).json() as {
    companies: { teammates: { id: string; is_admin: boolean }[] }[];
  };
  const teammate = state.companies[0]?.teammates.find(({ is_admin }) => is_admin)?.id ?? '';
  const fields = { teammate_id: teammate, decision: 'approve' };
  const back = await session.post(`${authUrl}/oauth/authorize?${query}`, fields, { follow: false });
  const code = back.location?.searchParams.get('code') ?? '';
  const exchange = { grant_type: 'authorization_code', code, redirect_uri: redirectUri };
  const headers = { authorization: basic(application) };
  return (await session.post(`${authUrl}/oauth/token`, exchange, { headers })).json() as Tokens;
}

test('with a file, tokens outlive the sandbox; a reset ends them for good', async () => {
  const tokensFile = join(tempDir(), 'tokens.json');
  const first = await createCheckedSandbox({ tokensFile });
  const tokens = await authorize(first);
  await first.close();

  const second = await createCheckedSandbox({ tokensFile });
  expect(await status(second.apiUrl, tokens.access_token)).toBe(200);
  expect(await status(second.apiUrl, tokens.refresh_token)).toBe(401);
  const refresh = await createHttpSession(second.origin).post(
    `${second.authUrl}/oauth/token`,
    { grant_type: 'refresh_token', refresh_token: tokens.refresh_token },
    { headers: { authorization: basic(second.application) } },
  );
  expect((refresh.json() as Tokens).refresh_token).toBe(tokens.refresh_token);
  await fetch(`${second.origin}/_sandbox/reset`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{}',
  });
  expect(await status(second.apiUrl, tokens.access_token)).toBe(401);
  await second.close();

  const third = await createCheckedSandbox({ tokensFile });
  expect(await status(third.apiUrl, tokens.access_token)).toBe(401);
  await third.close();
});

test('without a file, they end with it', async () => {
  const first = await createCheckedSandbox();
  const tokens = await authorize(first);
  await first.close();
  const second = await createCheckedSandbox();
  expect(await status(second.apiUrl, tokens.access_token)).toBe(401);
  await second.close();
});
