import { expect } from 'vitest';
import { at, type Company, type TestSandbox } from './test-sandbox.ts';

/** A contact or a conversation, as far as the tests look. */
export interface ListedRecord {
  id: string;
  custom_fields: Record<string, unknown>;
  updated_at: number;
}

export interface Page {
  _pagination: { next: string | null };
  _links: { self: string };
  _results: ListedRecord[];
}

/** A company whose limit is never met. */
export function company(service: TestSandbox, spec: object = {}): Promise<Company> {
  return service.company({ plan: 'enterprise', addon_rpm: 10_000, ...spec });
}

/** Reads a page with the company's API token, which must work. */
export async function page(service: TestSandbox, url: string, owner: Company): Promise<Page> {
  const response = await service.api(url, at(owner.api_tokens, 0).token);
  expect(response.status).toBe(200);
  return (await response.json()) as Page;
}

/** Reads a page and all after it. */
export async function allPages(service: TestSandbox, path: string, owner: Company): Promise<Page[]> {
  const pages: Page[] = [];
  for (let url: string | null = path; url !== null; ) {
    const read: Page = await page(service, url, owner);
    pages.push(read);
    url = read._pagination.next;
  }
  return pages;
}

/** The address of the next page; fails the test at the end. */
export function nextOf({ _pagination: { next } }: Page): string {
  if (next === null) throw new Error('the list ends here');
  return next;
}

/** Ids of the records on these pages, in their order. */
export function idsOf(...pages: readonly Page[]): string[] {
  return pages.flatMap(({ _results }) => _results.map(({ id }) => id));
}
