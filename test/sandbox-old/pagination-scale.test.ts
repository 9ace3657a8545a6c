import { expect, test } from 'vitest';
import { writePageToken } from '../../src/sandbox/api/page-token.ts';
import { allPages, company, idsOf, page } from '../sandbox/support/paging.ts';
import { at, type Company, startFrozen } from '../sandbox/support/test-sandbox.ts';

const MILLION = 1_000_000;
const LIMIT = 50;
const MIB = 1024 * 1024;

/** The page that begins at this place, as if all pages before it had been read. */
function from({ id }: Company, list: string, position: number): string {
  return `/${list}?page_token=${writePageToken(`${id} /${list}`, { position, limit: LIMIT })}`;
}

test.each(['contacts', 'conversations'])(
  'a company of 1,000,000 %s is there at once, at any depth',
  async (list) => {
    const service = await startFrozen();
    const owner = await company(service, { [list]: MILLION });
    expect(owner.counts).toMatchObject({ [list]: MILLION });
    const ids: string[] = [];
    for (let position = 0; position < MILLION; position += 62_500) {
      const read = await page(service, from(owner, list, position), owner);
      expect(read._results.length).toBeGreaterThan(0);
      expect(read._pagination.next).not.toBeNull();
      ids.push(...idsOf(read));
      const last = at(read._results, read._results.length - 1);
      const { body } = await service.call('GET', `/${list}/${last.id}`, at(owner.api_tokens, 0).token);
      expect(body).toEqual(last);
    }
    expect(new Set(ids).size).toBe(ids.length);
  },
);

test('the last pages of 1,000,000 contacts are walked like any others, and end in null', async () => {
  const service = await startFrozen();
  const owner = await company(service, { contacts: MILLION });
  const pages = await allPages(service, from(owner, 'contacts', MILLION - 1_000), owner);
  expect(new Set(idsOf(...pages)).size).toBe(1_000);
  expect(pages.length).toBeLessThanOrEqual(23);
});

test('what was changed in 1,000,000 contacts is found in their pages', async () => {
  const service = await startFrozen();
  const owner = await company(service, { contacts: MILLION });
  const changes = { resource: 'contacts', delete: 1, create: 2 };
  const { deleted, created } = await service.done<{ deleted: string[]; created: string[] }>(
    `companies/${owner.id}/records`,
    changes,
  );
  const middle = await page(service, from(owner, 'contacts', MILLION / 2), owner);
  expect(middle._results.length).toBeLessThan(LIMIT);
  expect(idsOf(middle)).not.toContain(at(deleted, 0));
  const end = await allPages(service, from(owner, 'contacts', MILLION - 10), owner);
  expect(idsOf(...end).slice(-2)).toEqual(created);
});

test('companies of millions of records take no memory for them', async () => {
  const service = await startFrozen();
  const before = process.memoryUsage().heapUsed;
  for (let number = 0; number < 20; number++) {
    const owner = await company(service, { contacts: 10 * MILLION, conversations: 10 * MILLION });
    await page(service, from(owner, 'contacts', 9 * MILLION), owner);
    await page(service, from(owner, 'conversations', 9 * MILLION), owner);
  }
  expect((process.memoryUsage().heapUsed - before) / MIB).toBeLessThan(200);
});
