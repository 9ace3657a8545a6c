import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { afterAll, describe, expect, it } from 'vitest';
import { expectWhole, syncAgain } from './support/lists.ts';
import { goodHeaders, pageOf, startProxy, type Turn } from './support/proxy.ts';
import { createWorld } from './support/world.ts';

const CONTACTS = 30;

/** So many pages may be asked for until a list that repeats itself is left; an honest list of ours has one. */
const BOUND = 150;

describe('27. A repeating, circular or endless `next` is noticed and bounded; one that leads to another origin, scheme or port, or redirects there, never gets the token.', async () => {
  const proxy = await startProxy();
  const { host, port } = new URL(proxy.origin);
  const world = await createWorld({ env: { SERVICE_API_URL: proxy.apiUrl } });
  proxy.lead(world.sandbox.origin);
  await world.startAll();

  /** Nobody may call here; it listens on every address of this machine. */
  let calls = 0;
  const trap = createServer((socket) => {
    calls++;
    socket.on('error', () => undefined).destroy();
  }).listen(0);
  await once(trap, 'listening');
  afterAll(() => trap.close());
  const trapPort = (trap.address() as AddressInfo).port;

  /** Installs a company whose contacts are answered so, until that is told as an error, and lets it recover. */
  async function expectTold(respond: (turn: Turn) => void) {
    const company = await world.control.addCompany({ name: 'Hostile', contacts: CONTACTS, conversations: 0 });
    proxy.answer(company.id, '/contacts', respond);
    const browser = world.browser();
    const id = await world.install(browser, company);
    const { resources } = await world.waitForStatus(
      browser,
      id,
      (status) => status.resources.contacts.error !== null,
    );
    const dashboard = await browser.get(`/instances/${id}`);
    const asked = proxy.asked(company.id).filter((address) => !address.startsWith('/api/conversations'));
    proxy.relent(company.id);
    await world.press(browser, id, 'sync');
    await world.waitForSync(browser, id);
    // What the hostile list had besides goes with the next run, or when a person confirms.
    const { resources: after } = await syncAgain(world, browser, id);
    if (after.contacts.held_deletions > 0) await world.press(browser, id, 'contacts/confirm-deletions');
    await expectWhole(world, company, browser, id, ['contacts']);
    expect(dashboard.text()).toMatch(/The service (sent an answer that the app cannot read|refuses this)/);
    return { told: resources.contacts.error ?? '', asked };
  }

  it.concurrent.each([
    ['another port', `http://127.0.0.1:${trapPort}/api/contacts`],
    ['another host', `http://localhost:${trapPort}/api/contacts`],
    ['another host at the same port', `http://localhost:${port}/api/contacts?elsewhere`],
    ['a host below another', `http://127.0.0.1.localhost:${trapPort}/`],
    ['another scheme', `https://${host}/api/contacts?elsewhere`],
    ['a file', 'file:///etc/passwd'],
    ['the host as a user of another', `http://${host}@localhost:${trapPort}/api/contacts`],
    ['the host with a user', `http://token@${host}/api/contacts?elsewhere`],
    ['dots that leave the API', `${proxy.origin}/api/../elsewhere`],
    ['encoded dots that leave the API', `${proxy.origin}/api/%2e%2E%2felsewhere`],
  ])('a next page at %s is not asked for, and that is told', async (_what, next) => {
    const { told, asked } = await expectTold(({ response }) =>
      response.writeHead(200, goodHeaders()).end(pageOf(['{"id":"crd_1"}'], next)),
    );
    expect(told).toMatch(/next page/);
    expect(asked.join()).not.toContain('elsewhere');
    expect(calls).toBe(0);
  });

  it.concurrent.each([301, 302, 303, 307, 308])(
    'a redirect (%d) is not followed, and that is told',
    async (status) => {
      const location = `http://127.0.0.1:${trapPort}/api/contacts`;
      const { told } = await expectTold(({ response }) =>
        response.writeHead(status, goodHeaders({ location })).end(),
      );
      expect(told).toContain(String(status));
      expect(calls).toBe(0);
    },
  );

  const idsOf = (page: unknown) => Array.from({ length: 100 }, (_, place) => `{"id":"crd_${page}_${place}"}`);
  it.concurrent.each<[string, (turn: Turn) => [page: unknown, next: string]]>([
    ['a page that names itself', ({ url }) => [1, url.href]],
    [
      'two pages that lead to each other',
      ({ url }) => {
        const page = Number(url.searchParams.get('page') ?? 1);
        return [page, `${proxy.apiUrl}/contacts?page=${page === 2 ? 3 : 2}`];
      },
    ],
    [
      'a circle of pages at ever new addresses',
      ({ count }) => [count % 20, `${proxy.apiUrl}/contacts?page=${count}`],
    ],
    ['the same page at ever new addresses', ({ count }) => [1, `${proxy.apiUrl}/contacts?page=${count}`]],
  ])('%s: noticed, bounded and told', async (_what, answer) => {
    const { asked } = await expectTold((turn) => {
      const [page, next] = answer(turn);
      turn.response.writeHead(200, goodHeaders()).end(pageOf(idsOf(page), next));
    });
    expect(asked.length).toBeLessThan(BOUND);
  });
});
