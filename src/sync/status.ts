import { setTimeout as sleep } from 'node:timers/promises';
import { refreshExpiry } from '../auth/expiry.ts';
import type { BudgetState, RateBudget } from '../service/budget.ts';
import type { ServiceClock } from '../service/headers.ts';
import { HANDLER_CONSUMER, type Progress } from '../store/changes.ts';
import { DAYS, NOTHING } from '../store/days.ts';
import type { Instance, InstanceQuery } from '../store/instances.ts';
import type { Write } from '../store/outbox.ts';
import type { ListStatus, Run } from '../store/runs.ts';
import { listState } from '../store/states.ts';
import type { Stores } from '../store/stores.ts';
import type { TokenRow } from '../store/token-table.ts';
import { TROUBLES, type Trouble, type Work } from '../store/troubles.ts';
import type { Resource } from './resource.ts';
import { DAY_MS, listIntervalMs, MINUTE_MS } from './schedule.ts';
import {
  type DayJson,
  INSTANCES_PER_PAGE,
  type ListProblems,
  type ListStatusJson,
  MOST_PENDING_ON_PAGE,
  PROBLEMS_IN_STATUS,
  PROBLEMS_ON_PAGE,
  type RunJson,
  type TroubleJson,
  type WriteJson,
} from './status-types.ts';
import type { AppWatch } from './watch-app.ts';

interface StatusParts
  extends Pick<Stores, 'instances' | 'tokens' | 'runs' | 'records' | 'changes' | 'outbox'> {
  budget: RateBudget;
  clock: ServiceClock;
  resources: readonly Resource[];
  intervalMs: number;
  checkIntervalMs: number;
  hasHandler: boolean;
  /** Without it, workers and Redis run. */
  watch?: Pick<AppWatch, 'areWorkersMissing' | 'failing'>;
}

/** A page waits this long for Redis, in milliseconds. */
const BUDGET_LIMIT_MS = 500;

const NO_PROBLEMS: ListProblems = { rejected: 0, rejected_records: [], dead_letters: [] };

export interface StatusQuery extends Omit<InstanceQuery, 'work'> {
  /** From 1. A page beyond the last one means the last one. */
  page: number;
}

/** Reads what the dashboard shows. */
export class StatusReader {
  readonly #parts: StatusParts;

  constructor(parts: StatusParts) {
    this.#parts = parts;
  }

  /** The facts of the dashboard, as `GET /instances/:id/status` answers them; undefined when there is none. */
  async read(instanceId: string) {
    const { instances, tokens, records, outbox, watch } = this.#parts;
    const instance = await instances.find(instanceId);
    if (instance === undefined) return undefined;
    const [overviews, problems, token, hasCopy, isGoing, writeCounts, writes] = await Promise.all([
      this.#overviews([instance]),
      this.readProblems(instanceId, PROBLEMS_IN_STATUS),
      tokens.find(instanceId),
      records.keepsAny(instanceId),
      records.isGoing(instanceId),
      outbox.counts(instanceId),
      this.readWrites(instanceId, PROBLEMS_IN_STATUS),
    ]);
    const [overview] = overviews;
    if (overview === undefined) return undefined;
    const resources: Record<string, ListStatusJson> = {};
    for (const [name, list] of Object.entries(overview.resources)) {
      resources[name] = { ...list, problems: problems[name] ?? NO_PROBLEMS };
    }
    const starts = Object.values(resources).flatMap(({ next_sync_at }) => next_sync_at ?? []);
    const { failing } = watch ?? {};
    return {
      ...overview,
      // In an outage of the app itself no other error matters.
      ...(failing !== undefined && { error_kind: failing, error: null }),
      installed_at: iso(instance.installed_at),
      /** The service's time, as its last answers tell it. */
      now: iso(this.#parts.clock.now()),
      next_sync_at: starts.toSorted()[0] ?? null,
      /** Whether no worker process runs. */
      workers_missing: watch?.areWorkersMissing ?? false,
      /** Whether the copy holds any record. */
      has_copy: hasCopy,
      deleting_copy: isGoing,
      token: tokenStatus(token),
      /** How many writes by state, and the first that wait for a person or a retry. */
      outbox: { ...writeCounts, writes },
      resources,
    };
  }

  /** Rejected records and dead letters of an instance, by the resource's name. */
  async readProblems(instanceId: string, most = PROBLEMS_ON_PAGE): Promise<Record<string, ListProblems>> {
    const lists = await this.#parts.runs.lists(instanceId);
    return this.#byResource(lists, (list) => this.#problems(list, most));
  }

  /** Writes of the outbox that wait for a person or are retried, the first that wait for a person. */
  async readWrites(instanceId: string, limit = PROBLEMS_ON_PAGE): Promise<WriteJson[]> {
    const writes = await this.#parts.outbox.unfinished(instanceId, { limit, forPeople: true });
    return writes.map(writeJson);
  }

  /** The last full runs of every list by the resource's name, the newest first, and then its checks. */
  async readRuns(instanceId: string): Promise<Record<string, RunJson[]>> {
    const { runs } = this.#parts;
    return this.#byResource(await runs.lists(instanceId), async (list) => {
      if (list === undefined) return [];
      const all = [...(await runs.history(list.id, 'full')), ...(await runs.history(list.id, 'check'))];
      return all.map(runJson);
    });
  }

  /** The sums of the last days, also of those without a run, by the resource's name, the oldest first. */
  async readDays(instanceId: string, now: number): Promise<Record<string, DayJson[]>> {
    const { runs } = this.#parts;
    return this.#byResource(await runs.lists(instanceId), async (list) => {
      const days = list === undefined ? new Map<number, never>() : await runs.days(list.id, now);
      return Array.from({ length: DAYS }, (_, at) => {
        const day = Math.floor(now / DAY_MS) - DAYS + 1 + at;
        const { runs, created, changed, deleted, first_copy, ...sums } = days.get(day) ?? NOTHING;
        const isFailing = list?.failing_since != null && day >= Math.floor(list.failing_since / DAY_MS);
        const failed = isFailing ? Math.max(1, sums.failed) : sums.failed;
        const date = iso(day * DAY_MS).slice(0, 10);
        return { day: date, runs, failed, created, changed, deleted, first_copy };
      });
    });
  }

  /** What is wrong with one instance, or with all, the worst first. */
  async readTroubles(instanceId?: string): Promise<(TroubleJson & { instanceId: string })[]> {
    const rows = await this.#parts.instances.troubles(this.#work, instanceId);
    return rows.map((row) => ({ ...row, since: iso(row.since) }));
  }

  get #work(): Work {
    const { resources, hasHandler } = this.#parts;
    return { resources: resources.map(({ name }) => name), hasHandler };
  }

  /** A page of the instances found, those first that need a person most, and sums over all instances. */
  async readPage({ page, ...given }: StatusQuery) {
    const query = { ...given, work: this.#work };
    const { instances: states, lists } = await this.#parts.instances.countStates();
    const total = await this.#parts.instances.count(query);
    const found = Math.min(page, Math.max(1, Math.ceil(total / INSTANCES_PER_PAGE)));
    const range = { offset: (found - 1) * INSTANCES_PER_PAGE, limit: INSTANCES_PER_PAGE };
    const shown = await this.#parts.instances.list({ ...query, ...range });
    const [overviews, rows, paused] = await Promise.all([
      this.#overviews(shown, MOST_PENDING_ON_PAGE),
      this.readTroubles(),
      this.#parts.instances.count({ filter: 'paused', work: this.#work }),
    ]);
    const idsOf = (kind?: Trouble) =>
      new Set(rows.filter((row) => (kind ?? row.kind) === row.kind).map(({ instanceId }) => instanceId));
    const ofInstance = (id: string): TroubleJson[] => rows.filter(({ instanceId }) => instanceId === id);
    const counts = TROUBLES.map((kind) => [kind, idsOf(kind).size]);
    const troubles = Object.fromEntries(counts) as Record<Trouble, number>;
    const instances = overviews.map((instance, at) => ({
      ...instance,
      /** Since when it is in its state; null where nobody has noted it. */
      status_since: iso(shown[at]?.status_since || null),
      troubles: ofInstance(instance.id),
    }));
    // How many have each trouble, any of them, or a pause.
    const sums = { states, lists, troubles, attention: idsOf().size, paused };
    return { instances, page: found, total, ...sums };
  }

  /** Reads some instances at once: the number of statements does not grow with them. */
  async #overviews(instances: readonly Instance[], mostPending?: number) {
    const { runs, records, changes, hasHandler } = this.#parts;
    const lists = await runs.listsOf(instances.map(({ id }) => id));
    const ids = lists.map(({ id }) => id);
    const [rejected, progress, budgets] = await Promise.all([
      records.countRejected(ids),
      hasHandler ? changes.progress(ids, HANDLER_CONSUMER, mostPending) : undefined,
      Promise.all(instances.map(({ id, company_id }) => this.#budget(company_id ?? id))),
    ]);
    const read = instances.map(async (instance, at) => {
      const own = lists.filter(({ instance_id }) => instance_id === instance.id);
      const { id, name, company_id, status, error_kind, error_detail: error } = instance;
      return {
        ...{ id, name, company_id, status, error_kind, error },
        budget: budgetStatus(budgets[at]),
        resources: await this.#byResource(own, async (list, resource) => ({
          ...listJson(this.#parts, instance, resource, list),
          handler: progress === undefined ? null : handlerStatus(progress.get(list?.id ?? 0)),
          problems: { rejected: rejected.get(list?.id ?? 0) ?? 0 },
        })),
      };
    });
    return Promise.all(read);
  }

  async #byResource<T>(
    lists: readonly ListStatus[],
    read: (list: ListStatus | undefined, resource: Resource) => Promise<T>,
  ): Promise<Record<string, T>> {
    const entries = this.#parts.resources.map(async (resource) => {
      const list = lists.find((one) => one.resource === resource.name);
      return [resource.name, await read(list, resource)] as const;
    });
    return Object.fromEntries(await Promise.all(entries));
  }

  async #problems(list: ListStatus | undefined, most: number): Promise<ListProblems> {
    if (list === undefined) return NO_PROBLEMS;
    const { records, changes } = this.#parts;
    const rejected = (await records.countRejected([list.id])).get(list.id) ?? 0;
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

  /** The state of a company's limit; undefined while Redis is away. */
  async #budget(company: string): Promise<BudgetState | undefined> {
    const { budget, watch } = this.#parts;
    if (watch?.failing === 'redis') return undefined;
    const late = sleep(BUDGET_LIMIT_MS, undefined, { ref: false });
    return Promise.race([budget.read(company), late]).catch(() => undefined);
  }
}

/** The progress of one list: its open or last full run, and its copy. Dates are ISO 8601 in UTC. */
export function listJson(
  { intervalMs: defaultMs, checkIntervalMs, watch }: StatusParts,
  { status }: Instance,
  resource: Resource,
  list: ListStatus | undefined,
) {
  const run = list?.run;
  const isPaused = list?.paused_at != null;
  const intervalMs = listIntervalMs(list, resource, defaultMs);
  const startsAgain = status === 'active' && !isPaused && run?.finished_at != null;
  // Without workers nobody works on the run, whatever its row says.
  const isAbandoned = run?.state === 'running' && watch?.areWorkersMissing === true;
  return {
    state: isAbandoned ? ('waiting' as const) : listState(run?.state),
    pages: run?.pages ?? 0,
    records: run?.records ?? 0,
    deleted: run?.deleted ?? 0,
    rejected: run?.rejected ?? 0,
    /** Live records in the copy. */
    stored: list?.stored ?? 0,
    started_at: iso(run?.started_at),
    finished_at: iso(run?.finished_at),
    error_kind: run?.error_kind ?? null,
    /** The last error, in words for an operator. */
    error: errorText(run),
    /** Since when errors have kept every page from coming; null while none does. */
    failing_since: iso(list?.failing_since),
    /** Whether an administrator has paused this list alone. */
    paused: isPaused,
    /** From the end of one full run to the start of the next. */
    interval_minutes: intervalMs / MINUTE_MS,
    /** When the next run starts by itself; null while one is open, or none will. */
    next_sync_at: startsAgain ? iso(list?.full_due_at) : null,
    /** When a waiting run continues. */
    waiting_until: iso(run?.wait_until),
    waiting_for: isAbandoned ? ('turn' as const) : (run?.waiting_for ?? null),
    /** Live records that the last full run did not see, and those of them whose deletion is held. */
    missing: list?.missing ?? 0,
    held_deletions: list?.held ?? 0,
    /** When the first pages were last read to what is known, and when the whole list was. */
    checked_at: iso(list?.checked_at),
    full_at: iso(list?.full_at),
    checks: checksOf(list, checkIntervalMs),
  };
}

/** Whether checks come at their interval, more rarely as they find too little, or never. `new` before the first copy. */
function checksOf(list: ListStatus | undefined, checkIntervalMs: number): 'new' | 'often' | 'rare' | 'off' {
  if (list !== undefined && checkIntervalMs === 0) return 'off';
  if (list === undefined || list.full_run === null) return 'new';
  return list.check_every === 1 ? 'often' : 'rare';
}

export function handlerStatus(progress: Progress | undefined) {
  return {
    pending: progress?.pending ?? 0,
    dead_letters: progress?.deadLetters ?? 0,
    last_error: progress?.error_detail || null,
    next_try_at: iso(progress?.not_before),
  };
}

/** Counts of a run, see `RunTable`, and what became of it. */
export function runJson(run: Run) {
  const { id, kind, state, pages, records, created, changed, deleted, rejected } = run;
  const { requests, refused, missing, held } = run;
  return {
    ...{ id, kind, state, pages, records, created, changed, deleted, rejected },
    ...{ requests, refused, missing, held },
    started_at: iso(run.started_at),
    finished_at: iso(run.finished_at),
    error_kind: run.error_kind,
    error: run.error_detail,
  };
}

/** A write of the outbox that is not finished. Dates are ISO 8601 in UTC. */
export function writeJson(write: Write) {
  const { operation, attempts, error, not_before } = write;
  const state = write.state as Exclude<Write['state'], 'done' | 'discarded'>;
  return {
    key: write.key ?? '',
    /** The route's name in the contract, and the resource and id of its path. */
    operation,
    object: write.object ?? '',
    state,
    attempts,
    error,
    created_at: iso(write.created_at),
    next_try_at: state === 'pending' && not_before > 0 ? iso(not_before) : null,
    /** False after a disconnect: then it cannot be sent again. */
    has_content: write.path_values !== null,
  };
}

/** A run's error, in words for an operator. */
function errorText(run: Run | undefined): string | null {
  if (run?.error_detail == null) return null;
  if (run.state !== 'failed' || run.finished_at !== null || run.attempt === 0) return run.error_detail;
  return `${run.error_detail} The app has tried ${run.attempt} times and keeps trying.`;
}

/** The tokens' dates, and how many new refresh tokens and access tokens there were so far. */
function tokenStatus(token: TokenRow | undefined) {
  return {
    access_expires_at: iso(token?.access_expires_at),
    refresh_issued_at: iso(token?.refresh_issued_at),
    refresh_expires_at: token === undefined ? null : iso(refreshExpiry(token.refresh_issued_at)),
    refresh_due_at: iso(token?.refresh_due_at),
    rotations: token?.rotations ?? 0,
    refreshes: token?.refreshes ?? 0,
    /** Failed refreshes in a row. */
    failures: token?.refresh_failures ?? 0,
  };
}

function budgetStatus(state: BudgetState | undefined) {
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
