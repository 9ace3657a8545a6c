import { expect, test } from 'vitest';
import { addMonths } from '../../src/contract/lifetimes.ts';
import {
  at,
  START_MS,
  startFrozen,
  type TestSandbox,
  type TokenResponse,
} from '../sandbox/support/test-sandbox.ts';

const HOUR_MS = 60 * 60_000;
const REFRESH_END_MS = addMonths(START_MS, 6);

async function install(service: TestSandbox): Promise<TokenResponse> {
  return service.install(at((await service.state()).companies, 0));
}

async function refreshed(service: TestSandbox, refreshToken: string): Promise<TokenResponse> {
  const response = await service.refresh(refreshToken);
  expect(response.status).toBe(200);
  return (await response.json()) as TokenResponse;
}

test('an access token lives 60 minutes', async () => {
  const service = await startFrozen();
  const { access_token } = await install(service);
  await service.advance(HOUR_MS - 1);
  expect((await service.api('/me', access_token)).status).toBe(200);
  await service.advance(1);
  expect((await service.api('/me', access_token)).status).toBe(401);
});

test('a refresh gives a new access token; the earlier one lives to its own end', async () => {
  const service = await startFrozen();
  const first = await install(service);
  await service.advance(HOUR_MS / 2);
  const second = await refreshed(service, first.refresh_token);
  expect(second.access_token).not.toBe(first.access_token);
  expect(Number(second.expires_at) - Number(first.expires_at)).toBe(1800);
  expect((await service.api('/me', first.access_token)).status).toBe(200);
  await service.advance(HOUR_MS / 2);
  expect((await service.api('/me', first.access_token)).status).toBe(401);
  expect((await service.api('/me', second.access_token)).status).toBe(200);
});

test('the refresh token stays the same while it has more than 24 hours to live', async () => {
  const service = await startFrozen();
  const { refresh_token } = await install(service);
  await service.done('clock', { set: REFRESH_END_MS - 24 * HOUR_MS - 1 });
  expect((await refreshed(service, refresh_token)).refresh_token).toBe(refresh_token);
});

test('in its last 24 hours a new one starts another six months', async () => {
  const service = await startFrozen();
  const { refresh_token } = await install(service);
  const rotatedAt = REFRESH_END_MS - 24 * HOUR_MS;
  await service.done('clock', { set: rotatedAt });
  const next = await refreshed(service, refresh_token);
  expect(next.refresh_token).not.toBe(refresh_token);
  await service.done('clock', { set: addMonths(rotatedAt, 6) - 1 });
  expect((await refreshed(service, next.refresh_token)).refresh_token).not.toBe(next.refresh_token);
  await service.advance(1);
  expect((await service.refresh(next.refresh_token)).status).toBe(400);
});

test('an old refresh token lives to its own end beside the new one', async () => {
  const service = await startFrozen();
  const { refresh_token } = await install(service);
  await service.done('clock', { set: REFRESH_END_MS - 1 });
  await refreshed(service, refresh_token);
  const again = await refreshed(service, refresh_token);
  await service.advance(1);
  expect(await (await service.refresh(refresh_token)).json()).toMatchObject({ error: 'invalid_grant' });
  expect((await refreshed(service, again.refresh_token)).refresh_token).toBe(again.refresh_token);
});

test('six months are calendar months in UTC', async () => {
  const service = await startFrozen();
  await service.freeze(Date.UTC(2026, 7, 31, 12));
  const { refresh_token } = await install(service);
  const { tokens } = await service.state();
  const end = Date.UTC(2027, 1, 28, 12);
  expect(tokens.find(({ kind }) => kind === 'refresh')?.expires_at).toBe(end);
  await service.done('clock', { set: end });
  expect((await service.refresh(refresh_token)).status).toBe(400);
});

test('a refresh token is of use to its own application alone', async () => {
  const service = await startFrozen();
  const { refresh_token } = await install(service);
  const response = await service.refresh(refresh_token, await service.application());
  expect(await response.json()).toMatchObject({ error: 'invalid_grant' });
});
