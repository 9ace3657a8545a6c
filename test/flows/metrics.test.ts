import { Worker } from 'bullmq';
import { Redis } from 'ioredis';
import { expect, test } from 'vitest';
import { giveWay } from '../../jobs/give-way.ts';
import { QUEUE } from '../../jobs/queues.ts';
import { install, isSynced, waitForStatus } from '../support/install.ts';
import { startTestApp } from '../support/test-app.ts';

test('what a run did, waited and was refused stands in the metrics', async () => {
  const { control, session } = await startTestApp();
  const company = await control.addCompany({
    name: 'Measured',
    plan: 'starter',
    contacts: 250,
    conversations: 10,
  });
  const refusal = (tier: Record<string, string>) => ({
    match: { path: '/contacts' },
    fault: { status: 429, headers: { 'retry-after': '0.1', ...tier } },
    times: 1,
  });
  await control.fault(refusal({}));
  await control.fault(refusal({ 'x-service-tier': 'a-tier-of-no-known-name' }));
  const browser = session();
  await waitForStatus(browser, await install(browser, company), isSynced);

  const { body } = await browser.get('/metrics');
  const value = (name: string) => {
    const line = body.split('\n').find((text) => text.startsWith(`${name} `));
    return line === undefined ? undefined : Number(line.slice(name.length));
  };
  expect(value('service_refusals_total{route="/contacts",by="limit"}')).toBe(1);
  expect(value('service_refusals_total{route="/contacts",by="guard"}')).toBe(1);
  expect(value('service_refusals_total{route="/conversations",by="limit"}')).toBe(0);
  expect(value('service_requests_total{route="/contacts",outcome="429"}')).toBe(2);
  expect(value('service_requests_total{route="/contacts",outcome="200"}')).toBe(3);
  expect(body).not.toContain('a-tier-of-no-known-name');
  expect(body).not.toContain(company.id);
  expect(value('service_limit_left_ratio_count')).toBeGreaterThanOrEqual(4);
  expect(value('sync_job_wait_seconds_count')).toBe(2);
  expect(value('app_instances{status="active"}')).toBe(1);
  expect(value('app_instances{status="needs_reauthorization"}')).toBe(0);
  expect(value('sync_runs_now{state="idle"}')).toBe(2);
  expect(value('sync_oldest_run_age_seconds')).toBe(0);
  expect(value('refresh_tokens_overdue')).toBe(0);
  const daysLeft = (value('refresh_token_first_end_seconds') ?? 0) / 86_400;
  expect(daysLeft).toBeGreaterThan(180);
  expect(daysLeft).toBeLessThan(185);
  expect(value('figures_read')).toBe(1);
});

test('jobs that have given way wait for a place like those of new runs', async () => {
  const { app, redisUrl, session } = await startTestApp({ workers: false });
  const connection = new Redis(redisUrl, { maxRetriesPerRequest: null });
  const worker = new Worker(QUEUE.sync, null, { connection, autorun: false });
  const install = (...companies: string[]) =>
    app.queues.enqueue(companies.map((instanceId) => ({ instanceId, resource: 'contacts' })));
  await install('begun', 'at work');
  const begun = await worker.getNextJob('token', { block: false });
  if (begun === undefined) throw new Error('no job waits for a place');
  await expect(giveWay(begun, 'token', { kind: 'yield', pages: 25 })).rejects.toThrow();
  await worker.getNextJob('token', { block: false });
  await install('new');

  const { body } = await session().get('/metrics');
  expect(body.split('\n').filter((line) => line.startsWith('sync_jobs{'))).toEqual([
    'sync_jobs{state="waiting"} 2',
    'sync_jobs{state="active"} 1',
    'sync_jobs{state="delayed"} 0',
  ]);
  await worker.close(true);
  connection.disconnect();
});
