import { matchPath } from './http/path-pattern.ts';

/** Which requests a fault is for; what is left out matches any. */
export interface FaultMatch {
  method?: string | undefined;
  /** Literal, or with the specification's placeholders. */
  path?: string | undefined;
  company_id?: string | undefined;
}

/** What goes wrong. */
export interface Fault {
  /** Answered in place of what the request would have got; it then takes no effect, but counts for the limit. */
  status?: number | undefined;
  /** In place of the answer's body: a string as it is, anything else as JSON. */
  body?: unknown;
  /** Added to the answer's headers, or in place of them. */
  headers?: Record<string, string> | undefined;
  /** The answer is held back this long, in real milliseconds; the request took effect before. */
  delay_ms?: number | undefined;
  /** Closes the connection before or after the request took effect. */
  drop?: 'before' | 'after' | undefined;
  /** Only so many bytes of the body are sent; with `drop: "after"`, under the full length, and then it closes. */
  truncate?: number | undefined;
}

interface Order {
  match: FaultMatch;
  fault: Fault;
  left: number;
}

/** What a request is known by, to match faults with. */
export interface FaultTarget {
  method: string;
  path: string;
  companyId: string | undefined;
}

function matches(match: FaultMatch, target: FaultTarget): boolean {
  return (
    (match.method === undefined || match.method.toUpperCase() === target.method) &&
    (match.company_id === undefined || match.company_id === target.companyId) &&
    (match.path === undefined || matchPath(match.path, target.path) !== undefined)
  );
}

/** The faults that are ordered; the oldest that matches a request is used first. */
export class Faults {
  #orders = new Map<string, Order>();
  #ordered = 0;

  /** Plain data; what is set is taken over, not copied. Ids go on counting: none is given twice. */
  get state(): Map<string, Order> {
    return this.#orders;
  }

  set state(orders: Map<string, Order>) {
    this.#orders = orders;
  }

  /** Orders a fault for the next `times` matching requests, and answers its id. */
  order(match: FaultMatch, fault: Fault, times: number): string {
    this.#ordered += 1;
    const id = `flt_${this.#ordered}`;
    this.#orders.set(id, { match, fault, left: times });
    return id;
  }

  /** The fault for this request, counted down, or undefined. */
  take(target: FaultTarget): Fault | undefined {
    for (const [id, order] of this.#orders) {
      if (!matches(order.match, target)) continue;
      order.left -= 1;
      if (order.left === 0) this.#orders.delete(id);
      return order.fault;
    }
    return undefined;
  }

  /** Forgets them all, and answers how many there were. */
  clear(): number {
    const { size } = this.#orders;
    this.#orders.clear();
    return size;
  }
}
