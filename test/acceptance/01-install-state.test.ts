import { describe, expect, it } from 'vitest';
import type { HttpBrowser, Page } from '../support/http-browser.ts';
import { createWorld, instanceOf } from './support/world.ts';

describe('1. A missing, wrong, expired (10 minutes) or replayed state, or one from another browser, is refused before any token request, and the page offers to start again.', async () => {
  const world = await createWorld();
  const company = await world.control.addCompany({ name: 'State' });
  const late = world.browser();
  const inTime = world.browser();
  const lateCallback = await beginAt(late, -11);
  const inTimeCallback = await beginAt(inTime, -9);
  await world.startWeb();

  /** Begins an install in a web process whose clock is minutes off: for the next process that was so long ago. */
  async function beginAt(browser: HttpBrowser, minutes: number): Promise<URL> {
    const web = await world.startWeb({ clockMs: minutes * 60_000 });
    const callback = await world.authorize(browser, company);
    await web.stop();
    return callback;
  }

  /** Asks for a callback that has to be refused. */
  async function refuse(browser: HttpBrowser, callback: URL | string): Promise<Page> {
    const mark = await world.control.mark();
    const page = await browser.get(callback);
    expect([page.status, page.url.pathname]).toEqual([400, '/oauth/callback']);
    expect(page.body).toMatch(/<a [^>]*href="[^"]*\/install"/);
    expect(await world.control.tokenRequests(mark)).toEqual([]);
    return page;
  }

  function withState(callback: URL, change: (state: string) => string): URL {
    const changed = new URL(callback);
    changed.searchParams.set('state', change(callback.searchParams.get('state') ?? ''));
    return changed;
  }

  it.each<[string, (callback: URL) => URL]>([
    ['an empty state', (callback) => withState(callback, () => '')],
    ['a made-up state', (callback) => withState(callback, () => 'A'.repeat(43))],
    ['a state with a letter too much', (callback) => withState(callback, (state) => `${state}A`)],
    ['a state with a letter too few', (callback) => withState(callback, (state) => state.slice(0, -1))],
    ['a state in the wrong case', (callback) => withState(callback, (state) => state.toUpperCase())],
    ['a state of markup', (callback) => withState(callback, () => '<script>alert(1)</script>')],
  ])('refuses %s, and the right one still works', async (_what, change) => {
    const browser = world.browser();
    const callback = await world.authorize(browser, company);
    await refuse(browser, change(callback));
    instanceOf(await browser.get(callback));
  });

  it('refuses a callback without a state, and one without anything', async () => {
    const browser = world.browser();
    const callback = await world.authorize(browser, company);
    callback.searchParams.delete('state');
    await refuse(browser, callback);
    await refuse(browser, '/oauth/callback');
    await refuse(browser, '/oauth/callback?error=access_denied');
  });

  it('refuses a state after ten minutes', async () => {
    await refuse(late, lateCallback);
    await world.install(late, company);
  });

  it('takes a state after nine minutes', async () => {
    instanceOf(await inTime.get(inTimeCallback));
  });

  it.each<[string, (victim: HttpBrowser) => HttpBrowser]>([
    ['a browser that has never been here', () => world.browser()],
    ['a browser that holds an install of its own', (victim) => victim],
  ])('refuses the state of another browser in %s', async (what, whose) => {
    const attacker = world.browser();
    const victim = whose(world.browser());
    if (what.includes('of its own')) await world.authorize(victim, company);
    const callback = await world.authorize(attacker, company);
    const page = await refuse(victim, callback);
    expect(page.headers.getSetCookie()).toEqual([]);
    expect((await victim.get('/')).body).not.toContain('/instances/');
  });

  it('refuses a state that another browser has finished with', async () => {
    const browser = world.browser();
    const callback = await world.authorize(browser, company);
    const id = instanceOf(await browser.get(callback));
    const stranger = world.browser();
    await refuse(stranger, callback);
    expect((await stranger.get(`/instances/${id}`)).status).toBe(404);
  });

  it('refuses a state that comes again with another code', async () => {
    const browser = world.browser();
    const page = await browser.get('/install');
    const first = await world.consent(browser, page, company, { follow: false });
    const second = await world.consent(browser, page, company, { follow: false });
    instanceOf(await browser.get(first.location ?? ''));
    expect(second.location?.href).not.toBe(first.location?.href);
    await refuse(browser, second.location ?? '');
  });

  it('refuses a state whose install was declined, with a code', async () => {
    const browser = world.browser();
    const page = await browser.get('/install');
    const approved = await world.consent(browser, page, company, { follow: false });
    const declined = await world.consent(browser, page, company, { decision: 'deny' });
    expect(declined.status).toBe(403);
    await refuse(browser, approved.location ?? '');
  });
});
