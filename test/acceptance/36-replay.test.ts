import { describe, expect, it } from 'vitest';
import { HandlerReport } from './support/handler-report.ts';
import { createWorld } from './support/world.ts';

const RECORDS = { contacts: 130, conversations: 20 };

describe('36. Replay hands over the whole copy, one list or one record again, without asking the service.', async () => {
  // A check would ask the service.
  const world = await createWorld({ env: { CHECK_INTERVAL_SECONDS: '0' } });
  const report = new HandlerReport();
  await world.startWeb(report.options);
  let worker = await world.startWorker(report.options);
  const { company, browser, id } = await world.installed({ name: 'Again', ...RECORDS });
  await world.waitForDelivery(browser, id);
  const record = report.changes(id, 'contacts')[70]?.id ?? '';

  const press =
    (path: string, fields = {}) =>
    async () =>
      expect((await browser.post(`/instances/${id}/${path}`, fields)).status).toBe(200);
  const command =
    (...args: string[]) =>
    async () => {
      const { code, output } = await world.run('src/cli.ts', ['replay', ...args]);
      expect(code, output).toBe(0);
      // A worker looks for what there is to do when it starts, and then every half a minute.
      await worker.stop();
      worker = await world.startWorker(report.options);
    };

  it.each<[string, () => Promise<void>, Partial<typeof RECORDS> | 'record']>([
    ['everything, by the button', press('replay'), RECORDS],
    ['one list, by the button', press('contacts/replay'), { contacts: RECORDS.contacts }],
    ['one record, by the button', press('contacts/replay', { id: record }), 'record'],
    ['everything, by the command', command(id), RECORDS],
    ['one list, by the command', command(id, 'contacts'), { contacts: RECORDS.contacts }],
    ['one record, by the command', command(id, 'contacts', record), 'record'],
  ])('hands over %s', async (_what, replay, expected) => {
    report.forget(id);
    const mark = await world.control.mark();
    await replay();
    await world.waitForStatus(
      browser,
      id,
      ({ resources }) =>
        report.calls(id).length > 0 &&
        Object.values(resources).every(({ handler }) => handler?.pending === 0),
    );
    const told = (['contacts', 'conversations'] as const).map(
      (list) => [list, report.changes(id, list).map((change) => change.id)] as const,
    );
    if (expected === 'record')
      expect(told).toEqual([
        ['contacts', [record]],
        ['conversations', []],
      ]);
    for (const [list, ids] of told) {
      const copy = (await world.download(browser, id, list)).map((line) => JSON.parse(line).id);
      if (expected !== 'record') expect(ids.sort()).toEqual(expected[list] === undefined ? [] : copy.sort());
    }
    const asked = (await world.control.requests(mark)).filter(({ company_id }) => company_id === company.id);
    expect(asked).toEqual([]);
  });
});
