import { expect, test } from 'vitest';
import type { ChangedRecords } from '../../src/sandbox/state/change-records.ts';
import { allPages, company, idsOf, nextOf, page } from '../sandbox/support/paging.ts';
import {
  at,
  type Company,
  START_MS,
  startFrozen,
  type TestSandbox,
} from '../sandbox/support/test-sandbox.ts';

const LISTS = ['contacts', 'conversations'] as const;
const SIZE = 300;
const LIMIT = 50;

function change(service: TestSandbox, owner: Company, changes: object): Promise<ChangedRecords> {
  return service.done(`companies/${owner.id}/records`, changes);
}

async function statusOf(service: TestSandbox, path: string, owner: Company): Promise<number> {
  return (await service.api(path, at(owner.api_tokens, 0).token)).status;
}

test.each(LISTS)(
  '%s: a deleted record leaves a page short, and whoever pages misses nothing else',
  async (list) => {
    const service = await startFrozen();
    const owner = await company(service, { [list]: SIZE });
    const before = idsOf(...(await allPages(service, `/${list}`, owner)));
    const first = await page(service, `/${list}`, owner);
    const { deleted } = await change(service, owner, { resource: list, delete: 3 });
    const rest = await allPages(service, nextOf(first), owner);
    expect(deleted).toEqual([at(before, 50), at(before, 150), at(before, 250)]);
    expect(rest.map(({ _results }) => _results.length)).toEqual([49, 50, 49, 50, 49]);
    expect(idsOf(first, ...rest)).toEqual(before.filter((id) => !deleted.includes(id)));
    for (const id of deleted) expect(await statusOf(service, `/${list}/${id}`, owner)).toBe(404);
  },
);

test.each(LISTS)(
  '%s: a record that is created comes at the end, for who is still paging too',
  async (list) => {
    const service = await startFrozen();
    const owner = await company(service, { [list]: SIZE });
    const before = idsOf(...(await allPages(service, `/${list}`, owner)));
    const first = await page(service, `/${list}`, owner);
    const { created } = await change(service, owner, { resource: list, create: LIMIT + 1 });
    const rest = await allPages(service, nextOf(first), owner);
    expect(idsOf(first, ...rest)).toEqual([...before, ...created]);
    expect(new Set(created).size).toBe(LIMIT + 1);
    const { body } = await service.call('GET', `/${list}/${at(created, 0)}`, at(owner.api_tokens, 0).token);
    expect(body).toMatchObject({ created_at: START_MS / 1000, updated_at: START_MS / 1000 });
    const { companies } = await service.state();
    expect(companies.find(({ id }) => id === owner.id)?.counts).toMatchObject({ [list]: SIZE + LIMIT + 1 });
  },
);

test.each(LISTS)('%s: a changed record shows what it is now, in its place', async (list) => {
  const service = await startFrozen();
  const owner = await company(service, { [list]: SIZE });
  const before = await allPages(service, `/${list}`, owner);
  await service.advance(1_500);
  const { changed } = await change(service, owner, { resource: list, change: 4 });
  const once = await allPages(service, `/${list}`, owner);
  expect(idsOf(...once)).toEqual(idsOf(...before));
  const old = before.flatMap(({ _results }) => _results);
  for (const [place, record] of once.flatMap(({ _results }) => _results).entries()) {
    const was = at(old, place);
    const isChanged = changed.includes(record.id);
    expect(record).toEqual(
      isChanged
        ? {
            ...was,
            custom_fields: { ...was.custom_fields, revision: 1 },
            updated_at: (START_MS + 1_500) / 1000,
          }
        : was,
    );
  }
  expect(changed).toHaveLength(4);
  await change(service, owner, { resource: list, change: 4 });
  const { body } = await service.call('GET', `/${list}/${at(changed, 2)}`, at(owner.api_tokens, 0).token);
  expect(body).toMatchObject({ custom_fields: { revision: 2 } });
});

test.each(LISTS)(
  '%s: in a list that is reordered, page tokens stay valid and the list ends',
  async (list) => {
    const service = await startFrozen();
    const owner = await company(service, { [list]: SIZE });
    const before = idsOf(...(await allPages(service, `/${list}`, owner)));
    const first = await page(service, `/${list}`, owner);
    expect(await change(service, owner, { resource: list, reorder: true })).toMatchObject({
      reordered: true,
    });
    const rest = await allPages(service, nextOf(first), owner);
    expect(rest).toHaveLength(5);
    const read = idsOf(first, ...rest);
    expect(read).toHaveLength(SIZE);
    expect(read.every((id) => before.includes(id))).toBe(true);
    expect(new Set(read).size).toBeLessThan(SIZE);
    const anew = idsOf(...(await allPages(service, `/${list}`, owner)));
    expect(anew).not.toEqual(before);
    expect(anew.toSorted()).toEqual(before.toSorted());
    const { created } = await change(service, owner, { resource: list, create: 2 });
    expect(idsOf(...(await allPages(service, `/${list}`, owner)))).toEqual([...anew, ...created]);
    await change(service, owner, { resource: list, reorder: true });
    const last = idsOf(...(await allPages(service, `/${list}`, owner)));
    expect(last.slice(0, LIMIT)).not.toEqual(anew.slice(0, LIMIT));
    expect(last.toSorted()).toEqual([...before, ...created].toSorted());
  },
);

test('deleted, changed and created records of one call are different ones', async () => {
  const service = await startFrozen();
  const owner = await company(service, { contacts: 10 });
  const changes = { resource: 'contacts', delete: 4, change: 100, create: 2 };
  const { deleted, changed, created } = await change(service, owner, changes);
  expect([deleted.length, changed.length, created.length]).toEqual([4, 6, 2]);
  expect(new Set([...deleted, ...changed, ...created]).size).toBe(12);
});

test('of more records than there are, all are deleted; the empty list is one page with nothing', async () => {
  const service = await startFrozen();
  const owner = await company(service, { contacts: 30 });
  expect((await change(service, owner, { resource: 'contacts', delete: 10_000 })).deleted).toHaveLength(30);
  expect((await change(service, owner, { resource: 'contacts', delete: 1, change: 1 })).deleted).toEqual([]);
  const pages = await allPages(service, '/contacts?limit=30', owner);
  expect(pages.map(({ _results }) => _results)).toEqual([[]]);
  const { created } = await change(service, owner, { resource: 'contacts', create: 1 });
  expect(idsOf(...(await allPages(service, '/contacts', owner)))).toEqual(created);
});

test('a snapshot keeps what was changed, and the same call does the same again', async () => {
  const service = await startFrozen();
  const owner = await company(service, { contacts: SIZE });
  const changes = { resource: 'contacts', delete: 7, change: 5, create: 3, reorder: true };
  await change(service, owner, changes);
  const kept = await allPages(service, '/contacts', owner);
  const { id } = await service.done<{ id: string }>('snapshot', {});
  const done = await change(service, owner, changes);
  expect(idsOf(...(await allPages(service, '/contacts', owner)))).not.toEqual(idsOf(...kept));
  await service.done('restore', { id });
  expect(await allPages(service, '/contacts', owner)).toEqual(kept);
  expect(await change(service, owner, changes)).toEqual(done);
});

test('records of a company that there is not are a 404', async () => {
  const service = await startFrozen();
  const response = await service.control('companies/cmp_none/records', { resource: 'contacts', delete: 1 });
  expect(response.status).toBe(404);
});

test.each([
  [{}, 'resource'],
  [{ resource: 'contacts' }, 'needs create, delete, change or reorder'],
  [{ resource: 'tags', delete: 1 }, 'resource'],
  [{ resource: 'contacts', delete: -1 }, 'delete'],
  [{ resource: 'contacts', create: 10_001 }, 'create'],
  [{ resource: 'contacts', change: 1.5 }, 'change'],
  [{ resource: 'contacts', reorder: 1 }, 'reorder'],
  [{ resource: 'contacts', delete: 1, remove: 1 }, 'remove'],
])('the change %j is a 400', async (changes, message) => {
  const service = await startFrozen();
  const owner = await company(service);
  const response = await service.control(`companies/${owner.id}/records`, changes);
  expect(response.status).toBe(400);
  expect(await response.text()).toContain(message);
  expect(idsOf(...(await allPages(service, '/contacts', owner)))).toHaveLength(100);
});
