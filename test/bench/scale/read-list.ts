import { Agent, request } from 'undici';
import { PAGE_LIMIT_MAX } from '../../../src/contract/limits.ts';
import type { BareCompany } from '../bare-run.ts';

/**
 * Reads the contacts of a company page by page, and does nothing with them: what the service alone takes at this moment.
 *
 * @returns how long that took, in milliseconds
 */
export async function readContacts(apiUrl: string, { token }: BareCompany): Promise<number> {
  const dispatcher = new Agent();
  const startedAt = performance.now();
  let next: string | null = `${apiUrl}/contacts?limit=${PAGE_LIMIT_MAX}`;
  while (next !== null) {
    const { body } = await request(next, { dispatcher, headers: { authorization: `Bearer ${token}` } });
    const page = (await body.json()) as { _pagination: { next: string | null } };
    next = page._pagination.next;
  }
  const took = performance.now() - startedAt;
  await dispatcher.close();
  return took;
}
