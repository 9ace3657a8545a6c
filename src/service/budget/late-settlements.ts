import type { RateHeaders } from '../rate-headers.ts';
import type { Permit, Settlement } from './rate-budget.ts';

/** The longest that a settlement waits for the next request of its kind, in milliseconds. */
export const LATEST_MS = 2_000;

/** A window that ends sooner is settled at once, in milliseconds: in the next one the permit would count as in flight. */
const BEFORE_END_MS = LATEST_MS + 1_000;

/** With fewer of so many permits left, others may wait for what an answer tells. */
const FEW_OF = 10;

interface Late {
  permit: Permit;
  settlement: Settlement;
  since: number;
  timer: NodeJS.Timeout;
}

/**
 * Settlements that nobody waits for: each is kept until the next permit of its company and route is asked for, so that
 * both are one call of Redis, or for two seconds. Until then a permit counts as in flight, which is as much as its
 * request counts afterwards.
 */
export class LateSettlements {
  readonly #settle: (permit: Permit, settlement: Settlement) => void;
  readonly #late = new Map<string, Late>();

  /** @param settle for those whose time is over */
  constructor(settle: (permit: Permit, settlement: Settlement) => void) {
    this.#settle = settle;
  }

  /** Keeps a settlement, if nobody waits for what it tells. @returns whether it did */
  keep(permit: Permit, settlement: Settlement): boolean {
    const { answer, block } = settlement;
    const key = keyOf(permit.company, permit.route);
    const isOthersConcern =
      permit.isProbe === true ||
      permit.bucket !== undefined ||
      block !== undefined ||
      !tellsLittle(answer?.rate);
    if (isOthersConcern || this.#late.has(key)) return false;
    const timer = setTimeout(() => {
      const late = this.take(permit.company, permit.route);
      if (late !== undefined) this.#settle(late.permit, late.settlement);
    }, LATEST_MS);
    this.#late.set(key, { permit, settlement, since: performance.now(), timer });
    return true;
  }

  /** What is kept of a company and route, from now on the caller's to settle. */
  take(company: string, route: string): { permit: Permit; settlement: Settlement } | undefined {
    const key = keyOf(company, route);
    const late = this.#late.get(key);
    if (late === undefined) return undefined;
    this.#late.delete(key);
    clearTimeout(late.timer);
    const lateByMs = Math.round(performance.now() - late.since);
    return { permit: late.permit, settlement: { ...late.settlement, lateByMs } };
  }
}

function tellsLittle(rate: RateHeaders | undefined): boolean {
  return (
    rate !== undefined &&
    rate.endsInMs >= BEFORE_END_MS &&
    rate.remaining * FEW_OF >= Math.max(rate.limit, FEW_OF)
  );
}

function keyOf(company: string, route: string): string {
  return `${company} ${route}`;
}
