import type { Order } from '../faults/faults.ts';
import type { FaultRow } from '../types.ts';

/** A fault as the control interface lists it; `to_pass` matching requests still go well before it begins. */
export function showFault({ id, match, fault, times, used, toPass }: Order): FaultRow {
  return { id, match, fault, times, used, left: times - used, to_pass: toPass };
}
