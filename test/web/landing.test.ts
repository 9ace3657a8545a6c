import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { tempDir } from '../support/temp-dir.ts';
import { type StartedWeb, startWeb } from './start-web.ts';

let web: StartedWeb;
beforeAll(async () => {
  web = await startWeb();
});

describe('the front page', () => {
  it('offers the install, names app and help, and gives a visitor no cookie', async () => {
    const { status, headers, body } = await web.browser().get('/');
    expect([status, headers.getSetCookie()]).toEqual([200, []]);
    expect(body).toContain(`href="${web.url}/install"`);
    expect(body).not.toContain('sandbox');
    expect(body).toContain('<title>Install · Test app</title>');
    expect(body).toContain('Questions: help@test.example');
  });

  it("lists this session's instances, newest first, and nobody else's", async () => {
    const { browser, id } = await web.installed('<b>Alpha</b>');
    await web.store.instances.setStatus(id, 'paused', { from: ['active'] });
    await web.installed('Beta', browser);
    const { body } = await browser.get('/');
    expect(body.indexOf('Beta')).toBeGreaterThan(0);
    expect(body.indexOf('Beta')).toBeLessThan(body.indexOf('&lt;b&gt;Alpha&lt;/b&gt;'));
    expect(body).toContain('Paused');
    expect((await web.browser().get('/')).body).not.toContain('Alpha');
  });

  it('says before a log-out which company can be seen again, and which cannot', async () => {
    const { browser, id } = await web.installed('Riverside Dental');
    const settings = async () => (await browser.get(`/instances/${id}/settings`)).body;
    expect(await settings()).toContain('has to sign in again.');
    const known = (await browser.get('/')).body;
    expect(known).toContain('To see a company here again, sign in again.');
    expect(known).not.toContain('You cannot return');
    const { db } = web.store;
    await db.transact((tx) =>
      tx.updateTable('instances').set({ company_id: null }).where('id', '=', id).execute(),
    );
    expect(await settings()).toContain('None can return to it');
    const { body } = await browser.get('/');
    expect(body).toContain('You cannot return to “Riverside Dental” after that');
    expect(body).not.toContain('To see a company here again');
  });

  it('shows the logo of the fork in place of icon and name, if there is one', async () => {
    expect((await web.browser().get('/')).body).toContain('alt="" width="28" height="28">Test app</a>');
    const appInfo = { ...web.deps.appInfo, name: 'Acme', logo: '/assets/acme.svg' };
    const own = await web.restart({ appInfo });
    expect((await own.get('/')).body).toContain('<img src="/assets/acme.svg" alt="Acme" height="32"></a>');
  });

  it('is the page of the fork, if it has one, with partials and assets of both', async () => {
    const ownViews = tempDir();
    for (const folder of ['assets', 'partials']) mkdirSync(join(ownViews, folder));
    const page = `<% layout('./layout', { title: 'Ours' }) %>
<%~ include('./partials/greeting') %><%~ include('/partials/time', { at: null }) %>`;
    writeFileSync(join(ownViews, 'landing.eta'), page);
    writeFileSync(join(ownViews, 'partials/greeting.eta'), 'Welcome to <%= it.site.name %>: ');
    writeFileSync(join(ownViews, 'assets/icon.svg'), '<svg id="ours"/>');
    const browser = await web.restart({ ownViews });
    expect((await browser.get('/')).body).toMatch(/<title>Ours · Test app[\s\S]*Welcome to Test app: –/);
    expect((await browser.get('/assets/icon.svg')).body).toBe('<svg id="ours"/>');
    expect((await browser.get('/assets/app.css')).status).toBe(200);
    expect((await browser.get('/nowhere')).status).toBe(404);
  });

  it('says that the service is the sandbox, with a link', async () => {
    const sandboxUrl = 'http://127.0.0.1:4010';
    const sandbox = await web.restart({ isSandbox: true, sandboxUrl });
    expect((await sandbox.get('/')).body).toContain(`href="${sandboxUrl}"`);
  });
});

describe('every answer', () => {
  it.each(['/', '/nowhere', '/assets/app.css', '/healthz'])('carries security headers: %s', async (path) => {
    const { headers } = await web.browser().get(path);
    const policy = headers.get('content-security-policy') ?? '';
    expect(policy.split(';').sort()).toEqual([
      "base-uri 'none'",
      "connect-src 'self'",
      "default-src 'none'",
      "form-action 'self'",
      "frame-ancestors 'none'",
      "img-src 'self'",
      "script-src 'self'",
      "style-src 'self'",
    ]);
    expect(headers.get('referrer-policy')).toBe('same-origin');
    expect(headers.get('x-content-type-options')).toBe('nosniff');
    expect(headers.has('x-powered-by')).toBe(false);
    expect(headers.has('strict-transport-security')).toBe(false);
  });

  it('carries a request id: a sane one as it came, else a new one', async () => {
    const idFor = async (given: string) =>
      (await web.browser().get('/', { headers: { 'x-request-id': given } })).headers.get('x-request-id');
    expect(await idFor('trace-0123456789')).toBe('trace-0123456789');
    for (const given of ['short', 'x'.repeat(500), 'forged" level="error']) {
      expect(await idFor(given)).toMatch(/^[\da-f-]{36}$/);
    }
  });

  it('lets a browser check its copy of an asset', async () => {
    const first = await web.browser().get('/assets/live.js');
    expect(first.headers.get('content-type')).toMatch(/javascript/);
    const etag = first.headers.get('etag') ?? '';
    const second = await web.browser().get('/assets/live.js', { headers: { 'if-none-match': etag } });
    expect(second.status).toBe(304);
  });
});
