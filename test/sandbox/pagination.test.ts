import { describe, expect, test } from 'vitest';
import type { RecordChanges } from '../../src/sandbox/types.ts';
import { type Document, type List, startOpen } from './support/routes.ts';
import { at, START_MS } from './support/test-sandbox.ts';

const LISTS = ['contacts', 'conversations'] as const;
const MILLION = 1_000_000;

interface Changed {
  created: string[];
  deleted: string[];
  changed: string[];
}

const recordsOf = (...pages: List[]) => pages.flatMap(({ _results }) => _results);
const idsOf = (...pages: List[]) => recordsOf(...pages).map(({ id }) => id);

async function start(spec: object = {}) {
  const parts = await startOpen(spec);
  const { service, company, read } = parts;
  const pages = async (path: string): Promise<[List, ...List[]]> => {
    const page = await read<List>(path);
    const { next } = page._pagination;
    return next === null ? [page] : [page, ...(await pages(next))];
  };
  return {
    ...parts,
    pages,
    /** The first page of a list, and those after it: they are read later. */
    begin: async (path: string) => {
      const first = await read<List>(path);
      return { first, next: first._pagination.next ?? '', rest: () => pages(first._pagination.next ?? '') };
    },
    change: (changes: RecordChanges) => service.done<Changed>(`companies/${company.id}/records`, changes),
  };
}

describe('Endpoints: pagination', () => {
  test('next is the full URL of the next page with the original limit, and null at the end', async () => {
    const { service, pages } = await start({ contacts: 25, conversations: 0 });
    const all = await pages('/contacts?limit=10');
    expect(all.map(({ _results }) => _results.length)).toEqual([10, 10, 5]);
    const next = at(all, 0)._pagination.next ?? '';
    expect(next).toMatch(`${service.sandbox.apiUrl}/contacts?`);
    expect(new URL(next).searchParams.get('limit')).toBe('10');
    expect(at(all, 1)._links.self).toBe(next);
    expect(await pages(next.replace('limit=10&', ''))).toMatchObject([{ _results: at(all, 1)._results }, {}]);
    expect(await pages('/contacts?limit=25')).toHaveLength(1);
    expect(await pages('/conversations')).toMatchObject([{ _pagination: { next: null }, _results: [] }]);
  });

  test('A page may be shorter than the limit; a walk reads every record once, in one order', async () => {
    const { pages } = await start({ contacts: 2_000 });
    const hundreds = await pages('/contacts?limit=100');
    expect(hundreds.slice(0, -1).filter(({ _results }) => _results.length < 100)).not.toEqual([]);
    expect(new Set(idsOf(...hundreds)).size).toBe(2_000);
    expect(idsOf(...(await pages('/contacts?limit=7')))).toEqual(idsOf(...hundreds));
  });
});

describe('Limits: pagination sizes', () => {
  test('A page has 50 results unless a limit is named, and at most 100', async () => {
    const { list } = await start({ contacts: 120 });
    expect(await list('/contacts')).toHaveLength(50);
    expect(await list('/contacts?limit=100')).toHaveLength(100);
  });
});

describe('Limits: pagination sizes (our choice)', () => {
  test('A limit that is no whole number from 1 to 100, or is given twice, is 400', async () => {
    const { send } = await start();
    for (const limit of ['0', '-1', '101', '1.5', 'ten', '', '1e1', '9'.repeat(20), '5&limit=5']) {
      const { status, body } = await send('GET', `/contacts?limit=${limit}`);
      expect([limit, status, body]).toMatchObject([limit, 400, { _error: { status: 400 } }]);
    }
  });
});

describe('Endpoints: pagination (our choice)', () => {
  test('A page token is good for its company, list and limit, and as it is', async () => {
    const { service, company, begin, send } = await start();
    const { next } = await begin('/contacts?limit=10');
    const { access_token } = await service.install(company);
    for (const by of [at(company.api_tokens, 1).token, access_token])
      expect((await send('GET', next, undefined, by)).status).toBe(200);
    const foreign = at((await service.company()).api_tokens, 0).token;
    expect((await send('GET', next, undefined, foreign)).status).toBe(400);
    const token = new URL(next).searchParams.get('page_token') ?? '';
    const changed = [...token].map(
      (letter, place) => token.slice(0, place) + (letter === 'A' ? 'B' : 'A') + token.slice(place + 1),
    );
    const wrong = [
      '',
      token.slice(1),
      token.slice(0, -1),
      `${token}A`,
      `${token}=`,
      `${token}&page_token=${token}`,
      ...changed,
    ];
    for (const url of [
      next.replace('/contacts', '/conversations'),
      next.replace('limit=10', 'limit=50'),
      ...wrong.map((other) => next.replace(token, other)),
    ]) {
      const { status, body } = await send('GET', url);
      expect([url, status]).toEqual([url, 400]);
      expect(JSON.stringify(body)).toContain('page_token');
    }
  });

  test('A page token survives a restart', async () => {
    const [before, after] = [await start(), await start()];
    const { search } = new URL((await before.begin('/contacts?limit=10')).next);
    expect((await after.list(`/contacts${search}`)).map(({ id }) => id)).toEqual(
      (await before.list(`/contacts${search}`)).map(({ id }) => id),
    );
  });

  test('Links lead to where the client reached the service', async () => {
    const { service, read } = await start();
    const url = `${service.sandbox.apiUrl.replace('127.0.0.1', 'localhost')}/contacts`;
    const { _pagination, _links, _results } = await read<List>(`${url}?limit=1&unknown=a%20b`);
    expect(_links.self).toBe(`${url}?limit=1&unknown=a%20b`);
    expect(_pagination.next).toContain(`${url}?`);
    expect(at(_results, 0)._links.self).toBe(`${url}/${at(_results, 0).id}`);
  });

  test.each(LISTS)(
    'While someone pages through %s, deletions leave pages short, and nothing moves',
    async (list) => {
      const { pages, begin, change, send } = await start({ [list]: 300 });
      const before = idsOf(...(await pages(`/${list}`)));
      const { first, rest } = await begin(`/${list}`);
      const { deleted } = await change({ resource: list, delete: 3 });
      const after = await rest();
      expect(deleted).toEqual([before[50], before[150], before[250]]);
      expect(after.map(({ _results }) => _results.length)).toEqual([49, 50, 49, 50, 49]);
      expect(idsOf(first, ...after)).toEqual(before.filter((id) => !deleted.includes(id)));
      for (const id of deleted) expect((await send('GET', `/${list}/${id}`)).status).toBe(404);
    },
  );

  test.each(LISTS)(
    'What is created in %s comes at the end, what is changed stays in its place',
    async (list) => {
      const { service, pages, begin, change, read } = await start({ [list]: 300 });
      const before = recordsOf(...(await pages(`/${list}`)));
      const { first, rest } = await begin(`/${list}`);
      await service.advance(1_500);
      const now = (START_MS + 1_500) / 1000;
      const { changed, created } = await change({ resource: list, change: 4, create: 51 });
      expect([changed.length, new Set(created).size]).toEqual([4, 51]);
      const records = recordsOf(first, ...(await rest()));
      const changedNow = (record: Document) => ({
        ...record,
        custom_fields: { ...(record.custom_fields as object), revision: 1 },
        updated_at: now,
      });
      const isLater = ({ id }: Document) => changed.includes(id) && !idsOf(first).includes(id);
      expect(records.slice(0, 300)).toEqual(before.map((one) => (isLater(one) ? changedNow(one) : one)));
      expect(records.slice(300).map(({ id }) => id)).toEqual(created);
      expect(await read(`/${list}/${created[0]}`)).toMatchObject({ created_at: now, updated_at: now });
    },
  );

  test.each(LISTS)('If %s get another order, page tokens stay valid, and the list ends', async (list) => {
    const { pages, begin, change } = await start({ [list]: 300 });
    const { first, rest } = await begin(`/${list}`);
    const before = idsOf(...(await pages(`/${list}`)));
    await change({ resource: list, reorder: true });
    const walked = idsOf(first, ...(await rest()));
    expect([walked.length, walked.filter((id) => !before.includes(id))]).toEqual([300, []]);
    expect(new Set(walked).size).toBeLessThan(300);
    const anew = idsOf(...(await pages(`/${list}`)));
    expect(anew).not.toEqual(before);
    expect(anew.toSorted()).toEqual(before.toSorted());
  });

  test.each(LISTS)('A million %s take no memory, and each is found by its id', async (list) => {
    const heap = process.memoryUsage().heapUsed;
    const { service, company, read, change } = await start({ [list]: MILLION });
    expect(company.counts).toMatchObject({ [list]: MILLION });
    const { created, changed } = await change({ resource: list, create: 2, change: 8 });
    for (const id of [...created, ...changed]) expect(await read(`/${list}/${id}`)).toMatchObject({ id });
    for (let further = 0; further < 20; further++) await service.company({ [list]: 10 * MILLION });
    expect((process.memoryUsage().heapUsed - heap) / 2 ** 20).toBeLessThan(200);
  });
});

describe('changes of records on demand', () => {
  test('One call deletes, changes and creates different records, at most all that there are', async () => {
    const { change, list } = await start({ contacts: 10 });
    const all = await change({ resource: 'contacts', delete: 4, change: 100, create: 2 });
    const { deleted, changed, created } = all;
    expect([deleted.length, changed.length, created.length]).toEqual([4, 6, 2]);
    expect(new Set([...deleted, ...changed, ...created]).size).toBe(12);
    expect((await change({ resource: 'contacts', delete: 100 })).deleted).toHaveLength(8);
    expect(await list('/contacts')).toEqual([]);
  });

  test('A call that names nothing to do, or something unknown, is 400; an unknown company 404', async () => {
    const { service, company } = await start();
    for (const [changes, message] of [
      [{}, 'resource'],
      [{ resource: 'contacts' }, 'needs create, delete, change or reorder'],
      [{ resource: 'tags', delete: 1 }, 'resource'],
      [{ resource: 'contacts', delete: -1 }, 'delete'],
      [{ resource: 'contacts', create: 10_001 }, 'create'],
      [{ resource: 'contacts', change: 1.5 }, 'change'],
      [{ resource: 'contacts', delete: 1, remove: 1 }, 'remove'],
    ] as const) {
      const response = await service.control(`companies/${company.id}/records`, changes);
      expect([response.status, await response.text()]).toEqual([400, expect.stringContaining(message)]);
    }
    const unknown = await service.control('companies/cmp_none/records', { resource: 'contacts', delete: 1 });
    expect(unknown.status).toBe(404);
  });
});
