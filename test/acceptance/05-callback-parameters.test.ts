import { describe, expect, it } from 'vitest';
import { createWorld, instanceOf } from './support/world.ts';

const MARKUP = [
  '<script>alert(1)</script>',
  '"><img src=x onerror=alert(1)>',
  '<a href="javascript:alert(1)">click</a>',
  "' onmouseover='alert(1)",
  '<%= process.env %>',
];

describe('5. What the service says in `error` is text, never markup; repeated or oversized parameters get 400.', async () => {
  const world = await createWorld();
  await world.startWeb();
  const company = await world.control.addCompany({ name: 'Parameters' });

  it.each(MARKUP)('shows %s as text', async (markup) => {
    const browser = world.browser();
    const callback = await world.authorize(browser, company);
    callback.searchParams.delete('code');
    callback.searchParams.set('error', markup);
    callback.searchParams.set('error_description', `Described: ${markup}`);
    const page = await browser.get(callback);
    expect(page.status).toBe(400);
    expect(page.headers.get('content-type')).toMatch(/^text\/html/);
    expect(page.text()).toContain(markup);
    expect(page.body).not.toContain(markup);
    expect(page.headers.get('content-security-policy')).not.toContain('unsafe-inline');
  });

  it('tells a person who has declined that nothing was installed', async () => {
    const browser = world.browser();
    const mark = await world.control.mark();
    const page = await world.consent(browser, await browser.get('/install'), company, { decision: 'deny' });
    expect(page.status).toBe(403);
    expect(page.text()).toMatch(/declined/i);
    expect(page.body).toMatch(/<a [^>]*href="[^"]*\/install"/);
    expect(await world.control.tokenRequests(mark)).toEqual([]);
  });

  const long = 'x'.repeat(10 * 1_024);
  it.each([
    ...['state', 'code', 'error', 'error_description', 'anything'].flatMap((name) => [
      [`${name} twice`, `&${name}=a&${name}=b`],
      [`${name} of 10 KB`, `&${name}=${long}`],
    ]),
    ['a name of 10 KB', `&${long}=a`],
    ['a code that is spelled twice', '&%63ode=b'],
  ])('refuses %s, and the right address still works', async (_what, added) => {
    const browser = world.browser();
    const callback = await world.authorize(browser, company);
    const mark = await world.control.mark();
    const page = await browser.get(`${callback}${added}`);
    expect(page.status).toBe(400);
    expect(page.headers.get('content-type')).toMatch(/^text\/html/);
    expect(page.body.length).toBeLessThan(10_000);
    expect(await world.control.tokenRequests(mark)).toEqual([]);
    instanceOf(await browser.get(callback));
  });
});
