import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { tempDir } from '../support/temp-dir.ts';
import { install, type StartedWeb, startWeb } from './start-web.ts';
import { instanceStatus } from './status-fixtures.ts';

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
    web.domain.instances.set('ins_a', instanceStatus({ id: 'ins_a', name: 'Alpha' }));
    web.domain.instances.set('ins_b', instanceStatus({ id: 'ins_b', name: '<b>Beta</b>', status: 'paused' }));
    const browser = web.browser();
    await install(browser, 'ins_a');
    await install(browser, 'ins_b');
    const { body } = await browser.get('/');
    expect(body.indexOf('&lt;b&gt;Beta&lt;/b&gt;')).toBeGreaterThan(0);
    expect(body.indexOf('&lt;b&gt;Beta&lt;/b&gt;')).toBeLessThan(body.indexOf('Alpha'));
    expect(body).toContain('Paused');
    expect((await web.browser().get('/')).body).not.toContain('Alpha');
  });

  it('says before a log-out which company can be seen again, and which cannot', async () => {
    web.domain.instances.set('ins_known', instanceStatus({ id: 'ins_known' }));
    web.domain.instances.set('ins_unknown', instanceStatus({ id: 'ins_unknown', company_id: null }));
    const browser = web.browser();
    await install(browser, 'ins_known');
    const settingsOf = async (id: string) => (await browser.get(`/instances/${id}/settings`)).body;
    expect(await settingsOf('ins_known')).toContain('has to sign in again.');
    const known = (await browser.get('/')).body;
    expect(known).toContain('To see a company here again, sign in again.');
    expect(known).not.toContain('You cannot return');
    await install(browser, 'ins_unknown');
    expect(await settingsOf('ins_unknown')).toContain('None can return to it');
    const { body } = await browser.get('/');
    expect(body).toContain('You cannot return to “Riverside Dental” after that');
    expect(body).not.toContain('To see a company here again');
  });

  it('shows the logo of the fork in place of icon and name, if there is one', async () => {
    expect((await web.browser().get('/')).body).toContain('alt="" width="28" height="28">Test app</a>');
    const appInfo = {
      name: 'Acme',
      description: 'd',
      colour: '#000000',
      support: 's',
      logo: '/assets/acme.svg',
    };
    const own = await startWeb({ redis: web.redis, appInfo });
    expect((await own.browser().get('/')).body).toContain(
      '<img src="/assets/acme.svg" alt="Acme" height="32"></a>',
    );
  });

  it('is the page of the fork, if it has one, with partials and assets of both', async () => {
    const ownViews = tempDir();
    for (const folder of ['assets', 'partials']) mkdirSync(join(ownViews, folder));
    const page = `<% layout('./layout', { title: 'Ours' }) %>
<%~ include('./partials/greeting') %><%~ include('/partials/time', { at: null }) %>`;
    writeFileSync(join(ownViews, 'landing.eta'), page);
    writeFileSync(join(ownViews, 'partials/greeting.eta'), 'Welcome to <%= it.site.name %>: ');
    writeFileSync(join(ownViews, 'assets/icon.svg'), '<svg id="ours"/>');
    const browser = (await startWeb({ redis: web.redis, ownViews })).browser();
    expect((await browser.get('/')).body).toMatch(/<title>Ours · Test app[\s\S]*Welcome to Test app: –/);
    expect((await browser.get('/assets/icon.svg')).body).toBe('<svg id="ours"/>');
    expect((await browser.get('/assets/app.css')).status).toBe(200);
    expect((await browser.get('/nowhere')).status).toBe(404);
  });

  it('says that the service is the sandbox, with a link', async () => {
    const sandboxUrl = 'http://127.0.0.1:4010';
    const sandbox = await startWeb({ redis: web.redis, isSandbox: true, sandboxUrl });
    expect((await sandbox.browser().get('/')).body).toContain(`href="${sandboxUrl}"`);
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
