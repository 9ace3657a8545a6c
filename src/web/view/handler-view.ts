import type { ListStatusJson } from '../../sync/status-types.ts';
import type { WebResource } from '../web-dependencies.ts';
import { formatCount, sentence } from './format.ts';
import { isHandlerFailing } from './instance-message.ts';

function progressText({ pending, dead_letters }: NonNullable<ListStatusJson['handler']>): string {
  if (pending > 0) return `${formatCount(pending, 'change')} pending.`;
  if (dead_letters === 0) return 'Every change is delivered.';
  return `${formatCount(dead_letters, 'dead letter')}; every other change is delivered.`;
}

/**
 * How far the handler is with a list, for a developer; undefined without a handler.
 *
 * @param now milliseconds since 1970, local clock
 */
export function handlerView({ name, title }: WebResource, list: ListStatusJson, now: number) {
  const { handler } = list;
  if (handler === null) return undefined;
  const reason = handler.pending > 0 ? handler.last_error : null;
  return {
    name,
    title,
    progress: progressText(handler),
    error:
      reason === null
        ? null
        : sentence('The handler failed. The app tries again {in}.', handler.next_try_at, now),
    reason,
    isFailing: isHandlerFailing(list),
  };
}
