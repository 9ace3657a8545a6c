import type { Call } from '../http/call.ts';
import type { Prepared } from '../http/exchange.ts';
import { meansRequest } from '../http/router.ts';
import type { Fault, FaultMatch, FaultRow } from '../types.ts';
import { setBounded } from './bounded-map.ts';

/** The list keeps so many used-up faults. */
const SPENT_KEPT = 100;

/** A request, to match faults with. */
type FaultTarget = Pick<Call, 'method' | 'path'> & Pick<Prepared, 'route' | 'companyId' | 'application'>;

function matches({ method, path, company_id, client_id }: FaultMatch, target: FaultTarget): boolean {
  if (method !== undefined && method.toUpperCase() !== target.method) return false;
  if (company_id !== undefined && company_id !== target.companyId) return false;
  if (client_id !== undefined && client_id !== target.application) return false;
  return path === undefined || meansRequest(path, target.path, target.route);
}

/** The ordered faults. Of several that match a request, the oldest whose turn it is happens. */
export class Faults {
  /** By id; plain data. */
  state = { open: new Map<string, FaultRow>(), spent: new Map<string, FaultRow>() };
  /** Counts on after a restore, so that each id is new. */
  #ordered = 0;

  /** Open faults and the newest used-up ones, oldest first. */
  list(): FaultRow[] {
    return [...this.state.spent.values(), ...this.state.open.values()];
  }

  /** Orders a fault for the next `times` matching requests, and answers its id. */
  order(match: FaultMatch, fault: Fault, times: number): string {
    this.#ordered += 1;
    const id = `flt_${this.#ordered}`;
    const to_pass = (match.nth ?? 1) - 1;
    this.state.open.set(id, { id, match, fault, times, used: 0, left: times, to_pass });
    return id;
  }

  /** The fault for this request, counted, or undefined. The request counts for every order that waits for its turn. */
  take(target: FaultTarget): FaultRow | undefined {
    const { open, spent } = this.state;
    let taken: FaultRow | undefined;
    for (const order of open.values()) {
      if (!matches(order.match, target)) continue;
      if (order.to_pass > 0) order.to_pass -= 1;
      else taken ??= order;
    }
    if (taken === undefined) return undefined;
    taken.used += 1;
    taken.left -= 1;
    if (taken.left === 0) {
      open.delete(taken.id);
      setBounded(spent, taken.id, taken, SPENT_KEPT);
    }
    return taken;
  }

  /** Removes a fault. @returns whether it existed */
  remove(id: string): boolean {
    return this.state.open.delete(id) || this.state.spent.delete(id);
  }

  /** Removes all faults, and answers how many were open. */
  clear(): number {
    const { size } = this.state.open;
    this.state.open.clear();
    this.state.spent.clear();
    return size;
  }
}
