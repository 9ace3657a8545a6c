import { MultiBar, type SingleBar } from 'cli-progress';
import type { InstanceStatus, ListStatusJson } from '../sync/status-types.ts';
import type { DemoCompany } from './companies.ts';

/** How often a log that is no terminal gets a line, in milliseconds. */
const LOG_EVERY_MS = 5_000;

/** A bar for each resource of each company. */
export class ProgressBars {
  readonly #bars: MultiBar;
  readonly #byResource = new Map<string, SingleBar>();
  #isStopped = false;

  constructor() {
    this.#bars = new MultiBar({
      format: '  {label} {bar} {percentage}%  {value}/{total} records  {state}',
      barCompleteChar: '█',
      barIncompleteChar: '░',
      barsize: 28,
      hideCursor: true,
      noTTYOutput: true,
      notTTYSchedule: LOG_EVERY_MS,
      // Ctrl-C is the shutdown's to handle.
      gracefulExit: false,
    });
  }

  /** Adds the company's bars, empty. */
  add(company: DemoCompany, resources: readonly string[], labelWidth: number): void {
    for (const resource of resources) {
      const label = labelOf(company, resource).padEnd(labelWidth);
      const bar = this.#bars.create(company.counts[resource] ?? 0, 0, { label, state: '' });
      this.#byResource.set(labelOf(company, resource), bar);
    }
  }

  show(company: DemoCompany, status: InstanceStatus): void {
    for (const [resource, progress] of Object.entries(status.resources)) {
      const bar = this.#byResource.get(labelOf(company, resource));
      bar?.update(progress.records, { state: describe(progress) });
    }
  }

  /** Leaves the bars as they are; a second time does nothing. */
  stop(): void {
    if (this.#isStopped) return;
    this.#isStopped = true;
    this.#bars.stop();
  }
}

/** How a bar is called. */
export function labelOf(company: DemoCompany, resource: string): string {
  return `${company.name}, ${resource}`;
}

function describe({ state, waiting_for, waiting_until, finished_at }: ListStatusJson): string {
  if (finished_at !== null) return 'done';
  if (waiting_for === 'limit' && waiting_until !== null) {
    const seconds = Math.max(0, Math.ceil((Date.parse(waiting_until) - Date.now()) / 1_000));
    return `waits for the limit, ${seconds} s`;
  }
  return state;
}
