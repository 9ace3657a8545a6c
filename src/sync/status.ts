import { setTimeout as sleep } from 'node:timers/promises';
import { refreshExpiry } from '../auth/expiry.ts';
import { HANDLER_CONSUMER } from '../changes/handler-consumer.ts';
import type { BudgetState, RateBudget } from '../service/budget.ts';
import type { ServiceClock } from '../service/headers.ts';
import type { StateCounts } from '../store/figures.ts';
import type { Instance, InstanceQuery } from '../store/instances.ts';
import type { ListStatus, Run } from '../store/runs.ts';
import { listState } from '../store/states.ts';
import type { Stores } from '../store/stores.ts';
import type { TokenRow } from '../store/tokens.ts';
import type { Resource } from './resource.ts';
import { listIntervalMs, nextStartAt } from './schedule.ts';
import {
  type HandlerStatus,
  INSTANCES_PER_PAGE,
  type InstanceStatus,
  type ListProblems,
  type ListStatusJson,
  PROBLEMS_IN_STATUS,
  PROBLEMS_ON_PAGE,
  type RunJson,
} from './status-types.ts';
import type { AppWatch } from './watch-app.ts';

/** What the status of an instance is read from. */
interface StatusParts extends Pick<Stores, 'instances' | 'tokens' | 'runs' | 'records' | 'changes'> {
  budget: RateBudget;
  clock: ServiceClock;
  resources: readonly Resource[];
  intervalMs: number;
  hasHandler: boolean;
  /** Without it, workers run. */
  watch?: Pick<AppWatch, 'areWorkersMissing'>;
}

/** A silent Redis is waited for so long, and then not asked again for a while, in milliseconds. */
const BUDGET_PATIENCE_MS = 500;
const BUDGET_PAUSE_MS = 5_000;

const MINUTE_MS = 60_000;

/** Which instances are to be read. */
export interface StatusQuery extends InstanceQuery {
  /** From 1; beyond the last one it is the last. */
  page: number;
}

/** Some of the instances that were looked for, and sums over all. */
export interface StatusPage {
  instances: InstanceStatus[];
  /** From 1. */
  page: number;
  /** How many instances were found. */
  total: number;
  states: StateCounts['instances'];
  lists: StateCounts['lists'];
}

/** Puts together what the dashboard shows. */
export class StatusReader {
  readonly #parts: StatusParts;
  #budgetSilentUntil = 0;

  constructor(parts: StatusParts) {
    this.#parts = parts;
  }

  async read(instanceId: string): Promise<InstanceStatus | undefined> {
    const { instances, tokens, runs, records, resources, watch } = this.#parts;
    const workersMissing = watch?.areWorkersMissing ?? false;
    const instance = await instances.find(instanceId);
    if (instance === undefined) return undefined;
    const [token, lists, hasCopy, isGoing, budgetState] = await Promise.all([
      tokens.find(instanceId),
      runs.lists(instanceId),
      records.keepsAny(instanceId),
      records.isGoing(instanceId),
      this.#budget(instance.company_id ?? instanceId),
    ]);
    const read = resources.map(async (resource) => {
      const list = lists.find((one) => one.resource === resource.name);
      return [resource.name, await this.#list(instance, resource, list, workersMissing)] as const;
    });
    const statuses = await Promise.all(read);
    const starts = statuses.flatMap(([, { next_sync_at }]) => next_sync_at ?? []);
    return {
      id: instance.id,
      name: instance.name,
      company_id: instance.company_id,
      status: instance.status,
      installed_at: iso(instance.installed_at),
      error_kind: instance.error_kind,
      error: instance.error_detail,
      now: iso(this.#parts.clock.now()),
      next_sync_at: starts.toSorted()[0] ?? null,
      workers_missing: workersMissing,
      has_copy: hasCopy,
      deleting_copy: isGoing,
      token: tokenStatus(token),
      budget: budgetStatus(budgetState),
      resources: Object.fromEntries(statuses),
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

  /** The last runs of every list, the newest first, by the resource's name. */
  async readRuns(instanceId: string): Promise<Record<string, RunJson[]>> {
    const lists = await this.#parts.runs.lists(instanceId);
    const read = this.#parts.resources.map(async ({ name }) => {
      const list = lists.find(({ resource }) => resource === name);
      const runs = list === undefined ? [] : await this.#parts.runs.history(list.id);
      return [name, runs.map(runJson)] as const;
    });
    return Object.fromEntries(await Promise.all(read));
  }

  /**
   * A page of the instances that are looked for, the oldest first. They are read one after the other: the limit's state
   * comes from Redis each time, and others have their turn meanwhile.
   */
  async readPage({ page, ...query }: StatusQuery): Promise<StatusPage> {
    const { instances: states, lists } = await this.#parts.instances.countStates();
    const total = await this.#parts.instances.count(query);
    const found = Math.min(page, Math.max(1, Math.ceil(total / INSTANCES_PER_PAGE)));
    const place = { offset: (found - 1) * INSTANCES_PER_PAGE, limit: INSTANCES_PER_PAGE };
    const instances: InstanceStatus[] = [];
    for (const { id } of await this.#parts.instances.list({ ...query, ...place })) {
      const status = await this.read(id);
      if (status !== undefined) instances.push(status);
    }
    return { instances, page: found, total, states, lists };
  }

  /** @param workersMissing whether nobody can be working on a run, whatever it says of itself */
  async #list(
    instance: Instance,
    resource: Resource,
    list: ListStatus | undefined,
    workersMissing: boolean,
  ): Promise<ListStatusJson> {
    const run = list?.run;
    const isPaused = list?.paused_at != null;
    const intervalMs = listIntervalMs(list, resource, this.#parts.intervalMs);
    const startsAgain = instance.status === 'active' && !isPaused && run?.finished_at != null;
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
      failing_since: iso(list?.failing_since),
      paused: isPaused,
      interval_minutes: intervalMs / MINUTE_MS,
      next_sync_at: startsAgain ? iso(nextStartAt(run, intervalMs)) : null,
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

  /** What is known of a company's limit; nothing while Redis is away. */
  async #budget(company: string): Promise<BudgetState | undefined> {
    if (performance.now() < this.#budgetSilentUntil) return undefined;
    const late = sleep(BUDGET_PATIENCE_MS, undefined, { ref: false });
    const state = await Promise.race([this.#parts.budget.read(company), late]).catch(() => undefined);
    if (state === undefined) this.#budgetSilentUntil = performance.now() + BUDGET_PAUSE_MS;
    return state;
  }
}

function runJson(run: Run): RunJson {
  const { id, state, pages, records, created, changed, deleted, rejected, requests, refused, held } = run;
  const counts = { pages, records, created, changed, deleted, rejected, requests, refused, held };
  return {
    id,
    state,
    started_at: iso(run.started_at),
    finished_at: iso(run.finished_at),
    ...counts,
    error_kind: run.error_kind,
    error: run.error_detail,
  };
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

function budgetStatus(state: BudgetState | undefined): InstanceStatus['budget'] {
  return {
    limit: state?.limit ?? null,
    remaining: state?.remaining ?? null,
    reset_at: iso(state?.resetAt),
    burst_remaining: state?.burstRemaining ?? null,
    blocked_until: iso(state?.blockedUntil),
  };
}

function iso(ms: number): string;
function iso(ms: number | null | undefined): string | null;
function iso(ms: number | null | undefined): string | null {
  return ms === null || ms === undefined ? null : new Date(ms).toISOString();
}
