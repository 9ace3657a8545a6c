import { describe, expect, test } from 'vitest';
import { at, START_MS, startCompany, startFrozen, startSandbox } from './support/test-sandbox.ts';

const MINUTE_MS = 60_000;

describe('The clock', () => {
  test('It runs with real time, or from a given moment, until it is frozen', async () => {
    const { now, frozen } = (await startSandbox()).state();
    expect([frozen, Math.abs(now - Date.now()) < 5_000]).toEqual([false, true]);
    const service = await startSandbox({ now: START_MS });
    const stopped = await service.done<{ now: number }>('clock', { frozen: true });
    expect(Math.abs(stopped.now - START_MS)).toBeLessThan(MINUTE_MS);
    expect(service.state()).toMatchObject({ ...stopped, frozen: true });
  });

  test('It is set and moved on, and runs again from there; every answer has it as Date', async () => {
    const service = await startFrozen();
    for (const [move, now] of [
      [{ advance_ms: 1_500 }, START_MS + 1_500],
      [{ set: 1_900_000_000_123 }, 1_900_000_000_123],
      [{ set: '2030-03-17' }, Date.UTC(2030, 2, 17)],
      [{ set: '2030-03-17T19:46:40.999+02:00', advance_ms: 0 }, Date.UTC(2030, 2, 17, 17, 46, 40, 999)],
    ] as const) {
      expect(await service.done('clock', move)).toEqual({ now, frozen: true });
    }
    for (const path of ['/', '/api/me', '/auth/oauth/token', '/_sandbox/state', '/nothing']) {
      const { headers } = await fetch(`${service.sandbox.origin}${path}`);
      expect([path, headers.get('date')]).toEqual([path, 'Sun, 17 Mar 2030 17:46:40 GMT']);
    }
    await service.done('clock', { set: START_MS, frozen: false });
    const { now, frozen } = service.state();
    expect([frozen, Math.abs(now - START_MS) < MINUTE_MS]).toEqual([false, true]);
  });
});

describe('Snapshots', () => {
  async function start() {
    const parts = await startCompany({ contacts: 1_000_000 });
    return { ...parts, ...parts.service.sandbox, company: parts.company };
  }

  test('All but the journal comes back: clock, companies, tokens, limits, guards, faults', async () => {
    const { service, company, token, faults, clock, snapshot } = await start();
    const patch = async () =>
      (await service.call('PATCH', `/teammates/${at(company.teammates, 0).id}`, token, {})).status;
    await service.statuses(51, '/me', token);
    for (let request = 0; request < 4; request++) expect(await patch()).toBe(200);
    faults.order({ fault: { status: 503 }, match: { path: '/contacts' } });
    const exchange = async (code: string) => (await service.exchange(code)).body.access_token;
    const [spent, code] = [service.code(company), service.code(company)];
    const old = await exchange(spent);
    const [before, id] = [service.state(), snapshot()];
    const young = await exchange(code);
    const replay = async () => [
      await patch(),
      await patch(),
      ...(await service.statuses(2, '/contacts', token)),
    ];
    expect(await replay()).toEqual([200, 429, 503, 200]);
    const later = at(service.company().api_tokens, 0).token;
    faults.order({ fault: { status: 500 }, times: 9 });
    clock.run();
    clock.advance(90 * MINUTE_MS);
    const rows = service.journal();
    expect(await service.done('restore', { id })).toEqual({ now: START_MS, frozen: true });
    expect([service.state(), service.journal()]).toEqual([before, rows]);
    for (const token of [later, young]) expect(await service.statuses(1, '/me', token)).toEqual([401]);
    expect(await replay()).toEqual([200, 429, 503, 200]);
    expect(await service.statuses(1, '/me', old)).toEqual([200]);
    expect([await exchange(code), await exchange(spent)]).toEqual([expect.any(String), undefined]);
    expect(await service.statuses(1, '/me', old), 'the code’s second use ends it').toEqual([401]);
  });

  test('Records and external conversations come back, as often as you like', async () => {
    const { service, company, companies, token, snapshot, restore, reset } = await start();
    const tag = `/tags/${at(company.tags, 0)}`;
    const receive = (external_conversation_id: string) =>
      service.call('POST', `/channels/${at(company.channels, 0)}/inbound_messages`, token, {
        ...{ sender: { handle: 'ada@example.com' }, body: 'Hello' },
        metadata: { external_conversation_id },
      });
    await receive('one');
    const read = async () => JSON.stringify([companies().at(-1), await service.call('GET', tag, token)]);
    const [before, id] = [await read(), snapshot()];
    for (const name of ['one', 'two', 'three']) {
      await service.call('PATCH', tag, token, { name });
      await service.call('POST', `${tag}/children`, token, { name });
      for (const conversation of ['two', 'one']) await receive(conversation);
      expect(companies().at(-1)?.counts.conversations).toBe(company.counts.conversations + 2);
      if (name === 'two') reset();
      restore(id);
      expect(await read()).toBe(before);
    }
  });
});
