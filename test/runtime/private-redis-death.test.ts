import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { isRunning } from '../../src/runtime/private-redis/process.ts';
import { findFreePort } from '../support/free-port.ts';
import { createHttpSession } from '../support/http-session.ts';
import { spawnEntry } from '../support/spawn-entry.ts';
import { tempDir } from '../support/temp-dir.ts';
import { waitFor } from '../support/wait-for.ts';

test('web and worker outlive their private Redis, and end it when they end together', async () => {
  const cwd = tempDir();
  const port = await findFreePort();
  const web = spawnEntry('src/web.ts', { PORT: String(port) }, { cwd });
  await web.waitForOutput(/the web app listens/);
  const worker = spawnEntry('src/worker.ts', {}, { cwd });
  await worker.waitForOutput(/the workers run/);
  const redisPid = (): number => JSON.parse(readFileSync(join(cwd, '.data/redis/address.json'), 'utf8')).pid;

  /** It says so for each of its three connections, and each time. */
  const workerIsBack = (times: number) =>
    waitFor(() => (worker.output().match(/Redis is reachable again/g)?.length ?? 0) >= times);

  /** By whichever started it, once that has joined it: the connections of both may be back before. */
  const restartsTold = () =>
    `${web.output()}${worker.output()}`.split('has died: it is started again').length - 1;

  const first = redisPid();
  process.kill(first, 'SIGKILL');
  const machine = createHttpSession(`http://127.0.0.1:${port}`);
  await web.waitForOutput(/Redis is reachable again/);
  await workerIsBack(3);
  await waitFor(async () => (await machine.get('/readyz')).status === 200);
  const second = redisPid();
  expect(second).not.toBe(first);
  await waitFor(() => restartsTold() > 0);

  // A Redis that hangs has said nothing of its end: whoever is on call has to be told what to do.
  process.kill(second, 'SIGSTOP');
  const answer = await machine.get('/readyz');
  expect(answer.status).toBe(503);
  expect(answer.json()).toMatchObject({
    checks: { redis: expect.stringMatching(/^Redis cannot be reached: it is the app's own one/) },
  });
  process.kill(second, 'SIGKILL');
  await waitFor(async () => (await machine.get('/readyz')).status === 200);

  // A worker ends in order only when it has its Redis.
  await workerIsBack(6);
  const third = redisPid();
  await waitFor(() => restartsTold() > 1);
  expect(await Promise.all([web.stop('SIGINT'), worker.stop('SIGINT')])).toEqual([
    { code: 0, signal: null },
    { code: 0, signal: null },
  ]);
  expect(isRunning(third)).toBe(false);
  expect(restartsTold()).toBe(2);
});
