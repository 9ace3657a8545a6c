import { describe, expect, test } from 'vitest';
import { ROUTES } from '../../src/contract/api/api.ts';
import { type GroupPart, GUARDS, guardLimit } from '../../src/contract/guards.ts';
import { HEADER } from '../../src/contract/headers.ts';
import { PLAN_LIMITS } from '../../src/contract/limits.ts';
import type { GuardSpec } from '../../src/sandbox/types.ts';
import { at, startCompany } from './support/test-sandbox.ts';

type Sent = [method: string, path: string, body?: object | undefined];

/** A body with this value for a part of a guard's key. */
const BODY_OF: Record<GroupPart, (value: string) => object> = {
  account: (account_id) => ({ account_id }),
  event: (type) => ({ type, object: { type: 'order', id: '1' } }),
  'channel type': (type) => ({ type }),
  recipients: (handle) => ({ to: [handle, 'eve@x.example'] }),
  'conversation reference': (thread_ref) => ({ metadata: { thread_ref } }),
  'external conversation': (external_conversation_id) => ({ metadata: { external_conversation_id } }),
};

const GUARDED = ROUTES.flatMap(([, { guard, ...route }]) => (guard ? [{ ...route, guard }] : []));

/** Routes with the same pool share their buckets. */
function poolOf({ method, path, guard }: (typeof GUARDED)[number]): string {
  return guard.by.length === 0 ? guard.guard : (guard.pool ?? `${method} ${path}`);
}

/** A request to a guarded route, of ids that nobody has. @param odd the part of its key that has another value */
function requestTo({ method, path, guard }: (typeof GUARDED)[number], odd = ''): Sent {
  const value = (part: string) => (part === odd ? 'odd@x.example' : 'usual@x.example');
  const parts = guard.by.filter((part): part is GroupPart => part in BODY_OF);
  const body = Object.assign({}, ...parts.map((part) => BODY_OF[part](value(part))));
  return [method, path.replace(/:\w+/g, value), method === 'GET' ? undefined : body];
}

const get = (path: string): Sent => ['GET', path];
const post = (path: string, body: object = {}): Sent => ['POST', path, body];

/** @param furtherTiers of guards that the test adds */
async function start(options: object = {}, furtherTiers: string[] = []) {
  const { service, company, token } = await startCompany({ plan: 'enterprise' }, options, furtherTiers);
  const send = ([method, path, body]: Sent, by = token) => service.call(method, path, by, body);
  /** Status and tier of one request after the other, repetitions counted: `200 search ×80, 429 search ×1`. */
  const answers = async (requests: Sent[], by = token) => {
    const runs: [text: string, times: number][] = [];
    for (const request of requests) {
      const { status, headers } = await send(request, by);
      const text = `${status} ${headers.get(HEADER.tier)}`;
      if (runs.at(-1)?.[0] !== text) runs.push([text, 0]);
      at(runs, runs.length - 1)[1] += 1;
    }
    return runs.map((run) => run.join(' ×')).join(', ');
  };
  return { service, company, token, send, answers };
}

const times = (count: number, sent: Sent): Sent[] => Array(count).fill(sent);

describe('Limits: additional rate guards', () => {
  test('Every guard names its tier, and closes one bucket while the rate limit has room', async () => {
    for (const route of GUARDED) {
      const { service, send, answers } = await start();
      const { guard, path } = route;
      const { tier, windowMs } = GUARDS[guard.guard];
      const limit = guardLimit(GUARDS[guard.guard], PLAN_LIMITS.enterprise);
      const together = GUARDED.filter((other) => poolOf(other) === poolOf(route));
      const turns = Array.from({ length: limit }, (_, turn) => at(together, turn % together.length));
      const passed = (await answers(turns.map((one) => requestTo(one)))).split(', ');
      expect(passed, path).toEqual(passed.map(() => expect.stringMatching(`^(?!429)\\d+ ${tier} ×`)));

      const { status, headers, body } = await send(requestTo(route));
      expect([path, status, headers.get(HEADER.tier)]).toEqual([path, 429, tier]);
      expect(headers.get(HEADER.retryAfter)).toBe(String(windowMs / 1000));
      expect(headers.get(HEADER.remaining)).toBe(String(PLAN_LIMITS.enterprise - limit));
      expect(JSON.stringify(body)).toContain(` ${windowMs} milliseconds`);
      const otherRoutes = GUARDED.filter((other) => !together.includes(other));
      const apart = [
        ...guard.by.map((part) => requestTo(route, part)),
        ...otherRoutes.map((one) => requestTo(one)),
      ];
      expect(await answers(apart), path).not.toContain(`429 ${tier}`);

      service.advance(windowMs - 1);
      expect((await send(requestTo(route))).headers.get(HEADER.retryAfter)).toBe('1');
      service.advance(1);
      expect(await answers([requestTo(route)]), path).not.toContain('429');
    }
  });

  test('Guards and the rate limit count apart: what one refuses counts for none of them', async () => {
    const { service, company, token, send, answers } = await start();
    const report = post('/analytics/reports');
    expect(await answers(times(3, report))).toBe('201 1 ×1, 429 1 ×2');
    expect((await send(get('/me'))).headers.get(HEADER.remaining)).toBe('198');
    service.advance(3_000);
    await service.statuses(298, '/me', token);
    expect(await answers([report])).toBe('429 null ×1');
    expect(await answers([report], service.install(company).access_token)).toBe('201 1 ×1');
  });

  test('Search: 40% of the caller’s rate limit a minute, whatever is looked for', async () => {
    const { service, company, answers } = await start();
    const searches = Array.from({ length: 81 }, (_, word) => get(`/conversations/search/word${word}`));
    expect(await answers(searches)).toBe('200 search ×80, 429 search ×1');
    const { access_token } = service.install(company);
    expect(await answers(searches.slice(32), access_token)).toBe('200 search ×48, 429 search ×1');
  });
});

describe('Limits: additional rate guards (our choice)', () => {
  test('The two cells that run together can be configured to another reading', async () => {
    const { answers } = await start({ guards: { analytics: { tier: '11', limit: 3, windowMs: 1_000 } } });
    expect(await answers(times(4, post('/analytics/reports')))).toBe('201 11 ×3, 429 11 ×1');
  });

  test('A guard counts every caller, also a request that is refused for its body or id', async () => {
    const { service, company, answers } = await start();
    const path = '/conversations/none/messages';
    expect(await answers([post(path), post(path, [])])).toBe('422 2 ×1, 400 2 ×1');
    const { access_token } = service.install(company);
    expect(await answers(times(4, post(path, { text: 'x' })), access_token)).toBe('404 2 ×3, 429 2 ×1');
  });

  test('A message has one bucket of the seen guard, by its id and its message_uid', async () => {
    const { company, send, answers } = await start();
    const path = `/channels/${at(company.channels, 0)}/messages`;
    const { body } = await send(post(path, { to: ['ann@x.example'], text: 'x' }));
    const seen = [body.id, body.message_uid].map((name) => post(`/messages/${name}/seen`));
    const all = await answers(Array(6).fill(seen).flat());
    expect(all).toBe('200 message-seen ×10, 429 message-seen ×2');
  });

  test('Without an external conversation a guard counts by who writes, or is written to', async () => {
    const { answers } = await start();
    const from = (handle: string) => post('/channels/c/inbound_messages', { sender: { handle } });
    const to = (...handles: string[]) => post('/channels/c/outbound_message', { to: handles });
    expect(await answers([...times(5, from('ann')), from('ANN')])).toBe('422 2 ×5, 429 2 ×1');
    expect(await answers([...times(5, to('a', 'b')), to('b', 'a')])).toBe('422 2 ×5, 429 2 ×1');
    expect(await answers([from('bob'), to('b')])).toBe('422 2 ×2');
  });
});

describe('Further guards', () => {
  const LISTS = { tier: 'lists', requests: 5, per_ms: 100, paths: ['/contacts', '/conversations'] };
  const [contacts, conversations] = [get('/contacts'), get('/conversations')];

  const startWith = (...guards: GuardSpec[]) =>
    start(
      { seed: { guards } },
      guards.map(({ tier }) => tier),
    );

  test('One counts a company’s requests to its routes together, for all callers', async () => {
    const { service, company, answers } = await startWith(LISTS);
    const other = at(service.company().api_tokens, 0).token;
    expect(await answers([contacts, conversations, contacts])).toBe('200 lists ×3');
    const rest = [contacts, conversations, contacts, get('/tags')];
    const answered = await answers(rest, service.install(company).access_token);
    expect(answered).toBe('200 lists ×2, 429 lists ×1, 200 null ×1');
    expect(await answers([contacts], other)).toBe('200 lists ×1');
    expect(await (await fetch(service.sandbox.origin)).text()).toContain('Tier lists');
    service.advance(99);
    expect(await answers([contacts])).toBe('429 lists ×1');
    service.advance(1);
    expect(await answers([contacts])).toBe('200 lists ×1');
  });

  test('One of the same tier takes its place; they go at once, and come with snapshots', async () => {
    const { service, answers } = await startWith({ ...LISTS, requests: 1 });
    const { guards, snapshot, restore } = service.sandbox;
    expect(await answers(times(2, contacts))).toBe('200 lists ×1, 429 lists ×1');
    guards.add({ ...LISTS, requests: 2 });
    expect(await answers(times(3, contacts))).toBe('200 lists ×2, 429 lists ×1');
    const id = snapshot();
    guards.clear();
    expect(await answers(times(2, contacts))).toBe('200 null ×2');
    restore(id);
    expect(await answers([contacts])).toBe('429 lists ×1');
  });
});
