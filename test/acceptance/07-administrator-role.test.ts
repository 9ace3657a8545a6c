import { describe, expect, it } from 'vitest';
import type { Page } from '../support/http-browser.ts';
import { createWorld } from './support/world.ts';

describe('7. A missing administrator role is told plainly.', async () => {
  const world = await createWorld();
  await world.startWeb();
  const company = await world.control.addCompany({ name: 'Roles' });
  const teammate = company.teammates.find(({ is_admin }) => !is_admin)?.id ?? '';

  function expectPlainWords(page: Page): void {
    expect(page.status).toBe(403);
    expect(/<h1[^>]*>([^<]*)/.exec(page.body)?.[1]).toMatch(/administrator/i);
    expect(page.text()).not.toMatch(/access_denied|not_administrator|undefined/);
    expect(page.body).toMatch(/<a [^>]*href="[^"]*\/install"/);
  }

  it('tells a teammate to ask an administrator, and asks for no tokens', async () => {
    const browser = world.browser();
    const mark = await world.control.mark();
    const page = await world.consent(browser, await browser.get('/install'), company, {
      teammateId: teammate,
    });
    expectPlainWords(page);
    expect(await world.control.tokenRequests(mark)).toEqual([]);
    expect((await browser.get('/')).body).not.toContain('/instances/');
    await world.install(browser, company);
  });

  it.each([
    [403, { _error: { status: 403, title: 'Refused', message: 'The user must be an administrator.' } }],
    [400, { error: 'access_denied', error_description: 'Only administrators may authorize an app.' }],
  ])('tells it where the token route says so, with %d', async (status, body) => {
    const browser = world.browser();
    const callback = await world.authorize(browser, company);
    await world.control.fault({ match: { path: '/oauth/token' }, fault: { status, body }, times: 1 });
    expectPlainWords(await browser.get(callback));
    expect((await browser.get('/')).body).not.toContain('/instances/');
  });
});
