import { loadHandler } from './fork.ts';

// Says whether the fork has a handler, in a process of its own: the module may do what it likes, also later.

export interface HandlerAnswer {
  hasHandler: boolean;
  /** Why it does not load. */
  problem?: string;
}

process.on('disconnect', () => process.exit());
const answer: HandlerAnswer = await loadHandler(() => import('./integration/handler.ts')).then(
  (handler) => ({ hasHandler: handler !== undefined }),
  (error: Error) => ({ hasHandler: false, problem: error.message }),
);
process.send?.(answer);
