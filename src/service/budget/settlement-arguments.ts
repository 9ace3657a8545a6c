import { REQUEST_TIMEOUT_MS } from '../http.ts';
import type { RateHeaders } from '../rate-headers.ts';
import type { Permit, Settlement } from './rate-budget.ts';

/** Settles nothing. */
export const NO_SETTLEMENT = ['', '', '', '', '', '', '', 0, '', 0];

function outcomeOf(rate: RateHeaders | undefined, isRefusal = false): 'answered' | 'refused' | 'bare' {
  if (rate !== undefined) return 'answered';
  return isRefusal ? 'refused' : 'bare';
}

/** What the script is told of a permit that is given back. */
export function settlementArguments(
  permit: Permit,
  { answer, unsent, block, lateByMs = 0 }: Settlement,
): (string | number)[] {
  // An answer that was read after the lease, by a process that stood still, may tell of a window that is long over:
  // nobody could say when.
  const isOld = performance.now() > permit.goodUntil + REQUEST_TIMEOUT_MS;
  const rate = isOld ? undefined : answer?.rate;
  return [
    permit.id,
    answer === undefined ? (unsent ? 'unsent' : 'lost') : outcomeOf(rate, answer.isRefusal),
    rate?.limit ?? answer?.toldLimit ?? '',
    rate?.remaining ?? '',
    rate?.resetMs ?? '',
    rate?.endsInMs ?? '',
    rate?.burstRemaining ?? '',
    block?.forMs ?? 0,
    block?.of ?? '',
    lateByMs,
  ];
}
