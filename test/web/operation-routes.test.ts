import { beforeAll, describe, expect, it } from 'vitest';
import type { StatusQuery } from '../../src/sync/status.ts';
import type { OperationsOverview } from '../../src/web/web-app.ts';
import { install, type StartedWeb, startWeb } from './start-web.ts';
import { at, instanceStatus, listStatus, NOW, runJson } from './status-fixtures.ts';

const NONE = { authorization: 0, token: 0, failing: 0, held: 0, dead_letters: 0, outbox: 0, lagging: 0 };
const TROUBLES = [
  { kind: 'failing', resource: 'contacts', count: null, detail: null, since: at(-60_000) },
  { kind: 'dead_letters', resource: 'contacts', count: 17, detail: 'No <leads>.', since: at(-7_200_000) },
  { kind: 'outbox', resource: null, count: 1, detail: null, since: null },
] as const;

const odd = instanceStatus({
  name: '<i>Odd</i>',
  resources: {
    contacts: listStatus({
      state: 'failed',
      error_kind: 'refused',
      error: 'It broke: 403 of /contacts.',
      failing_since: at(-60_000),
      held_deletions: 60,
      handler: { pending: 5, dead_letters: 17, last_error: 'ECONNREFUSED', next_try_at: null },
      problems: { rejected: 1_234, rejected_records: [], dead_letters: [] },
    }),
    conversations: listStatus({
      state: 'waiting',
      waiting_for: 'limit',
      waiting_until: at(9_000),
      paused: true,
    }),
  },
});

/** What `/ops` asked for last, and what it gets. */
let asked: StatusQuery | undefined;
const app: Pick<OperationsOverview, 'queues' | 'workers'> = { queues: undefined, workers: undefined };
const overview = async (query: StatusQuery): Promise<OperationsOverview> => {
  asked = query;
  return {
    instances: [{ ...odd, status_since: at(-60_000), troubles: [...TROUBLES] }],
    troubles: { ...NONE, failing: 3, outbox: 1 },
    attention: 4,
    paused: 2,
    page: Math.min(query.page, 5),
    total: 234,
    states: { active: 230, needs_reauthorization: 4 },
    lists: { idle: 455, failed: 5 },
    ...app,
  };
};

function basic(password: string): { authorization: string } {
  return { authorization: `Basic ${Buffer.from(`anyone:${password}`).toString('base64')}` };
}

const PASSWORD = 'correct: hörse';
const headers = basic(PASSWORD);
const operations = { password: PASSWORD, overview, troubles: async () => [...TROUBLES] };

let web: StartedWeb;
beforeAll(async () => {
  web = await startWeb({ operations });
});

function show(query: string) {
  return web.browser().get(`/ops${query}`, { headers });
}

describe('/ops', () => {
  it('shows why each instance waits, and sums of all', async () => {
    const { status, body } = await show('');
    expect(status).toBe(200);
    for (const text of [
      ...['&lt;i&gt;Odd&lt;/i&gt;', 'cmp_riverside', 'href="/ops/instances/ins_1"', 'Conversations'],
      ...['refused: It broke: 403 of /contacts.', 'fails since 10 Jun 2025, 11:59 UTC', 'paused by itself'],
      ...['changes pending: 5', 'dead letters: 17', 'rejected records: 1,234', 'deletions held: 60'],
      ...['handler: ECONNREFUSED', 'failed 10 Jun 2025, 11:55 UTC, 4,012 records in 1 min'],
      ...[
        '234 instances, the worst first',
        'idle 455, failed 5',
        '<strong>failing</strong>, 4,012 in the copy',
      ],
    ]) {
      expect(body).toContain(text);
    }
  });

  it('names what is wrong with whom, since when, and what to do', async () => {
    web.domain.pauses.push({
      instanceId: 'ins_1',
      resource: 'conversations',
      by: 'operator anna',
      at: NOW - 900_000,
    });
    for (const path of ['', '/instances/ins_1']) {
      web.domain.instances.set('ins_1', odd);
      const text = (await show(path)).text();
      for (const line of [
        'Contacts: Fails, began 1 min ago . The reason stands with the list.',
        'Contacts: The handler refused: 17 dead letters, began 2 h ago .',
        'The outbox holds: 1 write. Decide with npm run outbox',
        'Conversations: paused by operator anna, began 15 min ago . Ask them, or resume it.',
      ]) {
        expect(text).toContain(line);
      }
    }
    const { body } = await show('?filter=failing');
    expect(body).toContain('<q dir="auto">No &lt;leads&gt;.</q> Fix the handler or its target');
    expect(body).toMatch(/href="\/ops" data-tone="bad" aria-current="true"><strong>3<\/strong> Failing/);
    expect(body).toMatch(/href="\/ops\?filter=held" data-tone="off"><strong>0<\/strong> Deletions held/);
    const help = await show('/help');
    for (const [, anchor = ''] of body.matchAll(/href="\/ops\/help#([^"]+)"/g)) {
      expect(help.body).toContain(`<section id="${anchor}"`);
    }
  });

  it('searches, filters, and keeps both on the way', async () => {
    const { body } = await show('?q=odd&filter=attention&page=2');
    expect(asked).toEqual({ search: 'odd', filter: 'attention', page: 2 });
    expect(body).toContain('href="/ops?filter=attention&amp;q=odd&amp;page=3"');
    expect(body).toContain('<option value="attention" selected>Needs attention (4)</option>');
    expect(body).toContain('<option value="needs_reauthorization">Needs authorization (4)</option>');
    await show('?filter=dead_letters');
    expect(asked).toEqual({ search: '', filter: 'dead_letters', page: 1 });
    await show('?filter=constructor');
    expect(asked).toEqual({ search: '', page: 1 });
  });

  it('tells of queues and workers, or that Redis is away', async () => {
    expect((await show('')).body).toContain('Redis is away');
    app.queues = [{ name: 'sync', counts: { waiting: 3, delayed: 1_200 } }];
    const worker = {
      id: 'w1',
      version: '1.2.3',
      startedAt: NOW - 3_600_000,
      at: NOW - 4_000,
      delivery: 'ready',
    };
    app.workers = [worker];
    const page = await show('');
    expect(page.body).toContain('sync: waiting 3, delayed 1,200');
    expect(page.text()).toContain(
      'w1 , version 1.2.3, up for 1 h, last heartbeat just now , delivery process: ready',
    );
    app.workers = [{ ...worker, at: null, delivery: '' }];
    expect((await show('')).text()).toContain('up for 1 h, without heartbeats: an older version');
    for (const workers of [[], [{ ...worker, at: NOW - 60_000 }]]) {
      app.workers = workers;
      expect((await show('')).body).toContain('No worker process runs, so nothing is copied');
    }
  });

  it('says what the process is not ready for, and why', async () => {
    const readiness = async () => ({ ok: false, checks: { redis: 'ok', database: 'It is <locked>.' } });
    const troubled = await startWeb({ redis: web.redis, readiness, operations });
    const page = await troubled.browser().get('/ops', { headers });
    expect(page.body).toContain('Not ready: database. It is &lt;locked&gt;.');
    expect(page.body).not.toContain('Not ready: redis');
    expect((await show('')).body).not.toContain('Not ready');
  });

  it('shows fifty instances a page, with ways on and back', async () => {
    expect((await show('')).body).toContain('rel="next" href="/ops?page=2"');
    expect((await show('?page=77')).body).toContain('Page 5 of 5');
    expect((await show('?page=-1')).body).toContain('Page 1 of 5');
  });

  it('asks a browser that sees the instance for nothing, whatever it sends', async () => {
    const browser = web.browser();
    await install(browser, 'ins_own');
    for (const authorization of ['Basic c3RhZ2luZzpzZWNyZXQ=', 'Bearer x']) {
      const answer = await browser.get('/instances/ins_own/status', { headers: { authorization } });
      expect(answer.status).toBe(200);
    }
  });
});

describe('the operator’s page of an instance', () => {
  const post = (path: string, fields = {}, more = {}) =>
    web.browser().post(`/ops/instances/ins_1${path}`, fields, { headers: { ...headers, ...more } });

  it('has what went wrong, the runs, and every action behind a confirmation', async () => {
    web.domain.instances.set('ins_1', odd);
    const failed = runJson({ state: 'failed', error: 'It broke: 403.', error_kind: 'refused' });
    web.domain.runs = { contacts: [failed] };
    const page = await show('/instances/ins_1');
    expect(page.body).toContain('It broke: 403.');
    const form = /<details class="confirm">.*?action="\/ops\/instances\/ins_1\/([^"]+)"/gs;
    const ofList = ['sync', 'pause', 'retry', 'replay', 'confirm-deletions'];
    expect([...page.body.matchAll(form)].map(([, action]) => action)).toEqual([
      ...[...ofList, 'disconnect'],
      ...ofList.map((action) => `contacts/${action}`),
      'conversations/resume',
    ]);
    expect((await show('/instances/ins_9')).status).toBe(404);
  });

  it('acts, notes it, and logs it', async () => {
    web.domain.instances.set('ins_1', odd);
    const page = await post('/contacts/sync');
    expect(page.url.pathname).toBe('/ops/instances/ins_1');
    expect(page.body).toContain('A sync is under way.');
    expect(web.domain.calls).toContain('sync ins_1 contacts');
    const facts = { instanceId: 'ins_1', resource: 'contacts', action: 'sync', by: 'operator anyone' };
    expect(web.domain.noted[0]).toMatchObject(facts);
    expect(web.log.lines).toContainEqual(expect.objectContaining({ ...facts, msg: 'action' }));
  });

  it('disconnects, and deletes the data by the company’s name alone', async () => {
    web.domain.instances.set('ins_1', instanceStatus());
    expect((await post('/disconnect', { delete_data: 'yes', company_name: 'Odd' })).status).toBe(400);
    await post('/disconnect', { delete_data: 'yes', company_name: 'Riverside Dental' });
    expect(web.domain.calls).toContain('disconnect and delete ins_1');
  });

  const ofList = ['/contacts/erase', '/contacts/interval', '/contacts/disconnect'];
  it.each(['/logout-others', '/forget', ...ofList])('leaves to administrators: %s', async (path) => {
    web.domain.instances.set('ins_1', odd);
    expect((await post(path)).status).toBe(404);
  });

  it('takes no form of another site, and none without the password', async () => {
    const before = web.domain.calls.length;
    expect((await post('/sync', {}, { 'sec-fetch-site': 'cross-site' })).status).toBe(403);
    expect((await web.browser().post('/ops/instances/ins_1/sync')).status).toBe(401);
    expect(web.domain.calls).toHaveLength(before);
  });
});

describe('the password of /ops', () => {
  it.each([
    ['without its end', PASSWORD.slice(0, -1)],
    ['with something behind it', `${PASSWORD} `],
    ['in capitals', PASSWORD.toUpperCase()],
    ['empty', ''],
    ['far too long', PASSWORD.repeat(500)],
    ['with a NUL', `${PASSWORD}\0`],
    ...['Basic', 'Basic !!', 'Basic bm9jb2xvbg==', 'Bearer x', 'Basic Og=='].map((text) => [text]),
  ])('is not taken: %s', async (authorization = '', password) => {
    const wrong = password === undefined ? { authorization } : basic(password);
    const refused = await web.browser().get('/ops', { headers: wrong });
    expect(refused.status).toBe(401);
    expect(refused.headers.get('www-authenticate')).toMatch(/^Basic /);
  });

  it('is wanted again for every request: no session of a browser opens the page', async () => {
    const browser = web.browser();
    expect((await browser.get('/ops', { headers })).status).toBe(200);
    expect((await browser.get('/ops')).status).toBe(401);
  });
});

describe('for machines', () => {
  it('says that it is alive, ready, and what it counts', async () => {
    const machine = web.browser();
    const ready = { status: 'ready', checks: { database: 'ok' } };
    expect((await machine.get('/healthz')).json()).toEqual({ status: 'alive' });
    expect((await machine.get('/readyz')).json()).toEqual(ready);
    const metrics = await machine.get('/metrics');
    expect(metrics.headers.get('content-type')).toMatch(/^text\/plain; version=0\.0\.4/);
    expect(metrics.body).toBe('up 1\n');
  });

  it('says when it is not ready', async () => {
    const checks = { redis: 'ECONNREFUSED' };
    const away = await startWeb({ redis: web.redis, readiness: async () => ({ ok: false, checks }) });
    const answer = await away.browser().get('/readyz');
    expect(answer.status).toBe(503);
    expect(answer.json()).toEqual({ status: 'not ready', checks });
  });
});
