import { expect, test } from 'vitest';
import type { ErrorBody } from '../../src/contract/errors.ts';
import { GUARDS } from '../../src/contract/guards.ts';
import { HEADER } from '../../src/contract/headers.ts';
import { Clock } from '../../src/sandbox/clock.ts';
import { takeSnapshot } from '../../src/sandbox/snapshots.ts';
import { createWorld } from '../../src/sandbox/world.ts';
import {
  at,
  type Company,
  START_MS,
  startFrozen,
  type TestSandbox,
} from '../sandbox/support/test-sandbox.ts';

const MINUTE_MS = 60_000;

async function take(service: TestSandbox): Promise<string> {
  const response = await service.control('snapshot', {});
  expect(response.status).toBe(201);
  return ((await response.json()) as { id: string }).id;
}

function restore(service: TestSandbox, id: string) {
  return service.done<{ now: number; frozen: boolean }>('restore', { id });
}

async function ready(spec: object = {}) {
  const service = await startFrozen();
  const company = await service.company(spec);
  return { service, company, token: at(company.api_tokens, 0).token };
}

const adminOf = ({ teammates }: Company) => teammates.find(({ is_admin }) => is_admin)?.id ?? '';

test('a company, an application and the clock come back, and what came later is gone', async () => {
  const { service, company } = await ready();
  const before = await service.state();
  const id = await take(service);
  const later = await service.company({ name: 'Later' });
  const application = await service.application();
  await service.advance(90 * MINUTE_MS);
  await service.done('clock', { frozen: false });
  expect(await restore(service, id)).toEqual({ now: START_MS, frozen: true });
  expect(await service.state()).toEqual(before);
  expect((await service.api('/me', at(company.api_tokens, 0).token)).status).toBe(200);
  expect((await service.api('/me', at(later.api_tokens, 0).token)).status).toBe(401);
  expect((await service.refresh('x', application)).status).toBe(401);
});

test('a running clock runs on from where it stood', async () => {
  const { service } = await ready();
  await service.done('clock', { frozen: false });
  const id = await take(service);
  await service.done('clock', { frozen: true, advance_ms: 90 * MINUTE_MS });
  const { now, frozen } = await restore(service, id);
  expect(frozen).toBe(false);
  expect(now - START_MS).toBeGreaterThanOrEqual(0);
  expect(now - START_MS).toBeLessThan(MINUTE_MS);
});

test('tokens issued before work, those issued after do not; what was revoked after is valid again', async () => {
  const { service, company } = await ready();
  const old = await service.install(company);
  const id = await take(service);
  const young = await service.install(company);
  await service.done('faults', { match: { path: '/me' }, fault: { revoke: 'grant' } });
  await service.api('/me', old.access_token);
  expect((await service.api('/me', old.access_token)).status).toBe(401);
  await restore(service, id);
  expect((await service.api('/me', old.access_token)).status).toBe(200);
  expect((await service.refresh(old.refresh_token)).status).toBe(200);
  expect((await service.api('/me', young.access_token)).status).toBe(401);
  expect((await service.refresh(young.refresh_token)).status).toBe(400);
});

test('tokens that come back still share their grant: a second use of the code ends both', async () => {
  const { service, company } = await ready();
  const code = await service.code(company);
  const first = (await (await service.exchange(code)).json()) as { access_token: string };
  const id = await take(service);
  await restore(service, id);
  expect((await service.exchange(code)).status).toBe(400);
  expect((await service.api('/me', first.access_token)).status).toBe(401);
});

test('a code that was spent after can be spent again', async () => {
  const { service, company } = await ready();
  const code = await service.code(company);
  const id = await take(service);
  expect((await service.exchange(code)).status).toBe(200);
  await restore(service, id);
  expect((await service.exchange(code)).status).toBe(200);
});

test('records that were changed or created are as they were', async () => {
  const { service, company, token } = await ready();
  const tag = `/tags/${at(company.tags, 0)}`;
  await service.call('PATCH', tag, token, { name: 'before' });
  const before = (await service.call('GET', tag, token)).body;
  const id = await take(service);
  await service.call('PATCH', tag, token, { name: 'after' });
  const child = await service.call<{ id: string }>('POST', `${tag}/children`, token, { name: 'child' });
  await restore(service, id);
  expect((await service.call('GET', tag, token)).body).toEqual(before);
  expect((await service.call('GET', `/tags/${child.body.id}`, token)).status).toBe(404);
});

test('threads of other systems go on where they stood: one from before, and none from after', async () => {
  const { service, company, token } = await ready();
  const receive = async (external_id: string, external_conversation_id: string) => {
    const { status } = await service.call(
      'POST',
      `/channels/${at(company.channels, 0)}/inbound_messages`,
      token,
      {
        sender: { handle: 'ada@example.com' },
        body: 'Hello',
        metadata: { external_id, external_conversation_id },
      },
    );
    expect(status).toBeLessThan(300);
    const { companies } = await service.state();
    return companies.find(({ id }) => id === company.id)?.counts.conversations;
  };
  expect(await receive('one', 'before')).toBe(company.counts.conversations + 1);
  const id = await take(service);
  expect(await receive('two', 'after')).toBe(company.counts.conversations + 2);
  await restore(service, id);
  expect(await receive('three', 'before')).toBe(company.counts.conversations + 1);
  expect(await receive('four', 'after')).toBe(company.counts.conversations + 2);
});

test('limits, bursts and guards stand where they stood', async () => {
  const { service, company, token } = await ready();
  const patch = () => service.call('PATCH', `/teammates/${adminOf(company)}`, token, { first_name: 'Ada' });
  await service.statuses(47, '/me', token);
  for (let request = 0; request < 4; request++) await patch();
  const before = await service.state();
  const id = await take(service);
  expect([(await patch()).status, (await patch()).status]).toEqual([200, 429]);
  await service.statuses(60, '/me', token);
  expect((await service.api('/me', token)).status).toBe(429);
  await restore(service, id);
  expect(await service.state()).toEqual(before);
  const { status, headers } = await patch();
  expect([status, headers.get(HEADER.remaining), headers.get(HEADER.burstRemaining)]).toEqual([
    200,
    '0',
    '23',
  ]);
  expect((await patch()).status, 'the guard had one left').toBe(429);
});

test('faults that were ordered before are ordered again, and later ones are not', async () => {
  const { service, token } = await ready();
  await service.done('faults', { fault: { status: 503 } });
  const id = await take(service);
  expect(await service.statuses(2, '/me', token)).toEqual([503, 200]);
  await service.done('faults', { fault: { status: 500 }, times: 9 });
  await restore(service, id);
  expect(await service.statuses(2, '/me', token)).toEqual([503, 200]);
});

test('the journal goes on', async () => {
  const { service, token } = await ready();
  const id = await take(service);
  await service.api('/me', token);
  await restore(service, id);
  await service.api('/contacts', token);
  expect((await service.journal()).map(({ n, path }) => [n, path])).toEqual([
    [1, '/me'],
    [2, '/contacts'],
  ]);
});

test('a snapshot is restored as often as one likes, and after a reset; what happens between leaves it alone', async () => {
  const { service, company, token } = await ready();
  const tag = `/tags/${at(company.tags, 0)}`;
  const before = (await service.call('GET', tag, token)).body;
  const id = await take(service);
  for (const name of ['one', 'two', 'three']) {
    expect((await service.call('PATCH', tag, token, { name })).status).toBe(200);
    if (name === 'two') await service.done('reset', {});
    await restore(service, id);
    expect((await service.call('GET', tag, token)).body).toEqual(before);
  }
});

test('snapshots stand beside one another; the newest 20 are kept and listed', async () => {
  const { service } = await ready();
  const ids: string[] = [];
  for (let minute = 0; minute < 21; minute++) {
    ids.push(await take(service));
    await service.advance(MINUTE_MS);
  }
  const list = await (await fetch(`${service.sandbox.origin}/_sandbox/snapshots`)).json();
  expect(list).toEqual(
    ids.slice(1).map((id, place) => ({ id, at: START_MS + (place + 1) * MINUTE_MS, frozen: true })),
  );
  const gone = await service.control('restore', { id: ids[0] });
  expect([gone.status, (await gone.json()) as ErrorBody]).toMatchObject([
    404,
    { _error: { message: `There is no snapshot ${ids[0]}: the newest 20 are kept.` } },
  ]);
  expect((await restore(service, at(ids, 7))).now).toBe(START_MS + 7 * MINUTE_MS);
  expect((await restore(service, at(ids, 20))).now).toBe(START_MS + 20 * MINUTE_MS);
});

test('a company of a million contacts is in a snapshot without being copied', async () => {
  const { service, company, token } = await ready({ contacts: 1_000_000 });
  const page = async () => (await service.api('/contacts?limit=3', token)).text();
  const before = await page();
  const { heapUsed } = process.memoryUsage();
  const ids = [await take(service), await take(service), await take(service)];
  await service.done('reset', {});
  for (const id of ids) await restore(service, id);
  expect(process.memoryUsage().heapUsed - heapUsed, 'bytes').toBeLessThan(50_000_000);
  expect(await page()).toBe(before);
  expect((await service.state()).companies.at(-1)).toEqual(company);
});

test.each([{}, { id: '' }, { id: 5 }, { id: 'snp_1', more: 1 }])('refuses to restore %j', async (body) => {
  const { service } = await ready();
  await take(service);
  expect((await service.control('restore', body)).status).toBe(400);
});

test('every part of the service that can be kept is in a snapshot', () => {
  const readings = { expiresAt: 'string', changes: 200 } as const;
  const settings = {
    windowMs: 1,
    latencyMs: 0,
    callTimeoutMs: 1,
    redirectUris: [],
    guards: GUARDS,
    readings,
  };
  const world = createWorld(settings, new Clock());
  const parts = Object.entries(world).filter(([, part]) => 'state' in part);
  expect(Object.keys(takeSnapshot(world).parts).toSorted()).toEqual(parts.map(([name]) => name).toSorted());
  expect(parts.length).toBeGreaterThan(6);
});

test('neither takes a body that it does not know', async () => {
  const { service } = await ready();
  expect((await service.control('snapshot', { name: 'x' })).status).toBe(400);
});
