import type { SessionData } from 'express-session';
import type { InstanceControl } from '../sync/status-types.ts';

/** More than anybody installs by hand; keeps a session's size bounded. */
const MAX_INSTANCES_PER_SESSION = 100;

/** Where every instance begins; what a session says that was made before generations were counted. */
const FIRST_GENERATION = 1;

/** The part of a session that says which instances it sees, newest first, each in one access generation. */
export type InstanceAccess = Pick<SessionData, 'instances' | 'accessGenerations'>;

/** Whether a session sees an instance: it has installed it, and nothing has ended that since. */
export async function mayAccess(
  session: InstanceAccess,
  instanceId: string,
  control: Pick<InstanceControl, 'accessGeneration'>,
): Promise<boolean> {
  const seen = generationSeen(session, instanceId);
  return seen !== undefined && seen === (await control.accessGeneration(instanceId));
}

/** In which generation a session sees an instance, which may have ended since; undefined when it does not know it. */
export function generationSeen(session: InstanceAccess, instanceId: string): number | undefined {
  return session.instances?.includes(instanceId) ? generationIn(session, instanceId) : undefined;
}

/** Lets a session see an instance in a generation, and puts it first in the list. */
export function grantAccess(
  session: InstanceAccess,
  instanceId: string,
  generation = FIRST_GENERATION,
): Required<InstanceAccess> {
  const others = session.instances?.filter((id) => id !== instanceId) ?? [];
  const instances = [instanceId, ...others].slice(0, MAX_INSTANCES_PER_SESSION);
  const inGeneration = (id: string) => (id === instanceId ? generation : generationIn(session, id));
  return { instances, accessGenerations: Object.fromEntries(instances.map((id) => [id, inGeneration(id)])) };
}

/** Lets a session that saw an instance in one generation go on seeing it in the next; one that was logged out stays so. */
export function keepAccess(session: InstanceAccess, instanceId: string, next?: number): void {
  const seen = generationSeen(session, instanceId);
  if (next === undefined || seen === undefined || seen !== next - 1) return;
  session.accessGenerations = { ...session.accessGenerations, [instanceId]: next };
}

function generationIn(session: InstanceAccess, instanceId: string): number {
  return session.accessGenerations?.[instanceId] ?? FIRST_GENERATION;
}
