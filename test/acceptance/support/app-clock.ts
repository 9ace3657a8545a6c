import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { localClock, type World } from './world.ts';

/** The local clock of the app's processes, which goes on with the service's when both are moved. */
export class AppClock {
  readonly #world: World;
  readonly #file: string;
  #aheadMs: number;

  /**
   * Gives the processes that start afterwards a clock of their own.
   *
   * @param aheadMs how far it is ahead of the right time; negative behind it
   */
  constructor(world: World, aheadMs: number) {
    this.#world = world;
    this.#aheadMs = aheadMs;
    this.#file = join(world.dir, 'local-clock');
    this.#write();
    Object.assign(world.env, localClock(this.#file));
  }

  /** Lets time pass, for the service and for the processes. */
  async pass(ms: number): Promise<void> {
    await this.#world.control.clock({ advance_ms: ms });
    this.#aheadMs += ms;
    this.#write();
  }

  #write(): void {
    writeFileSync(this.#file, String(this.#aheadMs));
  }
}
