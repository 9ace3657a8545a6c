import { refreshExpiry } from '../auth/expiry.ts';
import { HANDLER_CONSUMER } from '../changes/handler-consumer.ts';
import type { BudgetState, RateBudget } from '../client/budget/rate-budget.ts';
import type { ServiceClock } from '../client/service-clock.ts';
import type { StateCounts } from '../store/figures.ts';
import type { Instance } from '../store/instances.ts';
import type { ListStatus, Run } from '../store/runs.ts';
import { listState } from '../store/states.ts';
import type { Stores } from '../store/stores.ts';
import type { TokenRow } from '../store/tokens.ts';
import type { Resource } from './resource.ts';
import { nextStartAt } from './schedule.ts';
import {
  type HandlerStatus,
  INSTANCES_PER_PAGE,
  type InstanceStatus,
  type ListProblems,
  type ListStatusJson,
  PROBLEMS_IN_STATUS,
  PROBLEMS_ON_PAGE,
} from './status-types.ts';

/** What the status of an instance is read from. */
interface StatusParts extends Pick<Stores, 'instances' | 'tokens' | 'runs' | 'records' | 'changes'> {
  budget: RateBudget;
  clock: ServiceClock;
  resources: readonly Resource[];
  intervalMs: number;
  hasHandler: boolean;
  /** Whether no worker runs; without it, one does. */
  workers?: { readonly areMissing: boolean };
}

/** Some of all instances, and sums over all. */
interface StatusPage {
  instances: InstanceStatus[];
  /** From 1. */
  page: number;
  total: number;
  states: StateCounts['instances'];
  lists: StateCounts['lists'];
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
    const [token, lists, hasCopy, isGoing, budgetState] = await Promise.all([
      tokens.find(instanceId),
      runs.lists(instanceId),
      records.keepsAny(instanceId),
      records.isGoing(instanceId),
      budget.read(instance.company_id ?? instanceId),
    ]);
    const statuses = resources.map(async ({ name }) => {
      const list = lists.find(({ resource }) => resource === name);
      return [name, await this.#list(list, workersMissing)] as const;
    });
    return {
      id: instance.id,
      name: instance.name,
      company_id: instance.company_id,
      status: instance.status,
      installed_at: iso(instance.installed_at),
      notice: instance.notice,
      now: iso(this.#parts.clock.now()),
      next_sync_at: this.#nextSync(instance, lists),
      workers_missing: workersMissing,
      has_copy: hasCopy,
      deleting_copy: isGoing,
      token: tokenStatus(token),
      budget: budgetStatus(budgetState),
      resources: Object.fromEntries(await Promise.all(statuses)),
    };
  }

  /** What of an instance cannot be kept or delivered, by the resource's name. */
  async readProblems(instanceId: string): Promise<Record<string, ListProblems>> {
    const lists = await this.#parts.runs.lists(instanceId);
    const read = this.#parts.resources.map(async ({ name }) => {
      const list = lists.find(({ resource }) => resource === name);
      return [name, await this.#problems(list, PROBLEMS_ON_PAGE)] as const;
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
    const { instances: states, lists } = await this.#parts.instances.countStates();
    const total = Object.values(states).reduce((sum, count) => sum + count, 0);
    const found = Math.min(page, Math.max(1, Math.ceil(total / INSTANCES_PER_PAGE)));
    const place = { offset: (found - 1) * INSTANCES_PER_PAGE, limit: INSTANCES_PER_PAGE };
    const instances: InstanceStatus[] = [];
    for (const { id } of await this.#parts.instances.list(place)) {
      const status = await this.read(id);
      if (status !== undefined) instances.push(status);
    }
    return { instances, page: found, total, states, lists };
  }

  /** @param workersMissing whether nobody can be working on a run, whatever it says of itself */
  async #list(list: ListStatus | undefined, workersMissing: boolean): Promise<ListStatusJson> {
    const run = list?.run;
    const isLeft = workersMissing && run?.state === 'running';
    return {
      state: isLeft ? 'waiting' : listState(run?.state),
      pages: run?.pages ?? 0,
      records: run?.records ?? 0,
      deleted: run?.deleted ?? 0,
      rejected: run?.rejected ?? 0,
      stored: list?.stored ?? 0,
      started_at: iso(run?.started_at),
      finished_at: iso(run?.finished_at),
      error_kind: run?.error_kind ?? null,
      error: errorText(run),
      waiting_until: iso(run?.wait_until),
      waiting_for: isLeft ? 'turn' : (run?.waiting_for ?? null),
      held_deletions: list === undefined ? 0 : await this.#held(list),
      handler: this.#parts.hasHandler ? await this.#handler(list) : null,
      problems: await this.#problems(list, PROBLEMS_IN_STATUS),
    };
  }

  async #held({ id, run }: ListStatus): Promise<number> {
    const whole = run?.state === 'finished' ? run : await this.#parts.runs.lastFinished(id);
    return whole?.held ?? 0;
  }

  async #handler(list: ListStatus | undefined): Promise<HandlerStatus> {
    const none = { pending: 0, dead_letters: 0, last_error: null, next_try_at: null };
    if (list === undefined) return none;
    const { changes } = this.#parts;
    const consumer = await changes.find(list.id, HANDLER_CONSUMER);
    return {
      pending: await changes.countPending(list, consumer?.cursor ?? 0),
      dead_letters: await changes.countDeadLetters(list.id, HANDLER_CONSUMER),
      last_error: consumer?.error_detail ?? null,
      next_try_at: iso(consumer?.not_before),
    };
  }

  async #problems(list: ListStatus | undefined, most: number): Promise<ListProblems> {
    if (list === undefined) return { rejected: 0, rejected_records: [], dead_letters: [] };
    const { records, changes } = this.#parts;
    const rejected = await records.countRejected(list.id);
    const items = rejected === 0 ? [] : await records.rejected(list.id, most);
    const letters = await changes.deadLetters(list.id, HANDLER_CONSUMER, most);
    return {
      rejected,
      rejected_records: items.map((item) => ({ ...item, at: iso(item.at) })),
      dead_letters: letters.map(({ external_id, error_detail, at }) => {
        return { id: external_id, error: error_detail, at: iso(at) };
      }),
    };
  }

  #nextSync(instance: Instance, lists: readonly ListStatus[]): string | null {
    if (instance.status !== 'active') return null;
    const starts = lists.flatMap(({ run }) =>
      run === undefined || run.finished_at === null
        ? []
        : [
            nextStartAt(
              { failed: run.state === 'failed', finishedAt: run.finished_at },
              this.#parts.intervalMs,
            ),
          ],
    );
    return starts.length === 0 ? null : iso(Math.min(...starts));
  }
}

/** What a run's error means for an administrator. */
function errorText(run: Run | undefined): string | null {
  if (run?.error_detail == null) return null;
  if (run.state !== 'failed' || run.finished_at !== null || run.attempt === 0) return run.error_detail;
  return `${run.error_detail} Tried ${run.attempt} times; it will be tried again by itself.`;
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

function iso(ms: number): string;
function iso(ms: number | null | undefined): string | null;
function iso(ms: number | null | undefined): string | null {
  return ms === null || ms === undefined ? null : new Date(ms).toISOString();
}
