import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { RecordChanges } from '../../src/sandbox/types.ts';
import { tempDir } from '../support/temp-dir.ts';
import { ann, type Conversation, idsOf, startMessaging } from './support/messaging.ts';
import { type Document, type List, startOpen } from './support/routes.ts';
import { at, startCompany, startFrozen } from './support/test-sandbox.ts';

const LISTS = ['contacts', 'conversations'] as const;

async function start(spec: object = {}) {
  const parts = await startOpen(spec);
  const { service, company, pages } = parts;
  return {
    ...parts,
    change: (changes: RecordChanges) => service.sandbox.changeRecords(company.id, changes),
    walk: async (path: string) => (await pages(path)).flatMap(({ _results }) => _results),
  };
}

const times = (records: Document[]) => records.map(({ updated_at }) => updated_at as number);

describe('Endpoints: pagination (our choice)', () => {
  for (const resource of LISTS)
    describe(resource, () => {
      test('By activity the newest change is first, and a change moves to the front', async () => {
        const { service, walk, change } = await start({ [resource]: 900 });
        const before = await walk(`/${resource}?limit=100`);
        expect(times(before)).toEqual(times(before).toSorted((one, other) => other - one));
        service.advance(1_000);
        const ids = idsOf(before);
        const [one, two, gone] = [at(ids, 700), at(ids, 30), at(ids, 500)];
        change({ resource, change: [one, two, one], delete: [gone] });
        change({ resource, change: [one] });
        const { created } = change({ resource, create: 2, change: 1 });
        const moved = [...created.toReversed(), at(ids, 450), one, two];
        const after = await walk(`/${resource}?limit=100`);
        const others = ids.filter((id) => id !== gone && !moved.includes(id));
        expect(idsOf(after)).toEqual([...moved, ...others]);
        expect(times(after)).toEqual(times(after).toSorted((one, other) => other - one));
      });

      test('A client that pages meets each record once that nobody moves meanwhile', async () => {
        for (const order of ['activity', 'created'] as const) {
          const { read, walk, change } = await start({ [resource]: 300, order });
          const before = idsOf(await walk(`/${resource}`));
          const seen: string[] = [];
          const moved = new Set<string>();
          for (let next: string | null = `/${resource}?limit=20`, page = 0; next !== null; page++) {
            const list: List = await read(next);
            seen.push(...idsOf(list._results));
            next = list._pagination.next;
            const named = [at(before, page * 11), at(before, 299 - page * 7)];
            change({ resource, change: named, create: 1, delete: page === 5 ? [at(before, 290)] : 0 });
            for (const id of [...named, at(before, 290)]) moved.add(id);
          }
          expect(new Set(seen).size).toBe(seen.length);
          const expected =
            order === 'activity' ? before.filter((id) => !moved.has(id)) : before.slice(0, 290);
          expect(expected.filter((id) => !seen.includes(id))).toEqual([]);
        }
      });

      test('Reordered by activity, a list has another order, and moves go on', async () => {
        const { walk, change } = await start({ [resource]: 250 });
        const ids = idsOf(await walk(`/${resource}`));
        const { created } = change({ resource, change: [at(ids, 9)], create: 1 });
        change({ resource, reorder: true });
        const anew = idsOf(await walk(`/${resource}`));
        expect(anew[0], 'another record is first').not.toBe(created[0]);
        expect([anew.length, anew.filter((id) => ids.includes(id)).length]).toEqual([251, 250]);
        expect(anew.slice(1).filter((id) => id !== ids[9])).not.toEqual(ids.filter((id) => id !== ids[9]));
        change({ resource, change: [at(anew, 200)] });
        const others = anew.filter((_, place) => place !== 200);
        expect(idsOf(await walk(`/${resource}`))).toEqual([at(anew, 200), ...others]);
      });
    });

  test('Every message and change of a conversation moves it to the front of the list', async () => {
    const { take, send, list, ...its } = await startMessaging();
    const { conversations, conversation, incoming, inbound, outbound, imported, external } = its;
    const thread = { sender: ann, text: 'x', metadata: { thread_ref: 't', external_conversation_id: 't' } };
    const sent = { ...thread, to: [ann.handle] };
    const threads: [string, string, object][] = [
      ['POST', incoming, thread],
      ['POST', inbound, thread],
      ['POST', outbound, { ...sent, metadata: { external_conversation_id: 'u' } }],
      ['POST', imported, { ...sent, created_at: 5 }],
      ['PUT', external('v', 'm'), sent],
    ];
    const first = async () => at(await list<Conversation>('/conversations?limit=1'), 0).id;
    const bump = () => send('PATCH', at(conversations, 7)._links.self, { subject: 'Other' });
    for (const [method, path, body] of threads) {
      const begun = (await take(method, path, body)).conversation.id;
      await bump();
      expect(await first()).toBe(at(conversations, 7).id);
      const more = await take(method, path, { ...body, created_at: 4 });
      expect(more.conversation.id).toBe(begun);
      expect([path, await first()]).toEqual([path, begun]);
    }
    const { channel, tag, teammate, company } = its;
    const created = await send('POST', `/channels/${channel}/messages`, { to: ['b@c.example'], text: 'x' });
    expect((await its.found(created.body.id)).conversation.id).toBe(await first());
    for (const [method, below, body] of [
      ['POST', '/messages', { to: ['b@c.example'], text: 'x' }],
      ['PATCH', '', { subject: 'New' }],
      ['PUT', '/assignee', { assignee_id: teammate.id }],
      ['PATCH', '/reminders', { teammate_id: teammate.id, scheduled_at: null }],
      ['POST', '/tags', { tag_ids: [tag] }],
      ['DELETE', '/tags', { tag_ids: [tag] }],
      ['POST', '/links', { link_ids: [company.links[0]] }],
      ['DELETE', '/links', { link_ids: [company.links[0]] }],
    ] as const) {
      await bump();
      expect((await send(method, conversation._links.self + below, body)).status).toBeLessThan(300);
      expect([method, below, await first()]).toEqual([method, below, conversation.id]);
    }
    await bump();
    await send('POST', `/messages/${created.body.id}/seen`, {});
    expect(await first(), 'a seen message changes no conversation').toBe(at(conversations, 7).id);
  });

  test('Of ten million records only moved ones take memory', async () => {
    const heap = process.memoryUsage().heapUsed;
    const { read, change } = await start({ conversations: 10_000_000 });
    const resource = 'conversations';
    const { created } = change({ resource, create: 10_000 });
    for (let round = 0; round < 9; round++) change({ resource, change: [at(created, 1), at(created, 0)] });
    for (let round = 0; round < 9; round++) change({ resource, change: created });
    expect((process.memoryUsage().heapUsed - heap) / 2 ** 20).toBeLessThan(100);
    // Each moved record once, and behind them the first that nobody moved.
    const met: string[] = [];
    for (
      let next: string | null = '/conversations?limit=100';
      next !== null && met.length <= created.length;
    ) {
      const list: List = await read(next);
      met.push(...list._results.map(({ id }) => id));
      next = list._pagination.next;
    }
    expect(met[0]).toBe(created.at(-1));
    expect(new Set(met.slice(0, created.length))).toEqual(new Set(created));
  });
});

describe('The order of a company', () => {
  test('It is the company’s own, or the option’s, or the seed’s, or by activity', async () => {
    const acme = { name: 'Acme', plan: 'starter' } as const;
    const seed = { order: 'created', companies: [acme, { ...acme, order: 'activity' }] } as const;
    const ordersOf = async (options: object) => {
      const service = await startFrozen(options);
      service.company({ order: 'created' });
      return service.state().companies.map(({ order }) => order);
    };
    expect(await ordersOf({ seed })).toEqual(['created', 'activity', 'created']);
    expect(await ordersOf({ seed, order: 'activity' })).toEqual(['activity', 'activity', 'created']);
    expect(await ordersOf({ order: 'created' })).toEqual(Array(4).fill('created'));
    expect(await ordersOf({})).toEqual([...Array(3).fill('activity'), 'created']);
    const order = 'newest' as 'activity';
    await expect(startFrozen({ order })).rejects.toThrow('order must be activity or created');
  });

  test('Snapshots and files keep it, and the moves', async () => {
    const { service, company, token } = await startCompany({ plan: 'enterprise', contacts: 9 });
    const ids = async (by = service) => idsOf((await by.call<List>('GET', '/contacts', token)).body._results);
    const before = await ids();
    const move = (id?: string) =>
      service.sandbox.changeRecords(company.id, { resource: 'contacts', change: [id ?? ''] });
    move(before[5]);
    const [moved, snapshot, file] = [await ids(), service.sandbox.snapshot(), join(tempDir(), 'world')];
    service.sandbox.save(file);
    move(before[6]);
    service.sandbox.restore(snapshot);
    const next = await startFrozen({ order: 'created' });
    next.sandbox.load(file);
    expect(moved[0]).toBe(before[5]);
    expect([await ids(), await ids(next)]).toEqual([moved, moved]);
  });

  test('Literal records come by their time of change, and equal ones as they were given', async () => {
    const contacts = [{ id: 'a' }, { id: 'b', updated_at: 7 }, { id: 'c' }, { id: 'd', updated_at: 4e9 }];
    const { list } = await start({ contacts });
    expect(idsOf(await list('/contacts'))).toEqual(['d', 'a', 'c', 'b']);
  });
});

describe('Records by their ids', () => {
  test('An unknown id is refused by its name, and nothing changes at all', async () => {
    const { service, company, read, change } = await start({ contacts: 5, conversations: 5 });
    const resource = 'contacts';
    const pages = async () => [await read<List>('/contacts'), await read<List>('/conversations')] as const;
    const before = await pages();
    const [a = '', b = ''] = idsOf(before[0]._results);
    const other = at(before[1]._results, 0).id;
    for (const [changes, status, name] of [
      [{ change: [a, other] }, 404, other],
      [{ delete: [a, 'crd_none'], create: 1 }, 404, 'crd_none'],
      [{ delete: [b], change: [a, b] }, 400, b],
      [{ delete: 5, change: [a] }, 400, a],
      [{ create: [a] }, 400, 'create'],
      [{ change: [7] }, 400, 'change: must be'],
    ] as const) {
      const answer = await service.control(`companies/${company.id}/records`, { resource, ...changes });
      expect([changes, answer.status, await answer.text()]).toEqual([
        changes,
        status,
        expect.stringContaining(name),
      ]);
    }
    const fault = { records: { resource, change: ['crd_none'] } } as const;
    expect(() => service.sandbox.faults.order({ fault })).toThrow('There is no crd_none.');
    expect(await pages()).toEqual(before);
    service.sandbox.faults.order({ fault: { records: { resource, change: [b] } }, times: 3 });
    expect(idsOf((await read<List>('/contacts'))._results)[0]).toBe(a);
    expect(idsOf((await read<List>('/contacts'))._results)[0]).toBe(b);
    expect(change({ resource, delete: [b] })).toMatchObject({ deleted: [b], changed: [] });
    expect(idsOf((await read<List>('/contacts'))._results)[0]).toBe(a);
  });
});
