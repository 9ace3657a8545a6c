import { MultiBar, type SingleBar } from 'cli-progress';
import type { InstanceStatus, ListStatusJson } from '../sync/status-types.ts';
import type { DemoCompany } from './companies.ts';

/** How often the bars are written into a log file, in milliseconds. */
const LOG_EVERY_MS = 5_000;

/** A progress bar for each list of each company. */
export class ProgressBars {
  readonly #multiBar = new MultiBar({
    format: '  {label} {bar} {percentage}%  {value}/{total} records  {state}',
    barCompleteChar: '█',
    barIncompleteChar: '░',
    barsize: 28,
    hideCursor: true,
    noTTYOutput: true,
    notTTYSchedule: LOG_EVERY_MS,
    // The shutdown handles Ctrl-C.
    gracefulExit: false,
  });
  readonly #bars = new Map<string, SingleBar>();

  constructor(companies: readonly DemoCompany[], resources: readonly string[]) {
    const all = companies.flatMap((company) =>
      resources.map((resource) => ({
        label: labelOf(company, resource),
        total: company.counts[resource] ?? 0,
      })),
    );
    const width = Math.max(...all.map(({ label }) => label.length));
    for (const { label, total } of all) {
      this.#bars.set(label, this.#multiBar.create(total, 0, { label: label.padEnd(width), state: '' }));
    }
  }

  show(company: DemoCompany, { resources }: InstanceStatus): void {
    for (const [resource, list] of Object.entries(resources)) {
      this.#bars.get(labelOf(company, resource))?.update(list.records, { state: describe(list) });
    }
  }

  /** Leaves the bars on the screen. A second call does nothing. */
  stop(): void {
    if (this.#multiBar.isActive) this.#multiBar.stop();
  }
}

function labelOf(company: DemoCompany, resource: string): string {
  return `${company.name}, ${resource}`;
}

function describe({ state, waiting_for, waiting_until, finished_at }: ListStatusJson): string {
  if (finished_at !== null) return 'done';
  if (waiting_for !== 'limit' || waiting_until === null) return state;
  const seconds = Math.max(0, Math.ceil((Date.parse(waiting_until) - Date.now()) / 1_000));
  return `waits for the limit, ${seconds} s`;
}
