import type { Logger } from '../runtime/logging.ts';
import type { TokensParts } from './tokens-types.ts';

type Outcome = Parameters<NonNullable<TokensParts['onRefresh']>>[0]['outcome'];

/**
 * Logs what somebody has to know of refreshes, and of grants that cannot be written at once.
 *
 * @param count told of every one
 */
export function logRefreshes(
  logger: Logger,
  count: (outcome: Outcome) => void,
): Required<Pick<TokensParts, 'onRefresh' | 'onUnwritten' | 'onWritten' | 'onLost'>> {
  return {
    onRefresh: ({ instanceId, outcome }) => {
      count(outcome);
      if (outcome === 'rejected') logger.warn({ instanceId }, 'the instance needs a new authorization');
      if (outcome === 'cut_off')
        logger.warn({ instanceId }, 'a refresh was cut off by the end of the process');
    },
    onUnwritten: ({ instanceId, error }) =>
      logger.warn({ instanceId, err: error }, 'a new grant cannot be written yet: it is kept, and tried on'),
    onWritten: ({ instanceId, isNewest }) =>
      isNewest
        ? logger.info({ instanceId }, 'a new grant that was kept is written')
        : logger.info({ instanceId }, 'a new grant that was kept gives way to what has come since'),
    onLost: ({ instanceId, error }) =>
      logger.error(
        { instanceId, err: error },
        'a new grant is lost: it could not be written before the end of the process',
      ),
  };
}
