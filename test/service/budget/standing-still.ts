import type { Bucket } from '../../../src/service/budget/bucket.ts';
import {
  type Admission,
  type Permit,
  RateBudget,
  type Settlement,
} from '../../../src/service/budget/rate-budget.ts';

/** The budget of a process that stands still after it was granted some of its permits, for longer than those are good. */
export class StandingStill extends RateBudget {
  /** Whether a permit grows old before it is used: the first, the second and so on. */
  growsOld: (place: number) => boolean = () => false;
  /** What comes to pass between the grant of a permit and its request. */
  meanwhile: (place: number) => Promise<unknown> = async () => undefined;
  /** The names of those that were granted, and of those that grew old. */
  readonly granted = new Set<string>();
  readonly old = new Set<string>();

  override async acquire(company: string, route: string, bucket?: Bucket): Promise<Admission> {
    return this.#passOn(await super.acquire(company, route, bucket));
  }

  override async exchange(permit: Permit, settlement: Settlement): Promise<Admission> {
    return this.#passOn(await super.exchange(permit, settlement));
  }

  async #passOn(admission: Admission): Promise<Admission> {
    const { permit } = admission;
    if (permit === undefined || this.granted.has(permit.id)) return admission;
    this.granted.add(permit.id);
    await this.meanwhile(this.granted.size);
    if (!this.growsOld(this.granted.size)) return admission;
    this.old.add(permit.id);
    return { permit: { ...permit, goodUntil: performance.now() - 1 } };
  }
}
