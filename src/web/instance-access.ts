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
  if (!session.instances?.includes(instanceId)) return false;
  return generationIn(session, instanceId) === (await control.accessGeneration(instanceId));
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

/** Lets a session that saw an instance go on seeing it in a later generation. */
export function keepAccess(session: InstanceAccess, instanceId: string, generation?: number): void {
  if (generation === undefined || !session.instances?.includes(instanceId)) return;
  session.accessGenerations = { ...session.accessGenerations, [instanceId]: generation };
}

function generationIn(session: InstanceAccess, instanceId: string): number {
  return session.accessGenerations?.[instanceId] ?? FIRST_GENERATION;
}
