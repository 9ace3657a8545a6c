import { describe, expect, test } from 'vitest';
import { at, START_MS, startCompany, startFrozen, startSandbox } from './support/test-sandbox.ts';

const MINUTE_MS = 60_000;

describe('The clock', () => {
  test('It runs with real time, or from a given moment, until it is frozen', async () => {
    const { now, frozen } = await (await startSandbox()).state();
    expect([frozen, Math.abs(now - Date.now()) < 5_000]).toEqual([false, true]);
    const service = await startSandbox({ now: START_MS });
    const stopped = await service.done<{ now: number }>('clock', { frozen: true });
    expect(Math.abs(stopped.now - START_MS)).toBeLessThan(MINUTE_MS);
    expect(await service.state()).toMatchObject({ ...stopped, frozen: true });
  });

  test('It is set to milliseconds or an ISO date, moved on, and runs again from there', async () => {
    const service = await startFrozen();
    for (const [move, now] of [
      [{ advance_ms: 1_500 }, START_MS + 1_500],
      [{ set: 1_900_000_000_123 }, 1_900_000_000_123],
      [{ set: '2030-03-17' }, Date.UTC(2030, 2, 17)],
      [{ set: '2030-03-17T19:46:40+02:00', advance_ms: 1 }, Date.UTC(2030, 2, 17, 17, 46, 40, 1)],
    ] as const) {
      expect(await service.done('clock', move)).toEqual({ now, frozen: true });
    }
    await service.done('clock', { set: START_MS, frozen: false });
    const { now, frozen } = await service.state();
    expect([frozen, Math.abs(now - START_MS) < MINUTE_MS]).toEqual([false, true]);
  });

  test('Every answer tells it in its Date header', async () => {
    const service = await startFrozen();
    await service.freeze(Date.UTC(2031, 0, 5, 1, 2, 3, 999));
    for (const path of ['/', '/api/me', '/auth/oauth/token', '/_sandbox/state', '/nothing']) {
      const { headers } = await fetch(`${service.sandbox.origin}${path}`);
      expect([path, headers.get('date')]).toEqual([path, 'Sun, 05 Jan 2031 01:02:03 GMT']);
    }
  });
});

describe('Snapshots', () => {
  async function start() {
    const { service, company, token } = await startCompany({ contacts: 1_000_000 });
    const take = async () => (await service.done<{ id: string }>('snapshot', {})).id;
    const restore = (id = '') => service.done<{ now: number }>('restore', { id });
    return { service, company, token, take, restore };
  }

  test('All but the journal comes back: clock, companies, limits, guards, faults', async () => {
    const { service, company, token, take, restore } = await start();
    const patch = async () =>
      (await service.call('PATCH', `/teammates/${at(company.teammates, 0).id}`, token, {})).status;
    await service.statuses(51, '/me', token);
    for (let request = 0; request < 4; request++) expect(await patch()).toBe(200);
    await service.done('faults', { fault: { status: 503 }, match: { path: '/contacts' } });
    const before = await service.state();
    const id = await take();

    const replay = async () => [
      await patch(),
      await patch(),
      ...(await service.statuses(2, '/contacts', token)),
    ];
    expect(await replay()).toEqual([200, 429, 503, 200]);
    const later = await service.company({ name: 'Later' });
    const application = await service.application();
    await service.done('faults', { fault: { status: 500 }, times: 9 });
    await service.done('clock', { frozen: false, advance_ms: 90 * MINUTE_MS });
    const rows = await service.journal();
    expect(await restore(id)).toEqual({ now: START_MS, frozen: true });
    expect(await service.state()).toEqual(before);
    expect(await service.journal()).toEqual(rows);
    expect(await service.statuses(1, '/me', at(later.api_tokens, 0).token)).toEqual([401]);
    expect((await service.refresh('x', application)).status).toBe(401);
    expect(await replay()).toEqual([200, 429, 503, 200]);
  });

  test('Codes and tokens are as they were: spent, valid, or not there yet', async () => {
    const { service, company, take, restore } = await start();
    const exchange = async (code: string) =>
      ((await (await service.exchange(code)).json()) as { access_token?: string }).access_token ?? '';
    const [spent, code] = [await service.code(company), await service.code(company)];
    const old = await exchange(spent);
    const id = await take();
    const young = await exchange(code);
    await service.done('faults', { fault: { revoke: 'grant' } });
    expect(await service.statuses(2, '/me', old)).toEqual([200, 401]);
    await restore(id);
    expect(await service.statuses(1, '/me', old)).toEqual([200]);
    expect(await service.statuses(1, '/me', young)).toEqual([401]);
    expect(await exchange(code)).not.toBe('');
    expect(await exchange(spent)).toBe('');
    expect(await service.statuses(1, '/me', old), 'the code’s second use ends it').toEqual([401]);
  });

  test('Records and external conversations come back, as often as you like', async () => {
    const { service, company, token, take, restore } = await start();
    const tag = `/tags/${at(company.tags, 0)}`;
    const receive = (external_conversation_id: string) =>
      service.call('POST', `/channels/${at(company.channels, 0)}/inbound_messages`, token, {
        sender: { handle: 'ada@example.com' },
        body: 'Hello',
        metadata: { external_conversation_id },
      });
    const read = async () => [
      (await service.state()).companies.at(-1),
      await service.call('GET', tag, token),
    ];
    await receive('one');
    const before = JSON.stringify(await read());
    const id = await take();
    for (const name of ['one', 'two', 'three']) {
      await service.call('PATCH', tag, token, { name });
      await service.call('POST', `${tag}/children`, token, { name });
      for (const conversation of ['two', 'one']) await receive(conversation);
      const counts = (await service.state()).companies.at(-1)?.counts;
      expect(counts?.conversations).toBe(company.counts.conversations + 2);
      if (name === 'two') await service.done('reset', {});
      await restore(id);
      expect(JSON.stringify(await read())).toBe(before);
    }
  });

  test('The newest 20 are kept and listed; they copy no generated records', async () => {
    const { service, take, restore } = await start();
    const { heapUsed } = process.memoryUsage();
    const ids: string[] = [];
    for (let minute = 0; minute < 21; minute++) {
      ids.push(await take());
      await service.advance(MINUTE_MS);
    }
    expect(process.memoryUsage().heapUsed - heapUsed, 'bytes').toBeLessThan(50_000_000);
    const listed = ids.map((id, minute) => ({ id, at: START_MS + minute * MINUTE_MS, frozen: true }));
    expect(await service.done('snapshots', undefined, 'GET')).toEqual(listed.slice(1));
    expect((await service.control('restore', { id: ids[0] })).status).toBe(404);
    expect((await restore(ids[7])).now).toBe(START_MS + 7 * MINUTE_MS);
  });
});
