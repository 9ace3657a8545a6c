import type { Request } from 'express';
import type { InstanceStatus } from '../sync/status-types.ts';
import { explainError } from './error-explain.ts';
import { keepAccess } from './instance-access.ts';
import { changeSession } from './session-changes.ts';
import type { WebDependencies } from './web-dependencies.ts';
import { WebError } from './web-error.ts';

/**
 * Disconnects an instance, and deletes its copy if that is asked for. This browser goes on seeing what is left of it; no
 * other does.
 *
 * @param from the access generation in which this browser sees it
 * @returns false where that has ended meanwhile: nothing is done then
 * @throws WebError 503 when it is disconnected, but a store is away before this browser is told or all of the copy deleted
 */
export async function disconnect(
  { redis, control }: Pick<WebDependencies, 'redis' | 'control'>,
  req: Request,
  { id, status }: InstanceStatus,
  { from, deleteData }: { from: number; deleteData: boolean },
): Promise<boolean> {
  let hasEnded = false;
  const onEnded = async (generation: number) => {
    hasEnded = true;
    await changeSession(redis, req, (session) => keepAccess(session, id, generation));
  };
  try {
    return await control.disconnect(id, { deleteData, from, onEnded });
  } catch (error) {
    if (!hasEnded) throw error;
    throw explainUnfinished(error, { isNew: status !== 'disconnected', deleteData });
  }
}

/** Where a store is away afterwards the page says what has happened all the same. */
function explainUnfinished(
  error: unknown,
  { isNew, deleteData }: { isNew: boolean; deleteData: boolean },
): unknown {
  const { status, title } = explainError(error);
  if (status !== 503) return error;
  const message = [
    ...(isNew ? ['The company is disconnected.'] : []),
    // The workers finish what was begun.
    ...(deleteData ? ['Its copied data is being deleted.'] : []),
    'The app has trouble with its own store at the moment, so this browser may not see the company any more.',
  ];
  const advice = [
    'Wait a few seconds, then open the front page.',
    ...(deleteData
      ? []
      : ['If the company is not there any more, install it again to see the copy that was kept.']),
  ];
  return new WebError(status, title, message.join(' '), { advice: advice.join(' '), cause: error });
}
