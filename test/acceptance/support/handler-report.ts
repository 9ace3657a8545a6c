import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { tempDir } from '../../support/temp-dir.ts';
import type { StartOptions } from './world.ts';

/** A change as a handler got it. */
export interface Change {
  seq: number;
  change: 'created' | 'changed' | 'deleted';
  id: string;
  document: unknown;
}

/** A call of a handler: when it was through, in which process, and the worker process that is its parent. */
export interface Call {
  pid: number;
  worker: number;
  at: number;
  /** Whether the call goes on until its process ends. */
  isStuck: boolean;
  instanceId: string;
  companyId: string | null;
  resource: 'contacts' | 'conversations';
  changes: Change[];
}

/** What the handlers of a world's processes have reported. */
export class HandlerReport {
  readonly #file = join(tempDir(), 'calls');
  /** How many calls of an instance are not looked at any more. */
  readonly #forgotten = new Map<string, number>();
  /** For the processes: web and workers. */
  readonly options: StartOptions & { env: Record<string, string> };

  /** @param handler a file of `handlers/` that reports */
  constructor(handler = 'report') {
    writeFileSync(this.#file, '');
    this.options = {
      handler: join(import.meta.dirname, `../handlers/${handler}.ts`),
      env: { TEST_REPORT: this.#file },
    };
  }

  /** The calls for an instance, or for all, in their order. */
  calls(instanceId?: string): Call[] {
    const calls = readFileSync(this.#file, 'utf8').split('\n').flatMap(parse);
    if (instanceId === undefined) return calls;
    return calls.filter((call) => call.instanceId === instanceId).slice(this.#forgotten.get(instanceId));
  }

  /** Forgets the calls for an instance up to now. */
  forget(instanceId: string): void {
    this.#forgotten.delete(instanceId);
    this.#forgotten.set(instanceId, this.calls(instanceId).length);
  }

  /** The changes of a list that calls have seen through, in the order in which they were handed over. */
  changes(instanceId: string, resource: Call['resource']): Change[] {
    const calls = this.calls(instanceId).filter((call) => call.resource === resource && !call.isStuck);
    return calls.flatMap(({ changes }) => changes);
  }
}

/** The documents that a list has by what its handler was told, sorted; and the ids that were deleted. */
export function newest(changes: readonly Change[]): { documents: string[]; deleted: string[] } {
  const last = [...new Map(changes.map((change) => [change.id, change])).values()];
  return {
    documents: last
      .filter(({ change }) => change !== 'deleted')
      .map(({ document }) => JSON.stringify(document))
      .sort(),
    deleted: last.filter(({ change }) => change === 'deleted').map(({ id }) => id),
  };
}

/** A line that a SIGKILL cut off holds nothing. */
function parse(line: string): Call[] {
  try {
    return [JSON.parse(line) as Call];
  } catch {
    return [];
  }
}
