import { describe, expect, it } from 'vitest';
import type { Page } from '../support/http-browser.ts';
import type { SandboxCompany } from './support/sandbox-control.ts';
import { createWorld, instanceOf } from './support/world.ts';

describe('2. Two tabs that install at once both end on their dashboards, and the browser sees both companies.', async () => {
  const world = await createWorld();
  await world.startWeb();

  /** How the tabs of a browser, with one cookie jar, interleave: what stands in one part happens at once. */
  const ORDERS = [
    'begin one, finish one, begin two, finish two',
    'begin one, begin two, finish one, finish two',
    'begin one, begin two, finish two, finish one',
    'begin one + begin two, finish one, finish two',
    'begin one + begin two, finish two, finish one',
    'begin one, begin two, finish one + finish two',
    'begin one + begin two, finish one + finish two',
    'begin one, finish one + begin two, finish two',
  ];
  const cases = ORDERS.flatMap((order) => [false, true].map((isKnown) => ({ order, isKnown })));

  it.each(cases)('$order; the browser has installed before: $isKnown', async ({ order, isKnown }) => {
    const browser = world.browser();
    const all = isKnown ? [(await world.installed({ name: 'Earlier' }, browser)).id] : [];
    const callbacks = new Map<string, URL>();
    const step = async (what: string) => {
      const [act, tab = ''] = what.split(' ');
      const company = companies.get(tab) ?? expect.unreachable();
      if (act === 'begin') {
        callbacks.set(tab, await world.authorize(browser, company));
        return;
      }
      const end = await browser.get(callbacks.get(tab) ?? '');
      expect(end.text()).toContain(company.name);
      all.push(instanceOf(end));
    };
    const companies = new Map<string, SandboxCompany>();
    for (const tab of ['one', 'two'])
      companies.set(tab, await world.control.addCompany({ name: `Tab ${tab}` }));
    for (const part of order.split(', ')) await Promise.all(part.split(' + ').map(step));
    expect(new Set(all).size).toBe(isKnown ? 3 : 2);
    const front = await browser.get('/');
    for (const id of all) {
      expect(front.body).toContain(`"/instances/${id}"`);
      expect((await browser.get(`/instances/${id}`)).status).toBe(200);
    }
  });

  it('works for two tabs that install the same company', async () => {
    const browser = world.browser();
    const company = await world.control.addCompany({ name: 'Same' });
    const callbacks = [await world.authorize(browser, company), await world.authorize(browser, company)];
    const [one, two] = await Promise.all(callbacks.map((callback) => browser.get(callback)));
    expect(instanceOf(one as Page)).toBe(instanceOf(two as Page));
  });
});
