import { existsSync, readFileSync } from 'node:fs';

/** Of a second; the same on every Linux that Node runs on. */
const TICKS = 100;
const KIB = 1024;
/** Places in `/proc/PID/stat`, counted from behind the name of the program. */
const USER_TICKS_AT = 11;
const SYSTEM_TICKS_AT = 12;

/** What a process has used since it started. */
export interface ProcessUsage {
  /** Time on a processor, all threads together, in milliseconds; in steps of ten. */
  cpuMs: number;
  rssBytes: number;
}

/** Whether {@link usageOf} can tell anything on this machine. */
export const HAS_PROC = existsSync('/proc/self/stat');

function ticksOf(statFile: string): number {
  const stat = readFileSync(statFile, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return Number(fields[USER_TICKS_AT]) + Number(fields[SYSTEM_TICKS_AT]);
}

/** What a process of this machine has used; undefined without `/proc`, and for a process that has ended. */
export function usageOf(pid: number): ProcessUsage | undefined {
  try {
    const ticks = ticksOf(`/proc/${pid}/stat`);
    const rss = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
    if (rss === undefined) return undefined;
    return { cpuMs: (ticks * 1_000) / TICKS, rssBytes: Number(rss) * KIB };
  } catch {
    return undefined;
  }
}
