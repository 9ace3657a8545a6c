import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { hasCode } from '../error-code.ts';

const POLL_MS = 20;
/** How long a server may take to write its data out before it is killed. */
const STOP_LIMIT_MS = 2_000;

/** Tells whether a process of this id runs; one that has ended and is only waiting for its parent does not. */
export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    // EPERM: there is one, of somebody else.
    return hasCode(error, 'EPERM');
  }
  return !isZombie(pid);
}

function isZombie(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The name, in parentheses, may contain anything; the state follows its last parenthesis.
    return stat.slice(stat.lastIndexOf(')') + 2).startsWith('Z');
  } catch {
    return false;
  }
}

/** Asks a process to end, waits for it, and kills it when it takes more than two seconds. */
export async function endProcess(pid: number): Promise<void> {
  if (!isRunning(pid)) return;
  process.kill(pid, 'SIGTERM');
  const deadline = performance.now() + STOP_LIMIT_MS;
  while (isRunning(pid)) {
    if (performance.now() > deadline) {
      process.kill(pid, 'SIGKILL');
      return;
    }
    await sleep(POLL_MS);
  }
}
