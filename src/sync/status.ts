import { refreshExpiry } from '../auth/expiry.ts';
import type { BudgetState, RateBudget } from '../client/budget/rate-budget.ts';
import type { ServiceClock } from '../client/service-clock.ts';
import type { StateCounts } from '../store/figures.ts';
import type { Instance, InstanceStore } from '../store/instances.ts';
import type { RecordStore } from '../store/records.ts';
import type { Run, RunStore } from '../store/runs.ts';
import type { TokenRow, TokenStore } from '../store/tokens.ts';
import type { Resource } from './resources.ts';
import { nextStartAt } from './schedule.ts';
import { MOST_SEEN, readSetAside, type SetAsideParts } from './set-aside-status.ts';
import { plainError } from './status-error.ts';
import {
  INSTANCES_PER_PAGE,
  type InstanceStatus,
  type ResourceStatus,
  type SetAsideStatus,
} from './status-types.ts';

/** What the status of an instance is read from. */
export interface StatusParts extends SetAsideParts {
  instances: InstanceStore;
  tokens: TokenStore;
  runs: RunStore;
  records: Pick<RecordStore, 'keepsAny' | 'isGoing'>;
  budget: RateBudget;
  clock: ServiceClock;
  resources: readonly Resource[];
  intervalMs: number;
  /** Whether no worker runs; without it, one does. */
  workers?: { readonly areMissing: boolean };
}

/** Some of all instances, and sums over all. */
export interface StatusPage {
  instances: InstanceStatus[];
  /** From 1. */
  page: number;
  total: number;
  states: StateCounts['instances'];
  runs: StateCounts['runs'];
}

/** Puts together what the dashboard shows. */
export class StatusReader {
  readonly #parts: StatusParts;

  constructor(parts: StatusParts) {
    this.#parts = parts;
  }

  async read(instanceId: string): Promise<InstanceStatus | undefined> {
    const { instances, tokens, runs, records, budget, resources, workers } = this.#parts;
    const workersMissing = workers?.areMissing ?? false;
    const instance = await instances.find(instanceId);
    if (instance === undefined) return undefined;
    const [token, runRows, hasCopy, isGoing, budgetState] = await Promise.all([
      tokens.find(instanceId),
      runs.list(instanceId),
      records.keepsAny(instanceId),
      records.isGoing(instanceId),
      budget.read(instance.company_id ?? instanceId),
    ]);
    const runOf = new Map(runRows.map((run) => [run.resource, run]));
    const resourceStatuses = resources.map(async ({ name }) => {
      const setAside = await readSetAside(this.#parts, { instanceId, resource: name });
      return [name, { ...resourceStatus(runOf.get(name), workersMissing), set_aside: setAside }] as const;
    });
    return {
      id: instance.id,
      name: instance.name,
      company_id: instance.company_id,
      status: instance.status,
      installed_at: iso(instance.installed_at),
      notice: instance.notice,
      now: iso(this.#parts.clock.now()),
      next_sync_at: this.#nextSync(instance, runRows),
      workers_missing: workersMissing,
      has_copy: hasCopy,
      deleting_copy: isGoing,
      token: tokenStatus(token),
      budget: budgetStatus(budgetState),
      resources: Object.fromEntries(await Promise.all(resourceStatuses)),
    };
  }

  /** Everything that an instance has set aside and that can be seen, by the resource's name. */
  async readSetAside(instanceId: string): Promise<Record<string, SetAsideStatus>> {
    const read = this.#parts.resources.map(async ({ name }) => {
      return [name, await readSetAside(this.#parts, { instanceId, resource: name }, MOST_SEEN)] as const;
    });
    return Object.fromEntries(await Promise.all(read));
  }

  /**
   * A page of all instances, the oldest first. They are read one after the other: the limit's state comes from Redis each
   * time, and others have their turn meanwhile.
   *
   * @param page from 1; beyond the last one it is the last
   */
  async readPage(page: number): Promise<StatusPage> {
    const { instances: states, runs } = await this.#parts.instances.countStates();
    const total = Object.values(states).reduce((sum, count) => sum + count, 0);
    const found = Math.min(page, Math.max(1, Math.ceil(total / INSTANCES_PER_PAGE)));
    const place = { offset: (found - 1) * INSTANCES_PER_PAGE, limit: INSTANCES_PER_PAGE };
    const instances: InstanceStatus[] = [];
    for (const { id } of await this.#parts.instances.list(place)) {
      const status = await this.read(id);
      if (status !== undefined) instances.push(status);
    }
    return { instances, page: found, total, states, runs };
  }

  #nextSync(instance: Instance, runs: readonly Run[]): string | null {
    if (instance.status !== 'active') return null;
    const starts = runs
      .filter((run) => run.finished_at !== null)
      .map((run) =>
        nextStartAt(
          { failed: run.state === 'failed', finishedAt: run.finished_at ?? 0 },
          this.#parts.intervalMs,
        ),
      );
    return starts.length === 0 ? null : iso(Math.min(...starts));
  }
}

function tokenStatus(token: TokenRow | undefined): InstanceStatus['token'] {
  return {
    access_expires_at: iso(token?.access_expires_at),
    refresh_issued_at: iso(token?.refresh_issued_at),
    refresh_expires_at: token === undefined ? null : iso(refreshExpiry(token.refresh_issued_at)),
    refresh_due_at: iso(token?.refresh_due_at),
    rotations: token?.rotations ?? 0,
    refreshes: token?.refreshes ?? 0,
  };
}

function budgetStatus(state: BudgetState): InstanceStatus['budget'] {
  return {
    limit: state.limit ?? null,
    remaining: state.remaining ?? null,
    reset_at: iso(state.resetAt),
    burst_remaining: state.burstRemaining ?? null,
    blocked_until: iso(state.blockedUntil),
  };
}

/** @param workersMissing whether nobody can be working on the run, whatever it says of itself */
function resourceStatus(run: Run | undefined, workersMissing: boolean): Omit<ResourceStatus, 'set_aside'> {
  const isLeft = workersMissing && run?.state === 'running';
  return {
    state: isLeft ? 'waiting' : (run?.state ?? 'idle'),
    pages: run?.pages ?? 0,
    records: run?.records ?? 0,
    deleted: run?.deleted ?? 0,
    skipped: run?.skipped ?? 0,
    stored: run?.stored ?? 0,
    started_at: iso(run?.started_at),
    finished_at: iso(run?.finished_at),
    error: plainError(run?.error ?? null),
    waiting_until: iso(run?.waiting_until),
    waiting_for: isLeft ? 'turn' : (run?.waiting_for ?? null),
  };
}

function iso(ms: number): string;
function iso(ms: number | null | undefined): string | null;
function iso(ms: number | null | undefined): string | null {
  return ms === null || ms === undefined ? null : new Date(ms).toISOString();
}
