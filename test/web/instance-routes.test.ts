import { beforeEach, describe, expect, it } from 'vitest';
import type { HttpSession } from '../support/http-session.ts';
import { install, type StartedWeb, startWeb } from './start-web.ts';
import { at, instanceStatus, resourceStatus } from './status-fixtures.ts';

let web: StartedWeb;
let browser: HttpSession;
beforeEach(async () => {
  web = await startWeb(web ? { redis: web.redis } : {});
  browser = web.browser();
  await install(browser);
});

function show(changes: Parameters<typeof instanceStatus>[0]) {
  web.domain.instances.set('ins_1', instanceStatus(changes));
  return browser.get('/instances/ins_1');
}

function actions(body: string): string[] {
  const shown = body.replace(/<details[^>]* hidden>.*?<\/details>/gs, '');
  return [...shown.matchAll(/action="\/instances\/ins_1\/([\w-]+)"(?! data-show="[^"]*" hidden)/g)].map(
    ([, action = '']) => action,
  );
}

describe('the dashboard', () => {
  it('shows the state, the progress, the budget and the tokens', async () => {
    const { body, headers } = await show({});
    expect(body).toContain('Up to date');
    expect(body).toContain('4,012');
    expect(body).toContain('87 of 120 requests left in this window');
    expect(body).toContain('It will be renewed in 152 days');
    expect(body).toContain('<time data-time="token.expires" datetime="2025-11-10T12:00:00.000Z">');
    expect(headers.get('cache-control')).toBe('no-store');
  });

  it.each([
    ['active', ['sync', 'pause', 'logout-others', 'disconnect']],
    ['paused', ['resume', 'logout-others', 'disconnect']],
    ['needs_reauthorization', ['logout-others', 'disconnect']],
    ['disconnected', ['logout-others', 'disconnect']],
  ] as const)('offers what makes sense when %s', async (status, offered) => {
    expect(actions((await show({ status })).body)).toEqual(offered);
  });

  it('offers to take a company off the list once nothing is kept of it', async () => {
    expect(actions((await show({ status: 'disconnected', has_copy: false })).body)).toEqual(['forget']);
  });

  it('deletes a copy in which every record is marked as deleted', async () => {
    const resources = { contacts: resourceStatus({ stored: 0 }) };
    const page = await show({ status: 'disconnected', has_copy: true, resources });
    expect(actions(page.body)).toEqual(['logout-others', 'disconnect']);
    const deleted = await browser.submit(page.form('/instances/ins_1/disconnect'));
    expect(deleted.body).toContain('>The copied data is deleted.<');
    expect(web.domain.calls).toContain('disconnect and delete ins_1');
  });

  it('says once why a new authorization is needed', async () => {
    const { body } = await show({
      status: 'needs_reauthorization',
      notice: 'The service does not accept the refresh token any more. Authorize the app again to go on.',
      resources: { contacts: resourceStatus({ state: 'waiting', waiting_for: 'turn' }) },
    });
    expect(body).toMatch(/data-text="state\.next"[^>]* hidden>/);
    expect(body.match(/refresh token any more/g)).toHaveLength(1);
    expect(body).not.toContain('Waiting for its turn');
  });

  it('hides the sync while everything is under way', async () => {
    const busy = resourceStatus({ state: 'running' });
    const { body } = await show({ resources: { contacts: busy, conversations: busy } });
    expect(actions(body)).toEqual(['pause', 'logout-others', 'disconnect']);
  });

  it.each([
    ['needs_reauthorization', 'Authorize again'],
    ['disconnected', 'Install again'],
  ] as const)('leads back to the install when %s', async (status, words) => {
    expect((await show({ status })).body).toMatch(new RegExp(`href="${web.url}/install">${words}`));
  });

  it('escapes what the service or a company says, and prints no undefined', async () => {
    const { body } = await show({
      name: '<script>alert(1)</script>',
      notice: '"<img src=x>',
      resources: { contacts: resourceStatus({ error: "<b onclick='x'>" }) },
    });
    expect(body).not.toMatch(/<script>|<img src=x|<b onclick/);
    expect(body).toContain('&lt;script&gt;alert(1)&lt;/script&gt;');
    expect(body).not.toMatch(/undefined|NaN|\[object/);
  });

  it('says on the page of what is set aside what there is, as text, or that there is nothing', async () => {
    await show({});
    expect((await browser.get('/instances/ins_1/set-aside')).body).toContain('Nothing is set aside.');
    const records = [{ reason: 'It has <b>no</b> id.', excerpt: '<img>', length: 5, first_seen_at: at(0) }];
    const set_aside = { ...resourceStatus().set_aside, quarantined: 7, quarantined_records: records };
    await show({ name: '<i>Ω</i>', resources: { contacts: resourceStatus({ set_aside }) } });
    const { body } = await browser.get('/instances/ins_1/set-aside');
    for (const text of ['It has &lt;b&gt;no&lt;/b&gt; id.', '&lt;img&gt;', '&lt;i&gt;Ω', 'And 6 more.']) {
      expect(body).toContain(text);
    }
    expect(body).not.toMatch(/Nothing is set aside|<b>|<img>|<i>|undefined/);
  });

  it('answers the same facts as JSON', async () => {
    await show({ name: 'Ω' });
    expect((await browser.get('/instances/ins_1/status')).json()).toEqual(instanceStatus({ name: 'Ω' }));
  });
});

describe('the buttons', () => {
  it.each([
    ['sync', 'active', 'sync ins_1'],
    ['pause', 'active', 'pause ins_1'],
    ['resume', 'paused', 'resume ins_1'],
    ['disconnect', 'active', 'disconnect ins_1'],
  ] as const)('%s, say so once, and lead back', async (action, status, call) => {
    const page = await show({ status });
    const form = page.form(`/instances/ins_1/${action}`);
    const answer = await browser.submit(form, {}, { follow: false });
    expect(answer.status).toBe(303);
    expect(answer.location?.pathname).toBe('/instances/ins_1');
    expect(web.domain.calls).toContain(call);
    expect((await browser.get(answer.location ?? '')).body).toContain('class="flash" data-tone="good"');
    expect((await browser.get('/instances/ins_1')).body).not.toContain('class="flash"');
  });

  it('log other browsers out, and not this one', async () => {
    const other = web.browser();
    await install(other);
    const page = await browser.submit((await show({})).form('/instances/ins_1/logout-others'));
    expect(page.body).toContain('Every other browser is logged out');
    expect((await other.get('/instances/ins_1')).status).toBe(404);
  });

  it('delete the copied data only when that was ticked', async () => {
    const form = (await show({})).form('/instances/ins_1/disconnect');
    await browser.submit(form, { delete_data: 'yes' });
    expect(web.domain.calls).toContain('disconnect and delete ins_1');
  });

  it('delete the copy of a company that is disconnected, which then can leave the list', async () => {
    const page = await show({ status: 'disconnected' });
    const deleted = await browser.submit(page.form('/instances/ins_1/disconnect'));
    expect(web.domain.calls).toContain('disconnect and delete ins_1');
    expect(deleted.body).toContain('>The copied data is deleted.<');
    const emptied = await show({ status: 'disconnected', has_copy: false });
    const front = await browser.submit(emptied.form('/instances/ins_1/forget'));
    expect(front.url.pathname).toBe('/');
    expect(front.body).toContain('off the list');
    expect(front.body).not.toContain('Riverside Dental');
    expect((await browser.get('/instances/ins_1')).status).toBe(404);
  });

  it('forget no company that has a copy, and disconnect none twice', async () => {
    const { fields } = (await show({ status: 'disconnected' })).form('/instances/ins_1/disconnect');
    const kept = await browser.post('/instances/ins_1/forget', fields);
    expect(kept.body).toContain('Nothing was done');
    const again = await browser.post('/instances/ins_1/disconnect');
    expect(again.body).toContain('Nothing was done');
    expect(web.domain.calls).toEqual(['exchange ins_1']);
  });

  it('do nothing in a state where they make no sense', async () => {
    const form = (await show({})).form('/instances/ins_1/pause');
    await show({ status: 'disconnected' });
    const page = await browser.submit(form);
    expect(page.body).toContain('Nothing was done');
    expect(web.domain.calls).not.toContain('pause ins_1');
  });

  it('refuse a form of another site', async () => {
    const headers = { 'sec-fetch-site': 'cross-site' };
    const page = await browser.post('/instances/ins_1/sync', {}, { headers });
    expect(page.status).toBe(403);
    expect(web.domain.calls).not.toContain('sync ins_1');
  });

  it('refuse a form that is too large, and other actions', async () => {
    expect((await browser.post('/instances/ins_1/sync', { x: 'x'.repeat(20_000) })).status).toBe(413);
    expect((await browser.post('/instances/ins_1/constructor', {})).status).toBe(404);
  });
});

describe('an instance of somebody else', () => {
  const paths = ['', '/status', '/live', '/set-aside', '/contacts', '/contacts/crd_1', '/contacts.ndjson'];

  it.each(paths)('is not there: GET %s', async (path) => {
    const stranger = web.browser();
    await install(stranger, 'ins_2');
    const foreign = await stranger.get(`/instances/ins_1${path}`);
    const missing = await stranger.get(`/instances/ins_9${path}`);
    expect(foreign.status).toBe(404);
    const withoutId = (text: string) => text.replace(/[\da-f-]{36}/g, '');
    expect(withoutId(foreign.body)).toBe(withoutId(missing.body));
    expect((await web.browser().get(`/instances/ins_1${path}`)).status).toBe(404);
  });

  it.each(['sync', 'pause', 'resume', 'disconnect', 'forget'])('is not there: POST %s', async (action) => {
    const stranger = web.browser();
    const { fields } = (await install(stranger, 'ins_2')).form('/instances/ins_2/pause');
    expect((await stranger.post(`/instances/ins_1/${action}`, fields)).status).toBe(404);
    expect((await web.browser().post(`/instances/ins_1/${action}`)).status).toBe(404);
    expect(web.domain.calls.filter((call) => call.endsWith('ins_1'))).toEqual(['exchange ins_1']);
  });

  it('is an error object for programs', async () => {
    const answer = await web.browser().get('/instances/ins_1/status');
    expect(answer.json()).toMatchObject({ _error: { status: 404, title: 'Not found' } });
  });
});
