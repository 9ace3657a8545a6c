import { describe, expect, it } from 'vitest';
import { createWorld } from './support/world.ts';

const ELSEWHERE = [
  '//evil.example',
  '/\\evil.example',
  '\\\\evil.example',
  'https://evil.example',
  '/%09/evil.example',
  '/%5cevil.example',
  'javascript:alert(1)',
];
const NAMES = ['return_to', 'returnTo', 'next', 'redirect', 'redirect_uri', 'url', 'back', 'expected'];
const HEADERS = {
  referer: 'https://evil.example/',
  'x-forwarded-host': 'evil.example',
  'x-original-url': '//evil.example',
};

describe('4. The callback answers 303 to a clean address, with no-store and no-referrer; any return address is a local path.', async () => {
  const world = await createWorld();
  await world.startWeb();
  const company = await world.control.addCompany({ name: 'Clean' });

  it('answers with a path that neither code nor state is in', async () => {
    const browser = world.browser();
    const answer = await browser.get(await world.authorize(browser, company), { follow: false });
    expect(answer.status).toBe(303);
    expect(answer.headers.get('location')).toMatch(/^\/instances\/\w+$/);
    expect(answer.headers.get('cache-control')).toContain('no-store');
    expect(answer.headers.get('referrer-policy')).toBe('no-referrer');
    const dashboard = await browser.get(answer.location ?? '');
    expect(dashboard.status).toBe(200);
    expect(dashboard.headers.get('cache-control')).toContain('no-store');
  });

  it.each(['', '?state=x&code=y', '?error=access_denied', '?code=a&code=b', '?code=y'])(
    'is as private where it refuses, as with "%s"',
    async (query) => {
      const page = await world.browser().get(`/oauth/callback${query}`);
      expect(page.status).toBe(400);
      expect(page.headers.get('cache-control')).toContain('no-store');
      expect(page.headers.get('referrer-policy')).toBe('no-referrer');
      expect(page.headers.getSetCookie()).toEqual([]);
    },
  );

  it.each(ELSEWHERE)('leads nowhere but to a path of its own, whoever asks for %s', async (evil) => {
    const browser = world.browser();
    const query = NAMES.map((name) => `${name}=${encodeURIComponent(evil)}`).join('&');
    const options = { follow: false, headers: HEADERS };
    const started = await browser.get(`/install?${query}`, options);
    expect(started.location?.href).toContain(world.sandbox.authUrl);
    expect(started.location?.searchParams.get('redirect_uri')).toBe(`${world.publicUrl}/oauth/callback`);
    const consented = await world.consent(browser, await browser.get(started.location ?? ''), company, {
      follow: false,
    });
    const callback = `${consented.location}&${query}`;
    for (const answer of [await browser.get(callback, options), await browser.get(callback, options)]) {
      expect(answer.status).toBe(303);
      expect(answer.headers.get('location')).toMatch(/^\/(?![/\\])[\w/]*$/);
    }
  });

  it.each(['//evil.example/install', '/\\evil.example/', '/%2f%2fevil.example', '/.//evil.example'])(
    'redirects nobody from the path %s',
    async (path) => {
      const answer = await world.browser().get(world.publicUrl + path, { follow: false, headers: HEADERS });
      expect(answer.location).toBeUndefined();
      expect(answer.body).not.toMatch(/href="[^"]*evil/);
    },
  );

  it.each(['HEAD', 'POST', 'PUT'] as const)('finishes no install for %s', async (method) => {
    const browser = world.browser();
    const callback = await world.authorize(browser, company);
    const mark = await world.control.mark();
    const cookie = Object.entries(browser.cookies()).map(([name, value]) => `${name}=${value}`);
    const headers = { cookie: cookie.join('; '), 'sec-fetch-site': 'same-origin' };
    const answer = await fetch(callback, { method, headers, redirect: 'manual' });
    expect(answer.status).toBeGreaterThanOrEqual(400);
    expect(await world.control.tokenRequests(mark)).toEqual([]);
    expect((await browser.get(callback)).status).toBe(200);
  });
});
