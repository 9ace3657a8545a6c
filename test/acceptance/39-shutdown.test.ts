import { setTimeout as sleep } from 'node:timers/promises';
import { request } from 'undici';
import { describe, expect, it } from 'vitest';
import { findFreePort } from '../support/free-port.ts';
import type { TestProcess } from '../support/spawn-entry.ts';
import { startScript } from '../support/spawn-entry.ts';
import { waitFor } from '../support/wait-for.ts';
import { createWorld } from './support/world.ts';

const LIMIT_MS = 10_000;

describe('39. SIGTERM ends a process within ten seconds, exit 0, with its work where another goes on; a second signal ends it at once.', async () => {
  const world = await createWorld({ sandbox: { latencyMs: 150 } });

  /** Starts what `npm start` starts: web and workers in one process. */
  const startAll = async (more: Record<string, string> = {}): Promise<TestProcess> => {
    const env: Record<string, string> = { ...world.env, ...more };
    const all = startScript('start', env, { cwd: world.dir });
    await waitFor(async () => {
      const answer = await request(`http://127.0.0.1:${env.PORT}/readyz`);
      await answer.body.dump();
      return answer.statusCode === 200;
    }, 'npm start to be ready');
    return all;
  };
  const expectToEnd = async (...processes: TestProcess[]) => {
    const from = performance.now();
    for (const exit of await Promise.all(processes.map((one) => one.stop('SIGTERM')))) {
      expect(exit, processes.map((one) => one.output()).join('')).toEqual({ code: 0, signal: null });
    }
    expect(performance.now() - from).toBeLessThan(LIMIT_MS);
  };
  /** Installs a company, and waits until its first sync is under way. */
  const beginSync = async (name: string) => {
    const { company, browser, id } = await world.installed({
      name,
      plan: 'enterprise',
      contacts: 1_500,
      conversations: 0,
    });
    const waitForPages = (more: number) =>
      world.waitForStatus(browser, id, ({ resources: { contacts } }) => contacts.pages >= more);
    await waitForPages(2);
    const expectWholeCopy = async () => {
      await world.waitForSync(browser, id);
      const ids = (await world.download(browser, id, 'contacts')).map((line) => JSON.parse(line).id);
      expect([ids.length, new Set(ids).size]).toEqual([1_500, 1_500]);
    };
    return { company, browser, id, waitForPages, expectWholeCopy };
  };

  it('ends during a sync, and the next process goes on where it stopped', async () => {
    const { web, worker } = await world.start();
    const { company, browser, id, waitForPages, expectWholeCopy } = await beginSync('Goes on');
    await expectToEnd(worker);
    const { contacts } = (await world.status(browser, id)).resources;
    expect(contacts.error).toBeNull();
    expect((await world.download(browser, id, 'contacts')).length).toBe(contacts.records);
    await expectToEnd(web);
    const all = await startAll();
    await waitForPages(contacts.pages + 2);
    await expectToEnd(all);
    const last = await startAll();
    await expectWholeCopy();
    await expectToEnd(last);
    const pages = (await world.control.requests()).filter(
      ({ company_id, path }) => company_id === company.id && path.endsWith('/contacts'),
    );
    // An end may cost a page under way and the one asked for ahead.
    expect(pages.length).toBeLessThanOrEqual(15 + 2 * 2);
  });

  it('answers a slow request before it ends', async () => {
    const web = await world.startWeb();
    const browser = world.browser();
    const callback = await world.authorize(browser, await world.control.addCompany({ name: 'Slow' }));
    await world.control.fault({ match: { path: '/oauth/token' }, fault: { delay_ms: 2_000 }, times: 1 });
    const answer = browser.get(callback, { follow: false });
    await waitFor(async () => (await world.control.faults()).at(-1)?.used === 1, 'the token request');
    await expectToEnd(web);
    const { location } = await answer;
    const next = await world.startWeb();
    expect((await browser.get(location ?? '/nowhere')).url.pathname).toMatch(/^\/instances\/\w+$/);
    await expectToEnd(next);
  });

  it('ends while Redis hangs', async () => {
    const all = await startAll({ PORT: String(await findFreePort()) });
    const { web, worker } = await world.start();
    const { expectWholeCopy } = await beginSync('Without Redis');
    world.redis.freeze();
    await expectToEnd(all, web, worker);
    world.redis.unfreeze();
    const last = await startAll();
    await expectWholeCopy();
    await expectToEnd(last);
  });

  it('ends at once on a second signal', async () => {
    const web = await world.startWeb();
    const browser = world.browser();
    const callback = await world.authorize(browser, await world.control.addCompany({ name: 'Never' }));
    await world.control.fault({ match: { path: '/oauth/token' }, fault: { delay_ms: 9_000 }, times: 1 });
    const answer = browser.get(callback).catch(() => 'cut off');
    await waitFor(async () => (await world.control.faults()).at(-1)?.used === 1, 'the token request');
    const from = performance.now();
    const end = web.stop('SIGTERM');
    // One Ctrl-C may come twice within half a second, from the terminal and from npm.
    await sleep(700);
    web.signal('SIGTERM');
    expect((await end).code).not.toBe(0);
    expect(performance.now() - from).toBeLessThan(2_000);
    expect(await answer).toBe('cut off');
  });
});
