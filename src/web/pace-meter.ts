import type { InstanceStatus } from '../sync/status-types.ts';
import type { RecordsPerSecond } from './view/list-values.ts';

interface Sample {
  at: number;
  records: number;
}

/** Long enough to even out single pages, short enough to follow a wait. */
const PACE_SPAN_MS = 5_000;

/** Watches successive states of one instance and tells how fast each resource's run goes. */
export class PaceMeter {
  readonly #samples = new Map<string, Sample[]>();

  /**
   * Takes in a state and answers the paces, in records a second.
   *
   * @param at milliseconds on a clock that never jumps
   */
  observe(status: InstanceStatus, at: number): Record<string, RecordsPerSecond> {
    const paces: Record<string, RecordsPerSecond> = {};
    for (const [name, resource] of Object.entries(status.resources)) {
      const known = this.#samples.get(name) ?? [];
      const last = known.at(-1);
      const goesOn = resource.state === 'running' && (!last || resource.records >= last.records);
      const samples = goesOn ? known.filter((sample) => at - sample.at <= PACE_SPAN_MS) : [];
      const first = samples[0];
      paces[name] =
        first && at > first.at ? ((resource.records - first.records) * 1_000) / (at - first.at) : undefined;
      samples.push({ at, records: resource.records });
      this.#samples.set(name, samples);
    }
    return paces;
  }
}
