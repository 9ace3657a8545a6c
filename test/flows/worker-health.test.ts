import { expect, test } from 'vitest';
import { findFreePort } from '../support/free-port.ts';
import { createHttpSession } from '../support/http-session.ts';
import { install, isSynced, waitForStatus } from '../support/install.ts';
import { spawnEntry } from '../support/spawn-entry.ts';
import { startTestApp } from '../support/test-app.ts';

test('a worker tells machines that it is well, and what it has done', async () => {
  const testApp = await startTestApp({ workers: false });
  const company = await testApp.control.addCompany({
    name: 'Counted',
    plan: 'starter',
    contacts: 120,
    conversations: 10,
  });
  const port = await findFreePort();
  const worker = spawnEntry('src/worker.ts', { ...testApp.env, WORKER_PORT: String(port) });
  await worker.waitForOutput(/the workers run/);
  expect(worker.output()).toMatch(new RegExp(`"port":${port},"msg":"health checks and metrics listen"`));
  const machine = createHttpSession(`http://127.0.0.1:${port}`);
  expect((await machine.get('/healthz')).status).toBe(200);
  expect((await machine.get('/readyz')).json()).toMatchObject({ checks: { database: 'ok', redis: 'ok' } });

  const browser = testApp.session();
  await waitForStatus(browser, await install(browser, company), isSynced);
  const { body } = await machine.get('/metrics');
  expect(body).toContain('sync_pages_total{resource="contacts"} 2');
  expect(body).toContain('sync_records_total{resource="contacts"} 120');
  expect(body).toContain('service_requests_total{route="/contacts",outcome="200"} 2');
  expect((await worker.stop('SIGTERM')).code).toBe(0);
});

test('a worker on a port that is in use ends, and names the variable to change', async () => {
  const { env } = await startTestApp({ workers: false });
  const second = spawnEntry('src/worker.ts', { ...env, WORKER_PORT: env.PORT ?? '' });
  expect((await second.exited).code).toBe(1);
  expect(second.output()).toContain(`Port ${env.PORT} is in use`);
  expect(second.output()).toContain('set WORKER_PORT to another one');
});
