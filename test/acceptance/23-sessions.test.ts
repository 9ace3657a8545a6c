import { Redis } from 'ioredis';
import { describe, expect, it } from 'vitest';
import { HttpBrowser, type Page } from '../support/http-browser.ts';
import { createWorld, instanceOf } from './support/world.ts';

describe('23. The session id is new after an install; a log-out ends it on the server; cookies are HttpOnly, SameSite=Lax and, behind https, Secure and `__Host-`.', async () => {
  const world = await createWorld();
  await world.startWeb();
  const company = await world.control.addCompany({ name: 'Sessions' });

  /** The session cookie, without those of installs that were begun. */
  const sessionOf = (browser: HttpBrowser): Record<string, string> =>
    Object.fromEntries(Object.entries(browser.cookies()).filter(([name]) => !name.includes('install')));

  const logOut = async (browser: HttpBrowser): Promise<Page> =>
    browser.submit((await browser.get('/')).form('/logout'));

  async function expectNothingSeen(browser: HttpBrowser, id: string): Promise<void> {
    expect((await browser.get(`/instances/${id}`)).status).toBe(404);
    const front = await browser.get('/');
    expect(front.status).toBe(200);
    expect(front.body).not.toContain('/instances/');
  }

  describe('the session', () => {
    it('has a new id after each install', async () => {
      const browser = world.browser();
      const first = await world.install(browser, company);
      const copied = browser.clone();
      const before = sessionOf(copied);
      await world.install(browser, await world.control.addCompany({ name: 'Another' }));
      expect(sessionOf(browser)).not.toEqual(before);
      await expectNothingSeen(copied, first);
      expect((await browser.get(`/instances/${first}`)).status).toBe(200);
    });

    it('that somebody has planted sees nothing of what is installed in it', async () => {
      const attacker = world.browser();
      await world.install(attacker, await world.control.addCompany({ name: 'Of the attacker' }));
      const victim = world.browser();
      for (const [name, value] of Object.entries(sessionOf(attacker))) victim.setCookie(name, value);
      const id = await world.install(victim, company);
      await expectNothingSeen(attacker, id);
    });

    it('that has missed the answer of an install comes back with the next one', async () => {
      const browser = world.browser();
      const first = await world.install(browser, company);
      const callback = await world.authorize(browser, await world.control.addCompany({ name: 'Missed' }));
      const missed = instanceOf(await browser.clone().get(callback));
      expect((await browser.get(`/instances/${first}`)).status).toBe(404);
      await world.install(browser, await world.control.addCompany({ name: 'Next' }));
      for (const id of [first, missed]) expect((await browser.get(`/instances/${id}`)).status).toBe(200);
    });

    it('ends on the server when a person logs out, and no other with it', async () => {
      const [browser, other] = [world.browser(), world.browser()];
      const id = await world.install(browser, company);
      await world.install(other, company);
      const copied = browser.clone();
      expect((await copied.get(`/instances/${id}`)).status).toBe(200);
      expect((await logOut(browser)).url.pathname).toBe('/');
      await expectNothingSeen(browser, id);
      await expectNothingSeen(copied, id);
      expect((await other.get(`/instances/${id}`)).status).toBe(200);
    });

    it('sees a company no more after "Log out everywhere else" in another browser', async () => {
      const [browser, other] = [world.browser(), world.browser()];
      const id = await world.install(browser, company);
      const unconcerned = await world.install(other, await world.control.addCompany({ name: 'Unconcerned' }));
      await world.install(other, company);
      await world.press(browser, id, 'logout-others');
      const signedOut = await other.get(`/instances/${id}`);
      expect(signedOut.status).toBe(404);
      expect(signedOut.text()).toContain('You were signed out');
      expect((await other.get('/')).body).not.toContain(`/instances/${id}`);
      expect((await other.get(`/instances/${unconcerned}`)).status).toBe(200);
      expect((await browser.get(`/instances/${id}`)).status).toBe(200);
      expect(await world.install(other, company)).toBe(id);
    });

    it('is there after Redis was emptied', async () => {
      const browser = world.browser();
      const id = await world.install(browser, company);
      const callback = await world.authorize(browser, company);
      const redis = new Redis(world.redis.url);
      await redis.flushall();
      redis.disconnect();
      expect((await browser.get(`/instances/${id}`)).status).toBe(200);
      expect(instanceOf(await browser.get(callback))).toBe(id);
    });
  });

  /** The cookies that an install sets, on its way out and back, over the scheme of PUBLIC_URL. */
  async function cookiesOfInstall(of: typeof world): Promise<string[]> {
    const address = `http://127.0.0.1:${of.env.PORT}`;
    const browser = new HttpBrowser(address);
    const scheme = new URL(of.publicUrl).protocol.slice(0, -1);
    const options = { follow: false, headers: { 'x-forwarded-proto': scheme } };
    const installed = await of.control.addCompany({ name: 'Cookies' });
    const begun = await browser.get('/install', options);
    const consent = await browser.get(begun.location ?? '');
    const { location } = await of.consent(browser, consent, installed, { follow: false });
    expect(location?.href).toContain(`${of.publicUrl}/oauth/callback`);
    const answer = await browser.get(`${location?.pathname}${location?.search}`, options);
    expect(answer.status).toBe(303);
    const dashboard = await browser.get(answer.location?.pathname ?? '', options);
    expect(dashboard.status).toBe(200);
    const all = [begun, answer, dashboard].flatMap(({ headers }) => headers.getSetCookie());
    expect(all.length).toBeGreaterThan(0);
    return all;
  }

  describe('every cookie', () => {
    it('is HttpOnly and SameSite=Lax', async () => {
      for (const cookie of await cookiesOfInstall(world)) {
        expect(cookie).toMatch(/; HttpOnly/i);
        expect(cookie).toMatch(/; SameSite=Lax/i);
        expect(cookie).toMatch(/; Path=\/(;|$)/i);
        expect(cookie).not.toMatch(/; Domain=/i);
        expect(cookie).not.toMatch(/^__Host-|; Secure/i);
      }
    });

    it('is Secure and has the prefix __Host- behind https', async () => {
      const secure = await createWorld({ env: { PUBLIC_URL: 'https://app.example', PROXY_HOPS: '1' } });
      await secure.startWeb();
      for (const cookie of await cookiesOfInstall(secure)) {
        expect(cookie).toMatch(/^__Host-[\w.-]+=/);
        expect(cookie).toMatch(/; Secure/i);
        expect(cookie).toMatch(/; HttpOnly/i);
        expect(cookie).toMatch(/; SameSite=Lax/i);
        expect(cookie).toMatch(/; Path=\/(;|$)/i);
        expect(cookie).not.toMatch(/; Domain=/i);
      }
    });

    it('is given to nobody who only looks', async () => {
      for (const path of ['/', '/nowhere', '/instances/ins_1', '/healthz']) {
        expect((await world.browser().get(path)).headers.getSetCookie(), path).toEqual([]);
      }
    });
  });

  describe('a browser that comes', () => {
    it('with 60 KB of cookies of a parent domain gets the page', async () => {
      const browser = world.browser();
      const id = await world.install(browser, company);
      for (let n = 0; n < 15; n++) browser.setCookie(`analytics_${n}`, 'x'.repeat(4_000));
      const page = await browser.get(`/instances/${id}`);
      expect(page.body).not.toBe('');
      expect([page.status, page.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
    });

    it.each<[string, (value: string) => string]>([
      ['that has ended', (value) => value],
      ['that is badly signed', (value) => `${value.slice(0, -6)}AAAAAA`],
      ['of an unknown id', (value) => value.replace(/[A-Za-z0-9_-]{12}/, 'AbCdEfGhIjKl')],
      ['without a signature', (value) => value.split('.')[0] ?? ''],
      ['of an older version', () => 's%3AAbCdEfGhIjKlMnOpQrStUvWxYz012345.c2lnbmF0dXJlIG9mIGxvbmcgYWdvIQ'],
      ['of no form', () => '%E0%A4%A'],
    ])('with a session cookie %s gets the page, and a fresh session', async (_what, change) => {
      const browser = world.browser();
      const id = await world.install(browser, company);
      const known = Object.entries(sessionOf(browser)).map(([name, value]) => [name, change(value)]);
      await logOut(browser);
      for (const [name = '', value = ''] of known) browser.setCookie(name, value);
      await expectNothingSeen(browser, id);
      expect(await world.install(browser, company)).toBe(id);
      expect(sessionOf(browser)).not.toEqual(Object.fromEntries(known));
      expect((await browser.get('/')).body).toContain(`/instances/${id}`);
    });
  });
});
