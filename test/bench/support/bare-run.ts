import { PAGE_LIMIT_MAX } from '../../../src/contract/limits.ts';
import type { BareDone, BareList, BareOrder } from '../bare-loop.ts';
import { Child } from './child.ts';

/** A company whose lists the loop copies, with a token of its own API. */
export interface BareCompany {
  id: string;
  token: string;
}

/** Each resource of each company, all companies' first lists first. */
export function listsOf(apiUrl: string, companies: readonly BareCompany[]): BareList[] {
  return ['contacts', 'conversations'].flatMap((resource) =>
    companies.map(({ id, token }) => ({
      company: id,
      resource,
      url: `${apiUrl}/${resource}?limit=${PAGE_LIMIT_MAX}`,
      token,
    })),
  );
}

/** Runs the bare loop once, in a process of its own. */
export async function runBareLoop(order: BareOrder): Promise<BareDone> {
  const loop = new Child('bare-loop.ts');
  try {
    return await loop.ask<BareDone>(order);
  } finally {
    loop.end();
  }
}
