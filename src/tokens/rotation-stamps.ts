import { isAhead } from '../store/rotation-due.ts';
import type { TokenRow } from '../store/tokens.ts';
import { rotationDueAt } from './expiry.ts';

/** What is noted of a refresh token's life: both in the token route's time, milliseconds since 1970. */
type Stamps = Pick<TokenRow, 'refresh_issued_at' | 'refresh_due_at'>;

/** Of a refresh token that is new. */
export function newStamps(instanceId: string, grantedAt: number): Stamps {
  return { refresh_issued_at: grantedAt, refresh_due_at: rotationDueAt(grantedAt, instanceId) };
}

/**
 * Of a refresh token that a refresh has left as it was. One that is noted as issued later than that was told a wrong
 * time. It was issued before, nobody knows when: from now on the rotation tries, ever less often, until it has changed.
 */
export function keptStamps(noted: Stamps, grantedAt: number): Stamps {
  const { refresh_issued_at, refresh_due_at } = noted;
  return isAhead(refresh_issued_at, grantedAt)
    ? { refresh_issued_at: grantedAt, refresh_due_at: grantedAt }
    : { refresh_issued_at, refresh_due_at };
}
