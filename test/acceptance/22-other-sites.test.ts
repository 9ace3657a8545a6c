import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Page } from 'playwright-core';
import { request } from 'undici';
import { afterAll, describe, expect, it } from 'vitest';
import { openBrowser } from '../support/browser.ts';
import type { HttpBrowser } from '../support/http-browser.ts';
import { waitFor } from '../support/wait-for.ts';
import { createWorld } from './support/world.ts';

const PASSWORD = 'the operator’s own words';

/** Each of them says so in a place of its own if it runs. */
const run = (n: number) => `(window.ran=window.ran||[]).push(${n})`;
const SCRIPT = `<script>${run(1)}</script><img src=x onerror="${run(2)}"><svg onload="${run(3)}"></svg>`;
const ATTRIBUTE = `" onmouseover="${run(4)}" autofocus onfocus="${run(5)}" x="`;
const HOSTILE = `</title></textarea>${SCRIPT}<a href="javascript:${run(6)}">click</a>${ATTRIBUTE}`;

/** Another site on this machine: for a browser "localhost" and "127.0.0.1" are two. */
let elsewherePage = '';
const elsewhere = createServer((_request, response) => {
  response.setHeader('content-type', 'text/html');
  response.end(elsewherePage);
}).listen(0, '127.0.0.1');
await once(elsewhere, 'listening');
const elsewhereUrl = `http://localhost:${(elsewhere.address() as AddressInfo).port}`;
afterAll(() => {
  elsewhere.closeAllConnections();
  elsewhere.close();
});

describe('22. Cross-site requests change nothing (403); framing is blocked; `<script>` in any synced field is inert, in a real browser.', async () => {
  const world = await createWorld({ env: { OPERATOR_PASSWORD: PASSWORD } });
  await world.startAll();
  const company = await world.control.addCompany({ name: 'Owner' });
  const owner = world.browser();
  const id = await world.install(owner, company);
  await world.waitForSync(owner, id);

  /** Sends a button's form as a page of some site would: with these headers alone. */
  async function send(browser: HttpBrowser, path: string, headers: Record<string, string>) {
    const form = (await browser.get(`/instances/${id}`)).form(`/instances/${id}/pause`);
    const cookie = Object.entries(browser.cookies()).map(([name, value]) => `${name}=${value}`);
    const answer = await request(new URL(path, world.publicUrl), {
      method: 'POST',
      headers: {
        cookie: cookie.join('; '),
        'content-type': 'application/x-www-form-urlencoded',
        ...headers,
      },
      body: form.fields.toString(),
    });
    await answer.body.dump();
    return answer.statusCode;
  }

  it.each([
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site' },
    { 'sec-fetch-site': 'cross-site', origin: world.publicUrl },
    { 'sec-fetch-site': 'cross-site', origin: 'null' },
    { 'sec-fetch-site': 'none', origin: 'https://evil.example' },
    { origin: 'https://evil.example' },
    { origin: `${world.publicUrl}.evil.example` },
    { origin: world.publicUrl.replace('http:', 'https:') },
    { origin: 'null' },
    {},
  ] as Record<string, string>[])('refuses a form with %j', async (headers) => {
    const answered = await send(owner, `/instances/${id}/pause`, headers);
    const { status } = await world.status(owner, id);
    if (status === 'paused') await world.press(owner, id, 'resume');
    expect([answered, status]).toEqual([403, 'active']);
  });

  it.each([
    { 'sec-fetch-site': 'same-origin' },
    { 'sec-fetch-site': 'same-origin', origin: world.publicUrl },
    { 'sec-fetch-site': 'none' },
    { 'sec-fetch-site': 'none', origin: world.publicUrl },
    { origin: world.publicUrl },
  ] as Record<string, string>[])('takes a form of its own with %j', async (headers) => {
    expect(await send(owner, `/instances/${id}/pause`, headers)).toBe(303);
    expect((await world.status(owner, id)).status).toBe('paused');
    await world.press(owner, id, 'resume');
  });

  const actions = ['sync', 'pause', 'resume', 'replay', 'retry', 'confirm-deletions', 'disconnect'];
  it.each([
    '/logout',
    ...actions.map((action) => `/instances/:id/${action}`),
    ...actions.slice(0, -1).map((action) => `/instances/:id/contacts/${action}`),
    '/instances/:id/contacts/interval',
    '/instances/:id/contacts/erase',
    '/nowhere',
  ])('refuses another site’s POST to %s', async (path) => {
    const mark = await world.control.mark();
    const headers = { origin: elsewhereUrl, 'sec-fetch-site': 'cross-site' };
    expect(await send(owner, path.replace(':id', id), headers)).toBe(403);
    expect((await world.status(owner, id)).status).toBe('active');
    expect(await world.control.requests(mark)).toEqual([]);
  });

  it.each(['/', '/instances/:id', '/instances/:id/contacts', '/nowhere', '/oauth/callback'])(
    'forbids to frame %s',
    async (path) => {
      const { headers } = await owner.get(path.replace(':id', id));
      expect(headers.get('content-security-policy')).toMatch(/frame-ancestors 'none'/);
      expect(headers.get('content-security-policy')).not.toMatch(/unsafe-inline|unsafe-eval/);
      expect(headers.get('x-content-type-options')).toBe('nosniff');
    },
  );

  describe('in a real browser', async () => {
    const browser = await openBrowser();

    /** Installs a company whose name and every field are hostile; answers its dashboard and what the browser said. */
    async function installHostile(): Promise<{ page: Page; dashboard: string; complaints: string[] }> {
      const hostile = await world.control.addCompany({ name: 'Hostile', contacts: 1, conversations: 1 });
      const record = {
        id: `crd_${HOSTILE}`,
        name: HOSTILE,
        [HOSTILE]: HOSTILE,
        deep: [{ [ATTRIBUTE]: [HOSTILE] }],
        _links: { self: `javascript:${run(7)}` },
      };
      const body = { _pagination: { next: null }, _results: [record, { name: HOSTILE }] };
      for (const path of ['/contacts', '/conversations']) {
        const match = { path, company_id: hostile.id };
        await world.control.fault({ match, fault: { status: 200, body } });
      }
      await world.control.fault({
        match: { path: '/me', company_id: hostile.id },
        fault: { status: 200, body: { _links: { self: HOSTILE }, id: hostile.id, name: HOSTILE } },
      });
      const context = await browser.newContext({
        httpCredentials: { username: 'operator', password: PASSWORD },
      });
      const page = await context.newPage();
      const complaints: string[] = [];
      page.on('console', (message) => {
        if (['error', 'warning'].includes(message.type())) complaints.push(message.text());
      });
      page.on('pageerror', (error) => complaints.push(error.message));
      page.on('dialog', () => complaints.push('a dialog opened'));
      await page.goto(`${world.publicUrl}/install`);
      const teammate = hostile.teammates.find(({ is_admin }) => is_admin)?.id ?? '';
      await page.locator(`input[value="${teammate}"]`).check();
      await page.getByRole('button', { name: 'Approve' }).click();
      await page.waitForURL('**/instances/*');
      return { page, dashboard: page.url(), complaints };
    }

    it('shows hostile words as words on every page', async () => {
      const { page, dashboard, complaints } = await installHostile();
      await waitFor(async () => {
        const { resources } = (await (await page.request.get(`${dashboard}/status`)).json()) as {
          resources: Record<string, { records: number }>;
        };
        return Object.values(resources).every(({ records }) => records === 1);
      }, 'the copy');
      const search = `${dashboard}/contacts?q=${encodeURIComponent(HOSTILE)}`;
      const callback = `${world.publicUrl}/oauth/callback?error=${encodeURIComponent(HOSTILE)}`;
      const lists = [`${dashboard}/contacts`, `${dashboard}/conversations`];
      const shown = [world.publicUrl, dashboard, ...lists, `${world.publicUrl}/ops`];
      const todo = [...shown, search, callback];
      const done = new Set<string>();
      for (const address of todo) {
        if (done.has(address)) continue;
        done.add(address);
        await page.goto(address);
        await touchAll(page);
        const text = await page.locator('body').textContent();
        if (shown.includes(address)) expect(text, address).toContain('<script>(window.ran');
        expect(await page.evaluate('window.ran || []'), address).toEqual([]);
        expect(await page.locator('script:not([src])').count(), address).toBe(0);
        expect(await page.locator(':is(svg[onload], [onerror], [onmouseover], [onfocus])').count()).toBe(0);
        expect(await page.locator('a[href^="javascript:"]').count(), address).toBe(0);
        const links = (await page.evaluate('[...document.links].map(({ href }) => href)')) as string[];
        const files = /\.(ndjson|csv)|\/install$/;
        todo.push(...links.filter((link) => link.startsWith(dashboard) && !files.test(link)));
      }
      const records = [...done].filter((address) =>
        /\/(contacts|conversations)(\/|\?record=)./.test(address),
      );
      expect(records.length, 'pages of records that the lists lead to').toBeGreaterThanOrEqual(2);
      expect(complaints.filter((text) => !/40[01]/.test(text))).toEqual([]);
    });

    /** Does what a person could: what waits for a pointer or the focus runs then. */
    function touchAll(page: Page): Promise<unknown> {
      return page.evaluate(`for (const element of document.querySelectorAll('body *')) {
        element.dispatchEvent(new MouseEvent('mouseover', { bubbles: true }));
        element.focus?.();
      }`);
    }

    it('lets another site neither frame a page nor send a form', async () => {
      const { page, dashboard } = await installHostile();
      elsewherePage = `<iframe src="${dashboard}"></iframe>`;
      await page.goto(elsewhereUrl);
      await waitFor(() => page.frames()[1]?.url().startsWith('chrome-error:'), 'the frame to be refused');

      elsewherePage = `<form method="post" action="${dashboard}/disconnect"></form>`;
      await page.goto(elsewhereUrl);
      const answered = page.waitForResponse(`${dashboard}/disconnect`);
      await page.evaluate('document.querySelector("form").submit()');
      expect((await answered).status()).toBe(403);
      const status = await page.request.get(`${dashboard}/status`);
      expect(await status.json()).toMatchObject({ status: 'active' });
    });
  });
});
