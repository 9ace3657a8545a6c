import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { findFreePort } from '../support/free-port.ts';
import { waitFor } from '../support/wait-for.ts';
import { createWorld } from './support/world.ts';

const HOUR_MS = 60 * 60_000;
/** Fifty in all, of the handlers in each process. */
const CALLS = [13, 13, 12, 12];
/** Long enough for all others to ask, too, if nothing keeps them from it. */
const ANSWER_MS = 1_500;

/** Handlers wait here, each with its list and process, until the test lets them go. */
const gate = createServer(({ url = '' }, response) => {
  const [, list = '', pid = ''] = url.split('/');
  waiting.set(list, { pid, response });
});
const waiting = new Map<string, { pid: string; response: ServerResponse }>();

describe('9. Fifty callers in four processes cause one refresh.', async () => {
  const world = await createWorld({ sandbox: { windowMs: 2_000 } });
  const { control } = world;
  const port = await findFreePort();
  await once(gate.listen(port, '127.0.0.1'), 'listening');
  afterAll(() => {
    gate.close();
    gate.closeAllConnections();
  });
  const handler = join(import.meta.dirname, 'handlers/call-at-once.ts');
  const resources = join(import.meta.dirname, 'handlers/four-lists.ts');
  const env = { TEST_GATE: `http://127.0.0.1:${port}`, TEST_RESOURCES: resources };
  await world.startWeb({ handler, env });
  await Promise.all(CALLS.map(() => world.startWorker({ handler, env })));

  it.each([
    ['has ended', 'due'],
    ['was revoked', 'revoked'],
  ])('asks once when the access token %s', async (_what, why) => {
    const { browser, id, company } = await holdFourProcesses();
    const mark = await control.mark();
    await control.fault({ match: { path: '/oauth/token' }, fault: { delay_ms: ANSWER_MS } });
    if (why === 'due') await control.clock({ advance_ms: HOUR_MS + 1_000 });
    else await control.fault({ match: { path: '/tags' }, fault: { revoke: 'access_token' } });
    letGo(...CALLS);
    await world.waitForDelivery(browser, id);

    const requests = (await control.requests(mark)).filter(({ company_id }) => company_id === company);
    expect(requests.filter(({ path, status }) => path === '/tags' && status === 200)).toHaveLength(50);
    expect(requests.filter(({ path }) => path === '/oauth/token').map(({ status }) => status)).toEqual([200]);
    expect((await world.status(browser, id)).status).toBe('active');
  });

  function letGo(...calls: number[]): void {
    for (const [at, { response }] of [...waiting.values()].entries()) response.end(String(calls[at] ?? 0));
    waiting.clear();
  }

  /** Installs companies until the handlers of the four lists of one wait in four processes. */
  async function holdFourProcesses() {
    const browser = world.browser();
    for (;;) {
      const company = await control.addCompany({ name: 'Wanted', contacts: 1, conversations: 1 });
      const id = await world.install(browser, company);
      await waitFor(() => waiting.size === CALLS.length, 'all handlers');
      const processes = new Set([...waiting.values()].map(({ pid }) => pid));
      if (processes.size === CALLS.length) return { browser, id, company: company.id };
      letGo();
      await world.waitForDelivery(browser, id);
    }
  }
});
