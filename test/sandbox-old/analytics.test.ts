import { expect, test } from 'vitest';
import { expectGuarded } from '../sandbox/support/guarded.ts';
import { at, START_MS, startFrozen } from '../sandbox/support/test-sandbox.ts';

const RUN_MS = 5_000;
const GUARD_MS = 3_000;

interface Job {
  _links: { self: string };
  id: string;
  status: string;
  progress: number;
  metrics: { id: string; type: string; value: number | null }[];
  url: string | null;
  size: number | null;
  filename: string;
}

interface List<Item> {
  _pagination: { next: string | null };
  _results: Item[];
}

interface Conversation {
  id: string;
  subject: string;
  created_at: number;
  inbox: { id: string };
  tags: { id: string }[];
  assignee: { id: string } | null;
}

const YEAR_2024 = { start: Date.UTC(2024, 0, 1) / 1000, end: Date.UTC(2025, 0, 1) / 1000 };

async function start(spec: object = {}) {
  const service = await startFrozen();
  const company = await service.company(spec);
  const token = at(company.api_tokens, 0).token;
  /** A request to a guarded route, when its guard is free again. */
  const post = async (path: string, body: unknown) => {
    await service.advance(GUARD_MS);
    return service.call<Job>('POST', path, token, body);
  };
  const get = async (path: string) => (await service.call<Job>('GET', path, token)).body;
  return { service, company, token, post, get };
}

test('a report is answered at once, is running, and is read back as it was asked for', async () => {
  const { post, get } = await start();
  const sent = {
    ...YEAR_2024,
    timezone: 'Europe/Berlin',
    filters: { inbox_ids: ['inb_any'], ours: 'x' },
    of_ours: { deep: [1] },
  };
  const { status, body: report } = await post('/analytics/reports', {
    ...sent,
    metrics: ['messages_sent', 'reply_time'],
  });
  expect(status).toBe(201);
  expect(report).toMatchObject({
    ...sent,
    status: 'running',
    progress: 0,
    metrics: [
      { id: 'messages_sent', type: 'number', value: null },
      { id: 'reply_time', type: 'duration', value: null },
    ],
    created_at: (START_MS + GUARD_MS) / 1000,
  });
  expect(await get(report._links.self)).toEqual(report);
});

test('a report becomes ready by the service’s clock, to the millisecond, with its metrics', async () => {
  const { service, post, get } = await start();
  const { body: report } = await post('/analytics/reports', { metrics: ['messages_sent', 'reply_time'] });
  const progress: number[] = [];
  for (const step of [1, 1_999, 2_999]) {
    await service.advance(step);
    const { status, progress: percent, metrics } = await get(report._links.self);
    expect(status).toBe('running');
    expect(metrics.map(({ value }) => value)).toEqual([null, null]);
    progress.push(percent);
  }
  expect(progress).toEqual([0, 40, 99]);
  await service.advance(RUN_MS - 4_999);
  const done = await get(report._links.self);
  expect(done).toMatchObject({ ...report, status: 'done', progress: 100, metrics: expect.any(Array) });
  expect(done.metrics).toEqual([
    { id: 'messages_sent', type: 'number', value: expect.any(Number) },
    { id: 'reply_time', type: 'duration', value: expect.any(Number) },
  ]);
  await service.advance(86_400_000);
  expect(await get(report._links.self)).toEqual(done);
});

test('the same question has the same numbers, another one others', async () => {
  const { service, post, get } = await start();
  const values = async (body: object) => {
    const { body: report } = await post('/analytics/reports', body);
    await service.advance(RUN_MS);
    return (await get(report._links.self)).metrics.map(({ value }) => value);
  };
  const first = await values(YEAR_2024);
  expect(first.length).toBeGreaterThan(3);
  expect(await values(YEAR_2024)).toEqual(first);
  expect(await values({ ...YEAR_2024, filters: { inbox_ids: ['inb_x'] } })).not.toEqual(first);
  expect(await values({ ...YEAR_2024, end: YEAR_2024.end - 1 })).not.toEqual(first);
});

test('without a time both are about the last 30 days', async () => {
  const { post } = await start();
  for (const path of ['/analytics/reports', '/analytics/exports']) {
    const { body } = await post(path, {});
    const { start: from, end, created_at } = body as unknown as Record<string, number>;
    expect(end).toBe(created_at);
    expect((end ?? 0) - (from ?? 0)).toBe(30 * 86_400);
  }
});

test('an export becomes ready, and then has the address of its file, which the same token opens', async () => {
  const { service, token, post, get } = await start();
  const sent = { ...YEAR_2024, type: 'messages', columns: ['id'] };
  const { status, body: asked } = await post('/analytics/exports', sent);
  expect(status).toBe(201);
  expect(asked).toMatchObject({ ...sent, status: 'running', progress: 0, url: null, size: null });
  expect((await service.api(`${asked._links.self}/file`, token)).status).toBe(404);
  await service.advance(RUN_MS);
  const done = await get(asked._links.self);
  expect(done).toMatchObject({ ...sent, status: 'done', progress: 100 });
  const file = await service.api(done.url ?? '', token);
  expect(file.status).toBe(200);
  expect(file.headers.get('content-type')).toBe('text/csv; charset=utf-8');
  expect(file.headers.get('content-disposition')).toBe(`attachment; filename="${done.filename}"`);
  expect((await file.arrayBuffer()).byteLength).toBe(done.size);
  expect((await fetch(done.url ?? '')).status).toBe(401);
});

const FILTERS: { kind: string; idsOf: (conversation: Conversation) => string[] }[] = [
  { kind: 'inbox_ids', idsOf: ({ inbox }) => [inbox.id] },
  { kind: 'tag_ids', idsOf: ({ tags }) => tags.map(({ id }) => id) },
  { kind: 'teammate_ids', idsOf: ({ assignee }) => (assignee === null ? [] : [assignee.id]) },
];

test.each(FILTERS)(
  'the file has the conversations that began in the time and meet $kind',
  async ({ kind, idsOf }) => {
    const { service, token, post, get } = await start({ conversations: 100 });
    const list = await service.call<List<Conversation>>('GET', '/conversations?limit=100', token);
    const all = list.body._results;
    const times = all.map(({ created_at }) => created_at).toSorted((one, other) => one - other);
    const [from, to] = [at(times, 5), at(times, 90)];
    const wanted = at(all.flatMap(idsOf), 0);
    const asked = { start: from, end: to, filters: { [kind]: [wanted] } };
    const { body } = await post('/analytics/exports', asked);
    await service.advance(RUN_MS);
    const { url } = await get(body._links.self);
    const rows = (await (await service.api(url ?? '', token)).text()).split('\r\n').slice(1, -1);
    const expected = all.filter(
      (one) => one.created_at >= from && one.created_at < to && idsOf(one).includes(wanted),
    );
    expect(expected.length).toBeGreaterThan(3);
    expect(rows.map((row) => row.split(',')[0])).toEqual(expected.map(({ id }) => id));
  },
);

test('the file is CSV: a head, a row a line, and quotes where they are needed; it stays as it was then', async () => {
  const { service, token, post, get } = await start({ conversations: 100 });
  const list = await service.call<List<Conversation>>('GET', '/conversations?limit=100', token);
  const all = list.body._results;
  const { body } = await post('/analytics/exports', { start: 0 });
  const path = `/conversations/${at(all, 0).id}`;
  expect((await service.call('PATCH', path, token, { subject: 'changed after' })).status).toBe(200);
  await service.advance(RUN_MS);
  const { url } = await get(body._links.self);
  const lines = (await (await service.api(url ?? '', token)).text()).split('\r\n');
  expect(lines[0]).toBe('conversation_id,created_at,updated_at,status,inbox_id,assignee_id,subject');
  expect(lines.at(-1)).toBe('');
  const fields = lines.slice(1, -1).map((row) => row.split(','));
  expect(fields.map(([id, created]) => [id, Number(created)])).toEqual(
    all.map(({ id, created_at }) => [id, created_at]),
  );
  const subjects = all.map(({ subject }) => subject);
  expect(subjects).toContain('Question about "annual" plan');
  expect(fields.map((row) => row.slice(6).join(','))).toEqual(
    subjects.map((subject) => (/[",]/.test(subject) ? `"${subject.replaceAll('"', '""')}"` : subject)),
  );
});

test('of very many conversations the newest ten thousand are looked at', async () => {
  const { service, company, token, post, get } = await start({ conversations: 10_020 });
  const path = `/channels/${at(company.channels, 0)}/incoming_messages`;
  const sent = { sender: { handle: 'new@example.com' }, body: 'Hello' };
  expect((await service.call('POST', path, token, sent)).status).toBe(202);
  const rowsOf = async (range: object) => {
    const { body } = await post('/analytics/exports', range);
    await service.advance(RUN_MS);
    const { url } = await get(body._links.self);
    return (await (await service.api(url ?? '', token)).text()).split('\r\n').slice(1, -1);
  };
  const recent = await rowsOf({});
  expect(recent).toHaveLength(1);
  const all = await rowsOf({ start: 0 });
  expect(all).toHaveLength(10_000);
  expect(all.at(-1)).toBe(recent[0]);
});

test('private conversations are in no export, whoever asks for it', async () => {
  const { service, company, token, post, get } = await start({ conversations: 20 });
  const list = await service.call<List<Conversation>>('GET', '/conversations', token);
  const moved = list.body._results.find(({ tags }) => tags.length === 0)?.id ?? '';
  const inbox_id = at(company.inboxes, 2);
  const { body: own } = await service.call('PATCH', `/conversations/${moved}`, token, { inbox_id });
  expect(own).toMatchObject({ is_private: true, inbox: { id: inbox_id } });
  const { body } = await post('/analytics/exports', { start: 0 });
  await service.advance(RUN_MS);
  const { url } = await get(body._links.self);
  const text = await (await service.api(url ?? '', token)).text();
  expect(text.split('\r\n')).toHaveLength(1 + 19 + 1);
  expect(text).not.toContain(moved);
});

test('reports and exports are listed, apart and per company', async () => {
  const { service, token, post } = await start();
  const { body: report } = await post('/analytics/reports', {});
  const { body: asked } = await post('/analytics/exports', {});
  const listOf = async (path: string, by: string) =>
    (await service.call<List<Job>>('GET', path, by)).body._results;
  expect((await listOf('/analytics/reports', token)).map(({ id }) => id)).toEqual([report.id]);
  expect((await listOf('/analytics/exports', token)).map(({ id }) => id)).toEqual([asked.id]);
  await service.advance(RUN_MS);
  expect(await listOf('/analytics/exports', token)).toMatchObject([
    { status: 'done', size: expect.any(Number) },
  ]);
  const other = at((await service.company()).api_tokens, 0).token;
  expect(await listOf('/analytics/reports', other)).toEqual([]);
  for (const path of [report._links.self, asked._links.self, `${asked._links.self}/file`]) {
    expect((await service.call('GET', path, other)).status).toBe(404);
  }
});

test.each(['/analytics/reports', '/analytics/exports'])(
  'what is wrong with %s is refused: times, a time zone, types, an unknown id, another method',
  async (path) => {
    const { service, token, post } = await start();
    const { start: from, end } = YEAR_2024;
    for (const body of [
      { start: end, end: from },
      { start: from, end: from },
      { start: START_MS / 1000 + 3_600 },
      { start: -1, end },
      { start: '2024-01-01', end },
      { timezone: 'Mars/Olympus' },
      { filters: 'all' },
      { metrics: [], type: '' },
    ]) {
      const { status, body: answer } = await post(path, body);
      expect([body, status]).toEqual([body, 422]);
      expect(answer).toMatchObject({ _error: { status: 422 } });
    }
    expect((await post(path, ['x'])).status).toBe(400);
    expect((await service.call('GET', `${path}/none`, token)).status).toBe(404);
    expect((await service.call('DELETE', path, token)).status).toBe(405);
    expect((await service.call('PATCH', `${path}/none`, token, {})).status).toBe(405);
    expect((await service.call<List<Job>>('GET', path, token)).body._results).toEqual([]);
  },
);

test('reports and exports have one guard, which is global: one request in three seconds', async () => {
  const { service, token } = await start();
  const post = (path: string, body: object) => () => service.call('POST', path, token, body);
  await expectGuarded(service, {
    tier: '1',
    limit: 1,
    windowMs: GUARD_MS,
    send: [
      post('/analytics/reports', YEAR_2024),
      post('/analytics/exports', {}),
      post('/analytics/reports', { metrics: ['other'] }),
    ],
    apart: [() => service.call('GET', '/analytics/reports', token)],
  });
});

test('with another reading of the guards’ table the analytics guard lets eleven requests through', async () => {
  const service = await startFrozen({
    guards: { analytics: { tier: 'analytics', limit: 11, windowMs: 3_000 } },
  });
  const token = at((await service.company()).api_tokens, 0).token;
  await expectGuarded(service, {
    tier: 'analytics',
    limit: 11,
    windowMs: 3_000,
    send: [
      () => service.call('POST', '/analytics/reports', token, {}),
      () => service.call('POST', '/analytics/exports', token, {}),
    ],
  });
});
