import type { Snapshots } from './snapshots.ts';
import type { Addresses } from './types.ts';
import type { World } from './world.ts';

/** The sandbox's own state: its world of the moment, and its addresses. */
export interface Host {
  world: World;
  addresses: Addresses;
  snapshots: Snapshots;
  /** Whether it listens beyond this machine. */
  exposed: boolean;
  /** Origin that clients reach it at, where that is not its own. */
  publicUrl: string | undefined;
  /** Back to the state at start. */
  reset(): void;
}
