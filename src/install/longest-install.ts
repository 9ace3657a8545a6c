import { LONGEST_TOKEN_REQUEST_MS } from '../tokens/oauth-client.ts';
import { LONGEST_STORING_MS } from '../tokens/received-installs.ts';
import { LONGEST_QUESTION_MS } from './company.ts';

/** For the look whether a grant could be stored, in milliseconds: a read and a write, which wait for others. */
const LOOK_MS = 7_000;

/** For the start of the syncs, in milliseconds: a few commands of Redis, each with a limit of its own. */
const START_MS = 30_000;

/** How long an install takes at the most, from the callback to its instance or its failure, in milliseconds. */
export const LONGEST_INSTALL_MS =
  LOOK_MS + LONGEST_TOKEN_REQUEST_MS + LONGEST_QUESTION_MS + LONGEST_STORING_MS + START_MS;
