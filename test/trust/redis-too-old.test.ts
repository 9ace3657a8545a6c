import { expect, test } from 'vitest';
import { findFreePort } from '../support/free-port.ts';
import { startOldRedis } from '../support/old-redis.ts';
import { spawnEntry } from '../support/spawn-entry.ts';
import { startTestApp } from '../support/test-app.ts';

const REASON =
  /Redis version needs to be greater or equal than 5\.0\.0 Current: 4\.0\.0 *\. Start the app again/;

test('a Redis that is too old for the queues is told by readiness of every process, and a worker that cannot use it gives way, and ends in time', async () => {
  const testApp = await startTestApp({ workers: false, redisUrl: await startOldRedis() });
  const web = await testApp.session().get('/readyz');
  expect(web.status).toBe(503);
  expect(web.body).toMatch(REASON);

  const port = await findFreePort();
  const worker = spawnEntry('src/worker.ts', { ...testApp.env, WORKER_PORT: String(port) });
  await worker.waitForOutput(/the workers run/);
  await worker.waitForOutput(/the schedules could not be looked after/);
  const ask = (path: string) =>
    fetch(`http://127.0.0.1:${port}${path}`, { signal: AbortSignal.timeout(5_000) });
  // Several times: what it tries again, it tries meanwhile.
  for (let times = 0; times < 3; times++) {
    expect((await ask('/healthz')).status).toBe(200);
    const readiness = await ask('/readyz');
    expect(readiness.status).toBe(503);
    expect(await readiness.text()).toMatch(REASON);
  }
  expect(await worker.stop()).toEqual({ code: 0, signal: null });
});
