import { describe, expect, test } from 'vitest';
import { writePageToken } from '../../src/sandbox/api/list.ts';
import type { RecordChanges } from '../../src/sandbox/types.ts';
import { type Document, type List, startOpen } from './support/routes.ts';
import { at, START_MS } from './support/test-sandbox.ts';

const LATER = START_MS / 1000 + 1.5;
const LISTS = ['contacts', 'conversations'] as const;
const MILLION = 1_000_000;

const recordsOf = (pages: List[]) => pages.flatMap(({ _results }) => _results);
const idsOf = (pages: List[]) => recordsOf(pages).map(({ id }) => id);
const sizesOf = (pages: List[]) => pages.map(({ _results }) => _results.length);
const nextOf = (page?: List) => page?._pagination.next ?? '';

async function start(spec: object = {}) {
  const parts = await startOpen(spec);
  const { service, company } = parts;
  return { ...parts, change: (changes: RecordChanges) => service.sandbox.changeRecords(company.id, changes) };
}

describe('Endpoints: pagination', () => {
  test('next is the full URL of the next page with its limit, and null at the end', async () => {
    const { service, pages } = await start({ contacts: 25, conversations: 0 });
    const walked = await pages('/contacts?limit=10');
    expect(sizesOf(walked)).toEqual([10, 10, 5]);
    const [first, ...later] = walked;
    expect(nextOf(first)).toMatch(`${service.sandbox.apiUrl}/contacts?limit=10&page_token=`);
    expect(later[0]?._links.self).toBe(nextOf(first));
    expect(idsOf(await pages(nextOf(first).replace('limit=10&', '')))).toEqual(idsOf(later));
    expect(await pages('/contacts?limit=25')).toHaveLength(1);
    expect(sizesOf(await pages('/conversations'))).toEqual([0]);
  });

  test('A page may be shorter than the limit; a walk reads each record once, in order', async () => {
    const { pages } = await start({ contacts: 2_000 });
    const hundreds = await pages('/contacts?limit=100');
    expect(Math.min(...sizesOf(hundreds.slice(0, -1)))).toBeLessThan(100);
    expect(new Set(idsOf(hundreds)).size).toBe(2_000);
    expect(idsOf(await pages('/contacts?limit=7'))).toEqual(idsOf(hundreds));
  });
});

describe('Limits: pagination sizes', () => {
  test('A page has 50 results unless a limit is named, and at most 100; more is 400', async () => {
    const { list, expectStatus } = await start({ contacts: 120 });
    expect(await list('/contacts')).toHaveLength(50);
    expect(await list('/contacts?limit=100')).toHaveLength(100);
    for (const limit of ['101', '9'.repeat(20), '0', '-1', '1.5', 'ten', '', '1e1', '5&limit=5'])
      await expectStatus(400, [['GET', `/contacts?limit=${limit}`]]);
  });
});

describe('Endpoints: pagination (our choice)', () => {
  test('A page token is good for its company, list and limit, and as it is', async () => {
    const { service, company, read, expectStatus } = await start();
    const next = nextOf(await read<List>('/contacts?limit=10'));
    const { access_token } = service.install(company);
    for (const by of [...company.api_tokens.map((one) => one.token), access_token])
      await expectStatus(200, [['GET', next]], by);
    await expectStatus(400, [['GET', next]], at(service.company().api_tokens, 0).token);
    const token = new URL(next).searchParams.get('page_token') ?? '';
    const changed = [...token].map((letter, place) => {
      return token.slice(0, place) + (letter === 'A' ? 'B' : 'A') + token.slice(place + 1);
    });
    const others = ['', token.slice(1), `${token}A`, `${token}=`, `${token}&page_token=${token}`, ...changed];
    const elsewhere = [next.replace('contacts', 'conversations'), next.replace('limit=10', 'limit=50')];
    for (const url of [...elsewhere, ...others.map((other) => next.replace(token, other))])
      await expectStatus(400, [['GET', url]]);
  });

  test('Links lead to where the client reached the service', async () => {
    const { service, read } = await start();
    const url = `${service.sandbox.apiUrl.replace('127.0.0.1', 'localhost')}/contacts`;
    const page = await read<List>(`${url}?limit=1&unknown=a%20b`);
    expect(page._links.self).toBe(`${url}?limit=1&unknown=a%20b`);
    expect(nextOf(page)).toContain(`${url}?`);
    expect(at(page._results, 0)._links.self).toBe(`${url}/${at(page._results, 0).id}`);
  });

  for (const resource of LISTS) {
    /** Someone who has read the first page of six, and reads the rest once the list has changed. */
    async function startWalk(spec: object = {}) {
      const parts = await start({ [resource]: 300, ...spec });
      const before = await parts.pages(`/${resource}`);
      parts.service.advance(1_500);
      const walk = async () => [...before.slice(0, 1), ...(await parts.pages(nextOf(before[0])))];
      return { ...parts, before: recordsOf(before), ids: idsOf(before), walk };
    }

    describe(resource, () => {
      test('A deleted record leaves its page short, and nothing else moves', async () => {
        const { ids, walk, change, expectStatus } = await startWalk();
        const { deleted } = change({ resource, delete: 3 });
        const walked = await walk();
        expect(deleted).toEqual([ids[50], ids[150], ids[250]]);
        expect(sizesOf(walked)).toEqual([50, 49, 50, 49, 50, 49]);
        expect(idsOf(walked)).toEqual(ids.filter((id) => !deleted.includes(id)));
        for (const id of deleted) await expectStatus(404, [['GET', `/${resource}/${id}`]]);
      });

      test('By creation, what is new comes at the end, and what changes stays in its place', async () => {
        const { before, walk, change, read } = await startWalk({ order: 'created' });
        const { changed, created } = change({ resource, change: 4, create: 51 });
        expect([changed.length, new Set(created).size]).toEqual([4, 51]);
        const now = (record: Document, place: number) => {
          const custom_fields = { ...(record.custom_fields as object), revision: 1 };
          return place < 50 || !changed.includes(record.id)
            ? record
            : { ...record, custom_fields, updated_at: LATER };
        };
        const records = recordsOf(await walk());
        expect(records.slice(0, 300)).toEqual(before.map(now));
        expect(records.slice(300).map(({ id }) => id)).toEqual(created);
        const times = { created_at: LATER, updated_at: LATER };
        expect(await read(`/${resource}/${created[0]}`)).toMatchObject(times);
      });

      test('In a list that is reordered, page tokens stay valid, and the list ends', async () => {
        const { ids, walk, pages, change } = await startWalk();
        change({ resource, reorder: true });
        const walked = idsOf(await walk());
        expect([walked.length, walked.filter((id) => !ids.includes(id))]).toEqual([300, []]);
        expect(new Set(walked).size).toBeLessThan(300);
        const anew = idsOf(await pages(`/${resource}`));
        expect(anew).not.toEqual(ids);
        expect(anew.toSorted()).toEqual(ids.toSorted());
      });

      test('A million records take no memory, and the last pages come like the first', async () => {
        const heap = process.memoryUsage().heapUsed;
        const { service, company, read, pages, change } = await start({
          [resource]: MILLION,
          order: 'created',
        });
        const { created, changed } = change({ resource, create: 2, change: 8 });
        for (const id of [...created, ...changed])
          expect(await read(`/${resource}/${id}`)).toMatchObject({ id });
        const nearTheEnd = { position: MILLION - 80, limit: 50 };
        const token = writePageToken(`${company.id} /${resource}`, nearTheEnd);
        const last = idsOf(await pages(`/${resource}?page_token=${token}`));
        expect([new Set(last).size, ...last.slice(-2)]).toEqual([82, ...created]);
        for (let further = 0; further < 20; further++) service.company({ [resource]: 10 * MILLION });
        expect((process.memoryUsage().heapUsed - heap) / 2 ** 20).toBeLessThan(200);
      });
    });
  }
});
