import { beforeAll, describe, expect, it } from 'vitest';
import type { HttpBrowser } from '../support/http-browser.ts';
import { createWorld } from './support/world.ts';

const PASSWORD = 'the operator’s own words';

const basic = (password: string, user = 'operator') => ({
  authorization: `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`,
});

describe('24. Another browser’s instance answers 404 on every route; `/ops`, and for programs `/status` and NDJSON, open only with the operator’s password, with limited attempts.', async () => {
  const world = await createWorld();
  const { web } = await world.start();
  const [owner, stranger, nobody] = [world.browser(), world.browser(), world.browser()];
  const company = await world.control.addCompany({ name: 'Riverside Dental' });
  const id = await world.install(owner, company);
  await world.waitForSync(owner, id);
  await world.install(stranger, await world.control.addCompany({ name: 'Strangers' }));
  const contact = JSON.parse((await world.download(owner, id, 'contacts'))[0] ?? '{}') as { id: string };

  const seen = ['', '/status', '/contacts', '/conversations', '/contacts.ndjson', '/conversations.ndjson'];
  const pages = [
    ...seen,
    '/contacts?q=a',
    `/contacts/${contact.id}`,
    '/changes/contacts.ndjson?after=0&limit=1',
    '/runs',
    '/problems',
    '/contacts.csv?q=a',
    '/conversations.csv',
    '/live',
    '/nowhere',
  ];
  const actions = ['sync', 'pause', 'resume', 'replay', 'retry', 'confirm-deletions', 'interval', 'erase'];

  function expectUnseen({ status, body }: { status: number; body: string }): void {
    expect(status).toBe(404);
    expect(body).not.toContain(company.name);
    expect(body).not.toContain(company.id);
  }

  async function everyBrowser(check: (browser: HttpBrowser) => Promise<void>): Promise<void> {
    await check(stranger);
    await check(nobody);
  }

  it.each(seen)('shows the owner GET /instances/:id%s, and no cache keeps it', async (path) => {
    const page = await owner.get(`/instances/${id}${path}`);
    expect(page.status).toBe(200);
    expect(page.headers.get('cache-control')).toContain('no-store');
  });

  it.each(pages)('answers 404 to another browser for GET /instances/:id%s', (path) =>
    everyBrowser(async (browser) => expectUnseen(await browser.get(`/instances/${id}${path}`))),
  );

  it.each([
    ...actions.map((action) => `/${action}`),
    ...actions.map((action) => `/contacts/${action}`),
    '/disconnect',
    '/logout-others',
  ])('answers 404 to another browser for POST /instances/:id%s', async (path) => {
    const mark = await world.control.mark();
    const fields = { delete_data: 'yes', company_name: company.name, minutes: '5', id: contact.id };
    await everyBrowser(async (browser) =>
      expectUnseen(await browser.post(`/instances/${id}${path}`, fields, { follow: false })),
    );
    expect((await world.status(owner, id)).status).toBe('active');
    expect(await world.control.requests(mark)).toEqual([]);
  });

  it('tells another browser nothing about whether an instance exists', async () => {
    const unknown = await stranger.get(`/instances/${[...id].reverse().join('')}`);
    const existing = await stranger.get(`/instances/${id}`);
    expect(existing.text().replace(/[\da-f-]{36}/, '')).toBe(unknown.text().replace(/[\da-f-]{36}/, ''));
  });

  it('has no /ops without OPERATOR_PASSWORD', async () => {
    expect((await owner.get('/ops', { headers: basic('') })).status).toBe(404);
  });

  describe('with OPERATOR_PASSWORD', () => {
    beforeAll(async () => {
      await web.stop();
      await world.startWeb({ env: { OPERATOR_PASSWORD: PASSWORD } });
    });

    it('opens /ops with the password alone, for any user', async () => {
      for (const headers of [
        {},
        basic('wrong'),
        basic(''),
        { authorization: `Bearer ${encodeURIComponent(PASSWORD)}` },
      ]) {
        const page = await owner.get('/ops', { headers: headers as Record<string, string> });
        expect(page.status).toBe(401);
        expect(page.headers.get('www-authenticate')).toMatch(/^Basic realm=/);
        expect(page.body).not.toContain(company.name);
      }
      for (const headers of [basic(PASSWORD), basic(PASSWORD, '')]) {
        const page = await nobody.get('/ops', { headers });
        expect(page.status).toBe(200);
        expect(page.text()).toContain(company.name);
        expect(page.headers.get('cache-control')).toContain('no-store');
      }
    });

    const open = ['status', 'contacts.ndjson', 'conversations.ndjson', 'changes/contacts.ndjson'];
    it.each(open)('lets a program read %s', async (what) => {
      const read = async (instance: string, headers: Record<string, string>) =>
        (await nobody.get(`/instances/${instance}/${what}`, { headers })).status;
      expect(await read(id, basic(PASSWORD))).toBe(200);
      expect(await read(id, basic('wrong'))).toBe(401);
      expect(await read(id, {})).toBe(404);
      expect(await read('ins_none', basic(PASSWORD))).toBe(404);
      expect((await nobody.get(`/instances/${id}`, { headers: basic(PASSWORD) })).status).toBe(404);
      expect((await nobody.post(`/instances/${id}/pause`, {}, { headers: basic(PASSWORD) })).status).toBe(
        404,
      );
    });

    it('limits wrong passwords, whatever address a client makes up', async () => {
      let tries = 0;
      let page = await nobody.get('/ops', { headers: basic('wrong') });
      while (page.status === 401 && tries++ < 200) {
        const headers = { ...basic(`wrong ${tries}`), 'x-forwarded-for': `10.0.0.${tries}` };
        page = await nobody.get('/ops', { headers });
      }
      expect(page.status).toBe(429);
      expect(Number(page.headers.get('retry-after'))).toBeGreaterThan(0);
      expect((await nobody.get('/ops', { headers: basic(PASSWORD) })).status).toBe(429);
      expect((await owner.get(`/instances/${id}`)).status).toBe(200);
    });
  });
});
