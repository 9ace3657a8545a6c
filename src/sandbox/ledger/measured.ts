import { readFileSync } from 'node:fs';

/**
 * Which tests exercised what, as measured while they ran: `updateTag` (answered well), `updateTag async` (answered 202 on
 * request) and `updateTag guard` (refused by its guard). `npm run ledger` measures anew.
 */
export const MEASURED: Readonly<Record<string, readonly string[]>> = JSON.parse(
  readFileSync(new URL('./measured.json', import.meta.url), 'utf8'),
);

/** What a test has exercised when an operation answered so; undefined when it was refused by anything but its guard. */
export function exercised(
  operation: string,
  status: number,
  tier: string | null,
  isAsync: boolean,
): string | undefined {
  if (status === 429) return tier === null ? undefined : `${operation} guard`;
  if (status >= 300) return undefined;
  return isAsync && status === 202 ? `${operation} async` : operation;
}
