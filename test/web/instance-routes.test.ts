import { beforeEach, describe, expect, it } from 'vitest';
import type { HttpBrowser } from '../support/http-browser.ts';
import { install, type StartedWeb, startWeb } from './start-web.ts';
import { at, HANDLER, instanceStatus, listStatus, runJson } from './status-fixtures.ts';

let web: StartedWeb;
let browser: HttpBrowser;
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
  return [...body.matchAll(/action="\/instances\/ins_1\/([\w-]+)"/g)].map(([, action = '']) => action);
}

/** A page of the instance in this state. */
async function showPage(path: string, changes: Parameters<typeof instanceStatus>[0] = {}) {
  await show(changes);
  return browser.get(`/instances/ins_1/${path}`);
}

describe('the overview', () => {
  it('shows the state, how true it is, and the lists', async () => {
    const { body, headers } = await show({});
    for (const text of [
      'Up to date',
      '4,012',
      'Complete as of</dt><dd><time datetime="2025-06-10T11:55:00.000Z">10 Jun 2025, 11:55 UTC</time>',
      '<time datetime="2025-06-10T12:55:00.000Z" data-relative="ahead">in 55 min<',
    ]) {
      expect(body).toContain(text);
    }
    expect(body).not.toMatch(/undefined|NaN|\[object/);
    expect(headers.get('cache-control')).toBe('no-store');
    expect(body).toMatch(
      /As of <time datetime="2025-06-10T12:00:00.000Z">[^<]+<\/time>\. <a href="\/instances\/ins_1">Reload/,
    );
  });

  it.each([
    [{ status: 'active' }, ['sync', 'pause'], ['logout-others', 'disconnect']],
    [{ status: 'paused' }, ['resume'], ['logout-others', 'disconnect']],
    [{ status: 'needs_reauthorization' }, [], ['logout-others', 'disconnect']],
    [{ status: 'disconnected' }, [], ['logout-others', 'disconnect']],
    [{ status: 'disconnected', has_copy: false }, ['forget'], []],
  ] as const)('and the settings offer what makes sense: %j', async (changes, offered, inSettings) => {
    expect(actions((await show(changes)).body)).toEqual(offered);
    expect(actions((await showPage('settings', changes)).body)).toEqual(inSettings);
  });

  it('says nothing that only a developer understands, and where that stands', async () => {
    const handler = { pending: 10, dead_letters: 2, last_error: 'ECONNREFUSED', next_try_at: at(9_000) };
    const dead = [{ id: 'crd_1', error: 'No leads.', at: at(0) }];
    const problems = { ...listStatus().problems, dead_letters: dead };
    const write = { state: 'unknown', key: 'k', operation: 'replyToConversation', object: '/contacts/crd_1' };
    const outbox = { pending: 0, sending: 0, refused: 0, unknown: 1, discarded: 0, writes: [write] } as never;
    const document = JSON.stringify({ id: 'crd_1', name: 'Ada Lovelace' });
    web.domain.records.set('ins_1/contacts', [
      { id: 'crd_1', document, isCut: false, updatedAt: 0, deletedAt: null },
    ]);
    const changes = { resources: { contacts: listStatus({ handler, problems }) }, outbox };
    const overview = (await show(changes)).text();
    expect(overview).toContain('12 changes could not be handed to Test app.');
    for (const path of ['', '/runs', '/contacts']) {
      const text = (await browser.get(`/instances/ins_1${path}`)).text();
      expect(text, path).not.toMatch(/handler|dead letter|outbox|replay|429|token|leads|ECONN/i);
    }
    const settings = (await showPage('settings', changes)).text();
    for (const text of [
      'Contacts: 10 changes pending. The handler failed. The app tries again in 9 s . ECONNREFUSED',
      'Ada Lovelace crd_1 No leads.',
      'Ada Lovelace /contacts/crd_1',
      '87 of 120 left in this window',
      'Refresh token ends 10 Nov 2025, 12:00 UTC',
    ]) {
      expect(settings).toContain(text);
    }
  });

  it('says that the authorization cannot be renewed', async () => {
    const token = { ...instanceStatus().token, failures: 3 };
    expect((await show({ token })).text()).toContain('The last 3 tries to renew the authorization failed.');
  });

  it('leads to the other companies of the browser, on the page that is open', async () => {
    expect((await showPage('settings')).body).not.toContain('Switch company');
    await install(browser, 'ins_2');
    const { body } = await browser.get('/instances/ins_1/settings');
    expect(body).toContain('<li><a href="/instances/ins_2/settings" dir="auto">ins_2</a></li>');
    expect(body).toContain('<a href="/instances/ins_1/settings" aria-current="page">Settings</a>');
  });

  it('hides the sync while everything is under way', async () => {
    const busy = listStatus({ state: 'running' });
    const { body } = await show({ resources: { contacts: busy, conversations: busy } });
    expect(body).toContain('action="/instances/ins_1/sync" hidden>');
    const failing = listStatus({ state: 'waiting', waiting_for: 'retry', error_kind: 'timeout' });
    const { body: offered } = await show({ resources: { contacts: failing, conversations: busy } });
    expect(offered).toContain('action="/instances/ins_1/sync">');
  });

  it.each([
    ['needs_reauthorization', 'Authorize again'],
    ['disconnected', 'Install again'],
  ] as const)('leads to the authorization and back when %s', async (status, words) => {
    const { body } = await show({ status });
    expect(body).toContain(`href="${web.url}/install?return_to=%2Finstances%2Fins_1">${words}`);
  });

  it('shows on the page of problems what there is, as text, or that there is nothing', async () => {
    await show({});
    expect((await browser.get('/instances/ins_1/problems')).body).toContain('No problems.');
    const problems = {
      rejected: 7,
      rejected_records: [{ reason: 'It has <b>no</b> id.', excerpt: '<img>', length: 5, at: at(0) }],
      dead_letters: [{ id: '#7', error: 'db: <leads> is unknown', at: at(0) }],
    };
    const dashboard = await show({ name: '<i>Ω</i>', resources: { contacts: listStatus({ problems }) } });
    expect(dashboard.body).toContain('It has &lt;b&gt;no&lt;/b&gt; id.');
    expect((await browser.get('/instances/ins_1/settings')).body).toContain('db: &lt;leads&gt; is unknown');
    const { body } = await browser.get('/instances/ins_1/problems');
    for (const text of ['It has &lt;b&gt;no&lt;/b&gt; id.', '&lt;img&gt;', '&lt;i&gt;Ω', 'And 6 more.']) {
      expect(body).toContain(text);
    }
    expect(body).toContain('href="/instances/ins_1/contacts?record=%237"><code dir="auto">#7</code>');
    expect(body).not.toMatch(/There are no problems|<b>|<img>|<i>|undefined/);
  });
});

describe('writes to the service', () => {
  const write = {
    key: 'reply:<cnv_1>',
    operation: 'replyToConversation',
    object: '/conversations/cnv_1',
    state: 'unknown',
    attempts: 1,
    error: 'The service <b>failed</b> (500).',
    created_at: at(-60_000),
    next_try_at: null,
    has_content: true,
  } as const;
  const refused = { ...write, key: 'tag', state: 'refused', error: 'No such tag.' } as const;
  const retried = { ...write, key: 'later', state: 'pending', next_try_at: at(20_000) } as const;
  const none = { pending: 0, sending: 0, refused: 0, unknown: 0, discarded: 0, writes: [] };

  it('stand in the settings while they wait, with what a person can do', async () => {
    expect((await showPage('settings')).body).not.toContain('waiting to be written');
    const outbox = {
      ...none,
      pending: 3,
      sending: 1,
      refused: 1,
      unknown: 2,
      writes: [write, refused, retried],
    };
    expect((await show({ outbox })).text()).toContain(
      'The copy is up to date, but 3 changes for the service wait for a decision.',
    );
    const page = await showPage('settings', { outbox });
    const text = page.text();
    for (const part of [
      '3 writes wait. 1 is being sent.',
      'Unknown Sends a message in a conversation: /conversations/cnv_1',
      'it may have arrived',
      'No such tag.',
      'The app tries again in 20 s',
      'And 1 more.',
    ]) {
      expect(text).toContain(part);
    }
    expect(page.body).not.toMatch(/<b>|<cnv_1>|undefined/);
    const buttons = [
      ...page.body.matchAll(/(send-again|end-write)".*?name="id" value="([^"]+)".*?>([\w ]+)<\/button>/g),
    ];
    expect(buttons.map(([, ...what]) => what)).toEqual([
      ['send-again', 'reply:&lt;cnv_1&gt;', 'Send again'],
      ['end-write', 'reply:&lt;cnv_1&gt;', 'It arrived'],
      ['send-again', 'tag', 'Try again'],
      ['end-write', 'tag', 'Discard'],
      ['send-again', 'later', 'Try now'],
      ['end-write', 'later', 'Discard'],
    ]);
    const { body: problems } = await browser.get('/instances/ins_1/problems');
    expect(problems).not.toContain('No problems.');
    expect(problems).toContain('It arrived');
  });

  it('are decided by their key, and the action is noted without it', async () => {
    await show({ outbox: { ...none, unknown: 1, writes: [write] } });
    for (const action of ['send-again', 'end-write']) {
      const { url } = await browser.post(`/instances/ins_1/${action}`, { id: write.key });
      expect(url.search).toBe(`?done=${action}`);
    }
    expect(web.domain.calls.slice(-2)).toEqual([
      `resolve ins_1 ${write.key} retry`,
      `resolve ins_1 ${write.key} discard`,
    ]);
    expect(web.domain.noted).toMatchObject([{ action: 'end-write', record: null }, { action: 'send-again' }]);
  });

  it('of a company that was disconnected can only be said to have arrived', async () => {
    const left = { ...none, unknown: 1, discarded: 4, writes: [{ ...write, has_content: false }] };
    const { body } = await showPage('settings', { status: 'disconnected', outbox: left });
    expect(body).toContain('The disconnect discarded 4 writes.');
    expect(body).toContain('It arrived');
    expect(body).not.toContain('Send again');
  });
});

describe('the status', () => {
  it('has the same facts as JSON', async () => {
    await show({ name: 'Ω' });
    expect((await browser.get('/instances/ins_1/status')).json()).toEqual(instanceStatus({ name: 'Ω' }));
  });

  it('answers 304 as long as nothing but the clock changes', async () => {
    const tag = /data-tag="([^"]+)"/.exec((await show({})).body)?.[1]?.replaceAll('&quot;', '"') ?? '';
    const ask = () =>
      browser.get('/instances/ins_1/status', {
        headers: { 'if-none-match': tag, 'cache-control': 'no-cache' },
      });
    await show({ now: at(1_000) });
    expect((await ask()).status).toBe(304);
    await show({ status: 'paused' });
    expect((await ask()).status).toBe(200);
  });
});

describe('the history', () => {
  const error = { error_kind: 'server_error', error: '503 of /inside' } as const;
  const failed = runJson({ id: 2, state: 'failed', refused: 4, ...error });

  it('has charts and rows without what is inside, or is JSON when that is asked for', async () => {
    expect((await browser.get('/instances/ins_1/runs')).text()).toContain('No sync yet.');
    web.domain.runs = { contacts: [failed, runJson()] };
    const day = { day: '2025-06-10', runs: 1, failed: 0, created: 12, changed: 0, deleted: 1, first_copy: 0 };
    web.domain.dayRows = { contacts: [day] };
    const page = await browser.get('/instances/ins_1/runs');
    expect(page.body).toContain('aria-label="10 Jun: 12 new, 1 deleted · 1 sync"');
    for (const text of ['Contacts: 12 new, 3 changed, 1 deleted', 'The service has an error of its own.']) {
      expect(page.text()).toContain(text);
    }
    expect(page.body).not.toContain('/inside');
    const json = await browser.get('/instances/ins_1/runs', { headers: { accept: 'application/json' } });
    expect(json.json()).toEqual({ contacts: [failed, runJson()] });
  });
});

describe('the buttons', () => {
  const problems = { ...listStatus().problems, dead_letters: [{ id: 'crd_1', error: 'No', at: at(0) }] };
  const contacts = listStatus({ handler: { ...HANDLER, dead_letters: 1 }, held_deletions: 60, problems });
  const paused = { contacts: listStatus({ paused: true }), conversations: listStatus({ handler: HANDLER }) };

  it.each([
    ['sync', {}, 'sync ins_1'],
    ['pause', {}, 'pause ins_1'],
    ['resume', { status: 'paused' }, 'resume ins_1'],
    ['disconnect', {}, 'disconnect ins_1'],
    ['retry', {}, 'retry ins_1'],
    ['replay', {}, 'replay ins_1'],
    ['contacts/sync', {}, 'sync ins_1 contacts'],
    ['contacts/pause', {}, 'pause ins_1 contacts'],
    ['contacts/resume', { resources: paused }, 'resume ins_1 contacts'],
    ['contacts/retry', {}, 'retry ins_1 contacts'],
    ['contacts/replay', {}, 'replay ins_1 contacts'],
    ['contacts/confirm-deletions', {}, 'confirm ins_1 contacts'],
  ] as const)('%s, lead back, and are noted', async (path, changes, call) => {
    const overview = await show({ resources: { ...paused, contacts }, ...changes });
    const isThere = overview.body.includes(`action="/instances/ins_1/${path}"`);
    const page = isThere ? overview : await browser.get('/instances/ins_1/settings');
    const answer = await browser.submit(page.form(`/instances/ins_1/${path}`), {}, { follow: false });
    const [action, list] = path.split('/').reverse();
    const done = list === undefined ? `done=${action}` : `done=${action}&list=${list}`;
    // A disconnected company has other things to show than its settings.
    const place = isThere || action === 'disconnect' ? '' : '/settings';
    expect([answer.status, answer.location?.href]).toEqual([
      303,
      `${web.url}/instances/ins_1${place}?${done}`,
    ]);
    expect(web.domain.calls.slice(1)).toEqual([call]);
    const noted = { action, instanceId: 'ins_1', resource: list ?? null, by: 'administrator' };
    expect(web.domain.noted).toEqual([expect.objectContaining(noted)]);
  });

  it('confirm the deletions of every list', async () => {
    await show({ resources: { contacts } });
    await browser.post('/instances/ins_1/confirm-deletions');
    expect(web.domain.calls).toContain('confirm ins_1');
  });

  it.each(['sync', 'pause', 'resume', 'disconnect'])('say once what they did: %s', async (action) => {
    await show({ status: action === 'resume' ? 'paused' : 'active' });
    const page = await browser.post(`/instances/ins_1/${action}`);
    expect(page.body).toContain('class="flash" data-tone="good"');
    expect((await browser.get('/instances/ins_1')).body).not.toContain('class="flash"');
  });

  it('of a list stand only where they can do something', async () => {
    const { body } = await showPage('settings', { resources: paused });
    expect(body).not.toMatch(/action="[^"]*(contacts\/sync|conversations\/retry)"/);
    expect(body).toContain('action="/instances/ins_1/contacts/resume"');
  });

  it.each(['15', ''])('set the interval of a list: “%s”', async (minutes) => {
    const form = (await showPage('settings')).form('/instances/ins_1/contacts/interval');
    expect(form.fields.get('minutes')).toBe('60');
    await browser.submit(form, { minutes });
    expect(web.domain.calls).toContain(`interval ins_1 contacts ${minutes || 'null'}`);
  });

  it.each(['0', '-1', '1.5', 'x', '1e2', '44641', '9999999'])('refuse the interval %s', async (minutes) => {
    await show({});
    const answer = await browser.post('/instances/ins_1/contacts/interval', { minutes });
    expect(answer.status).toBe(400);
    expect(answer.body).toMatch(
      new RegExp(`id="interval-contacts"[^>]*value="${minutes}"[^>]*aria-invalid="true"`),
    );
    expect(answer.body).toMatch(
      /id="interval-help-contacts" class="failure">An interval is .* from 1 to 44,640/,
    );
    expect(answer.body.match(/aria-invalid/g)).toHaveLength(1);
  });

  it.each([
    ['retry', {}],
    ['replay', {}],
    ['forget', { status: 'disconnected' }],
    ['disconnect', { status: 'disconnected' }],
    ['pause', { status: 'disconnected' }],
  ] as const)('do nothing where they make no sense: %s, %j', async (action, changes) => {
    const pages = [await show(changes), await browser.get('/instances/ins_1/settings')];
    for (const { body } of pages) expect(body).not.toMatch(/Replay|Try again|action="[^"]*\/retry"/);
    expect((await browser.post(`/instances/ins_1/${action}`)).body).toContain('Nothing was done');
    expect(web.domain.calls).toEqual(['exchange ins_1']);
    expect(web.domain.noted).toEqual([]);
  });

  it.each(['sync', 'pause', 'disconnect', 'forget', 'x'])('say nothing untrue: done=%s', async (done) => {
    await show({});
    expect((await browser.get(`/instances/ins_1?done=${done}`)).body).not.toContain('class="flash"');
  });

  it('say that one list is paused, and not all of it', async () => {
    await show({ resources: paused });
    const { body } = await browser.get('/instances/ins_1?done=pause&list=contacts');
    expect(body).toContain('The list is paused. The other lists go on.');
  });

  it('take a record’s id as it came, or as a person types it', async () => {
    await show({});
    web.domain.known = new Set([' lead', '#7']);
    for (const id of [' lead', '7']) await browser.post('/instances/ins_1/contacts/erase', { id });
    expect(web.domain.calls.slice(1)).toEqual(['erase ins_1 contacts  lead', 'erase ins_1 contacts #7']);
    expect((await browser.post('/instances/ins_1/contacts/erase', { id: '8' })).status).toBe(404);
  });

  const WRONG_NAME = 'type the company’s name: Riverside Dental. Nothing was done.';
  it.each([
    [{ delete_data: 'yes' }, WRONG_NAME],
    [{ delete_data: 'yes', company_name: 'Riverside' }, WRONG_NAME],
    [{ company_name: 'Riverside Dental' }, 'did not tick “Also delete the copied data”. Nothing was done.'],
  ])('delete no data without the tick and the company’s name: %j', async (fields, words) => {
    await show({});
    const answer = await browser.post('/instances/ins_1/disconnect', fields);
    expect(answer.status).toBe(400);
    expect(answer.body).toContain(words);
    // What was typed stays.
    const { fields: kept } = answer.form('/instances/ins_1/disconnect');
    expect(Object.fromEntries(kept)).toMatchObject(fields);
    expect(web.domain.calls).toEqual(['exchange ins_1']);
  });

  it('disconnect and delete the data by the company’s name, however it is spelled', async () => {
    await show({});
    const fields = { delete_data: 'yes', company_name: ' riverside  DENTAL ' };
    const page = await browser.post('/instances/ins_1/disconnect', fields);
    expect(web.domain.calls).toContain('disconnect and delete ins_1');
    expect(web.domain.noted[0]).toMatchObject({ action: 'disconnect and delete data' });
    expect(page.body).toContain('To end the permission itself, remove the app at the service.');
  });

  it('delete the copy of a company that is disconnected, which then can leave the list', async () => {
    const page = await showPage('settings', { status: 'disconnected' });
    await browser.submit(page.form('/instances/ins_1/disconnect'), { company_name: 'Riverside Dental' });
    expect(web.domain.calls).toContain('disconnect and delete ins_1');
    const emptied = await show({ status: 'disconnected', has_copy: false });
    const front = await browser.submit(emptied.form('/instances/ins_1/forget'));
    expect(front.url.pathname).toBe('/');
    expect(front.body).toContain('no longer lists the company');
    expect(front.body).not.toContain('Riverside Dental');
    expect((await browser.get('/instances/ins_1')).status).toBe(404);
  });

  const others = ['forget', 'disconnect', 'constructor'].map((action) => `contacts/${action}`);
  it.each([...others, 'tags/sync', 'erase', 'interval', 'constructor'])('are no others: %s', async (path) => {
    expect((await browser.post(`/instances/ins_1/${path}`)).status).toBe(404);
  });
});

describe('a browser that another one has logged out', () => {
  it('reads so, until it signs in again', async () => {
    const other = web.browser();
    await install(other);
    await browser.post('/instances/ins_1/logout-others');
    for (const path of ['', '/contacts', '/settings']) {
      const page = await other.get(`/instances/ins_1${path}`);
      expect([page.status, page.text().includes('You were signed out')], path).toEqual([404, true]);
      expect(page.body).toContain(`return_to=%2Finstances%2Fins_1${encodeURIComponent(path)}"`);
    }
    const pressed = await other.post('/instances/ins_1/contacts/pause');
    expect(pressed.body).toContain('return_to=%2Finstances%2Fins_1"');
    expect((await other.get('/')).body).not.toContain('/instances/ins_1');
    // Nobody else reads that there is such a company.
    expect((await web.browser().get('/instances/ins_1')).text()).not.toContain('You were signed out');
    expect((await install(other)).status).toBe(200);
  });
});

describe('signing in', () => {
  /** From an address without access to the page behind the authorization of a company. */
  async function signIn(path: string, code: string) {
    const other = web.browser();
    const page = await other.get(path);
    return install(other, code, /href="([^"]+)">Sign in with the service/.exec(page.body)?.[1]);
  }

  it('leads back to the address that was asked for, also after an attempt that failed', async () => {
    await show({});
    web.domain.records.set('ins_1/contacts', []);
    const path = '/instances/ins_1/contacts?q=Ada%20L';
    expect((await signIn(path, 'ins_1')).url.href).toBe(web.url + path);
    web.domain.failure = 'denied';
    const failed = await signIn(path, 'ins_1');
    expect(failed.body).toContain(
      `href="${web.url}/install?${new URLSearchParams({ return_to: path })}">Start again`,
    );
  });

  it('says so when it was another company', async () => {
    await show({});
    web.domain.instances.set('ins_2', instanceStatus({ id: 'ins_2', name: 'Harbour & Finch' }));
    const page = await signIn('/instances/ins_1', 'ins_2');
    expect(page.url.pathname).toBe('/instances/ins_2');
    expect(page.body).toContain('You authorized Harbour &amp; Finch.');
    expect(page.body).toContain('Sign in with another company');
    expect(page.body).not.toContain('Riverside');
  });

  it.each([
    '//evil.example',
    'https://evil.example',
    '/logout',
    '/instances/ins_1/../../x',
    '/instances/ins_1/%2e%2E/ops',
    '/instances/\\evil',
    'x'.repeat(3_000),
  ])('takes no return address but one of an instance: %s', async (path) => {
    const start = `/install?${new URLSearchParams({ return_to: path })}`;
    const page = await install(web.browser(), 'ins_1', start);
    expect(page.url.href).toBe(`${web.url}/instances/ins_1`);
  });
});

it('an instance of somebody else is an error object for programs', async () => {
  const answer = await web.browser().get('/instances/ins_1/status');
  expect(answer.json()).toMatchObject({ _error: { status: 404, title: 'Not found' } });
});
