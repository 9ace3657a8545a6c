import { Problem } from '../http/answer.ts';
import { BoundedMap } from '../state/bounded-map.ts';
import { restoreSnapshot, type Snapshot, takeSnapshot, type World } from '../world.ts';

/** So many snapshots are kept; the oldest goes first. */
const SNAPSHOTS_KEPT = 20;

/** Worlds that were kept to come back to. They outlive a reset; numbers go on, so that no id is given twice. */
export class Snapshots {
  readonly #kept = new BoundedMap<string, Snapshot>(SNAPSHOTS_KEPT);
  #count = 0;

  /** Keeps the world as it is, and answers the snapshot's id. */
  take(world: World): string {
    this.#count += 1;
    const id = `snp_${this.#count}`;
    this.#kept.set(id, takeSnapshot(world));
    return id;
  }

  /** Puts the world back, as often as one likes. Throws a {@link Problem} (404) for a snapshot that there is not. */
  restore(world: World, id: string): void {
    const snapshot = this.#kept.get(id);
    if (snapshot === undefined) {
      throw new Problem(404, `There is no snapshot ${id}: the newest ${SNAPSHOTS_KEPT} are kept.`);
    }
    restoreSnapshot(world, snapshot);
    world.tokens.onIssue();
  }

  /** Those that are kept, oldest first; `at` is what the service's clock said, in ms since 1970. */
  list(): { id: string; at: number; frozen: boolean }[] {
    return [...this.#kept].map(([id, { now, frozen }]) => ({ id, at: now, frozen }));
  }
}
