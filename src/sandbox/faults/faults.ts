import { meansRequest } from '../http/router.ts';
import { BoundedMap } from '../state/bounded-map.ts';
import type { Fault, FaultMatch } from '../types.ts';

/** So many faults that are used up stay in the list. */
const SPENT_KEPT = 100;

/** A request, to match faults with. */
export interface FaultTarget {
  method: string;
  path: string;
  /** Pattern of the API's route that serves it; undefined when there is none, or the request does not get so far. */
  route: string | undefined;
  companyId: string | undefined;
  /** The application's client id. */
  application: string | undefined;
}

/** A fault that was ordered; plain data. */
export interface Order {
  id: string;
  match: FaultMatch;
  fault: Fault;
  /** As many requests as it was ordered for. */
  times: number;
  /** As many as it has met. */
  used: number;
  /** Matching requests that still go well before it begins. */
  toPass: number;
}

function matches({ method, path, company_id, client_id }: FaultMatch, target: FaultTarget): boolean {
  if (method !== undefined && method.toUpperCase() !== target.method) return false;
  if (company_id !== undefined && company_id !== target.companyId) return false;
  if (client_id !== undefined && client_id !== target.application) return false;
  return path === undefined || meansRequest(path, target.path, target.route);
}

/** The faults that are ordered; the oldest that matches a request, and whose turn it is, is used first. */
export class Faults {
  #open = new Map<string, Order>();
  #spent = new BoundedMap<string, Order>(SPENT_KEPT);
  #ordered = 0;

  /** Plain data; what is set is taken over, not copied. Ids go on counting: none is given twice. */
  get state() {
    return { open: this.#open, spent: new Map(this.#spent) };
  }

  set state({ open, spent }: { open: Map<string, Order>; spent: Map<string, Order> }) {
    this.#open = open;
    this.#spent = new BoundedMap(SPENT_KEPT, spent);
  }

  /** All that are open, and the newest of those that are used up; oldest first. */
  list(): Order[] {
    return [...this.#spent.values(), ...this.#open.values()];
  }

  /** Orders a fault for the next `times` matching requests, and answers its id. */
  order(match: FaultMatch, fault: Fault, times: number): string {
    this.#ordered += 1;
    const id = `flt_${this.#ordered}`;
    this.#open.set(id, { id, match, fault, times, used: 0, toPass: (match.nth ?? 1) - 1 });
    return id;
  }

  /** The fault for this request, counted, or undefined. The request counts for every order that waits for its turn. */
  take(target: FaultTarget): Pick<Order, 'id' | 'fault'> | undefined {
    let taken: Order | undefined;
    for (const order of this.#open.values()) {
      if (!matches(order.match, target)) continue;
      if (order.toPass > 0) order.toPass -= 1;
      else taken ??= order;
    }
    if (taken === undefined) return undefined;
    taken.used += 1;
    if (taken.used === taken.times) {
      this.#open.delete(taken.id);
      this.#spent.set(taken.id, taken);
    }
    return taken;
  }

  /** Forgets one, used up or not. @returns whether there was one */
  remove(id: string): boolean {
    return this.#open.delete(id) || this.#spent.delete(id);
  }

  /** Forgets them all, and answers how many were still open. */
  clear(): number {
    const { size } = this.#open;
    this.#open.clear();
    this.#spent.clear();
    return size;
  }
}
