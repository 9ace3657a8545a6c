import { expect, test } from 'vitest';
import { install, isSynced, readStatus, waitForStatus } from '../support/install.ts';
import { redisUrlAt, startRedisServer } from '../support/redis-server.ts';
import { spawnEntry } from '../support/spawn-entry.ts';
import { startTestApp } from '../support/test-app.ts';
import { waitFor } from '../support/wait-for.ts';

test.each([
  ['is dead', 'dead'],
  ['is frozen', 'frozen'],
  ['comes back just then', 'back'],
])(
  'a worker whose Redis %s ends in order on a signal, and the next goes on where it stopped',
  async (_what, how) => {
    const server = await startRedisServer();
    const testApp = await startTestApp({ workers: false, redisUrl: redisUrlAt(server.port) });
    const worker = async () => {
      const process = spawnEntry('src/worker.ts', testApp.env);
      await process.waitForOutput(/the workers run/);
      return process;
    };
    const size = { contacts: 2_000, conversations: 0 };
    const company = await testApp.control.addCompany({ name: 'Without', plan: 'enterprise', ...size });
    await testApp.control.fault({ match: { path: '/contacts' }, fault: { delay_ms: 200 }, times: 1_000 });
    const first = await worker();
    const browser = testApp.session();
    const id = await install(browser, company);
    await waitFor(async () => ((await readStatus(browser, id)).resources.contacts?.pages ?? 0) > 1);

    if (how === 'frozen') server.freeze();
    else await server.kill();
    // The connections are between two tries then.
    if (how === 'back') await first.waitForOutput(/Redis cannot be reached/);
    const ended = first.stop('SIGTERM');
    await first.waitForOutput(/shutting down/);
    if (how === 'back') await server.start();
    expect(await ended, first.output()).toEqual({ code: 0, signal: null });
    // One that comes back may be there again in time.
    if (how !== 'back') expect(first.output()).toContain('"msg":"the connections to Redis are cut');
    expect(first.output()).toContain('"msg":"shut down"');
    expect(first.output()).not.toContain('"level":"fatal"');

    await testApp.control.clearFaults();
    if (how === 'dead') await server.start();
    else server.unfreeze();
    const next = await worker();
    await waitForStatus(browser, id, isSynced);
    expect((await readStatus(browser, id)).resources.contacts?.stored).toBe(size.contacts);
    expect((await next.stop()).code).toBe(0);
  },
);
