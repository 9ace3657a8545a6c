import type { BudgetState, RateBudget } from '../client/budget/rate-budget.ts';
import type { ServiceClock } from '../client/service-clock.ts';
import type { Instance, InstanceStore } from '../store/instances.ts';
import type { Run, RunStore } from '../store/runs.ts';
import type { TokenRow, TokenStore } from '../store/tokens.ts';
import { refreshExpiry } from '../tokens/expiry.ts';
import type { Resource } from './resources.ts';
import { nextStartAt } from './schedule.ts';
import { readSetAside, type SetAsideParts } from './set-aside-status.ts';
import { plainError } from './status-error.ts';
import type { InstanceStatus, ResourceStatus } from './status-types.ts';

/** What the status of an instance is read from. */
export interface StatusParts extends SetAsideParts {
  instances: InstanceStore;
  tokens: TokenStore;
  runs: RunStore;
  budget: RateBudget;
  clock: ServiceClock;
  resources: readonly Resource[];
  intervalMs: number;
  /** Whether no worker runs; without it, one does. */
  workers?: { readonly areMissing: boolean };
}

/** Puts together what the dashboard shows. */
export class StatusReader {
  readonly #parts: StatusParts;

  constructor(parts: StatusParts) {
    this.#parts = parts;
  }

  async read(instanceId: string): Promise<InstanceStatus | undefined> {
    const { instances, tokens, runs, budget, resources, workers } = this.#parts;
    const workersMissing = workers?.areMissing ?? false;
    const instance = await instances.find(instanceId);
    if (instance === undefined) return undefined;
    const [token, runRows, budgetState] = await Promise.all([
      tokens.find(instanceId),
      runs.list(instanceId),
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
      token: tokenStatus(token),
      budget: budgetStatus(budgetState),
      resources: Object.fromEntries(await Promise.all(resourceStatuses)),
    };
  }

  /** All instances, the oldest first. */
  async readAll(): Promise<InstanceStatus[]> {
    const instances = await this.#parts.instances.list();
    const all = await Promise.all(instances.map(({ id }) => this.read(id)));
    return all.filter((status) => status !== undefined);
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
