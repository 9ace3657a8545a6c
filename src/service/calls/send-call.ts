import type { Admission, RateBudget, WaitReason } from '../budget/rate-budget.ts';
import { rejectedAgain, ServiceError, toServiceError } from '../errors.ts';
import { backoffMs } from '../retry-timing.ts';
import { MOST_PERMITS, type Transport } from '../transport.ts';
import { Patience } from './patience.ts';
import type { PreparedCall } from './prepare-call.ts';
import { readAnswer } from './read-answer.ts';

/** How often a request is sent that fails, besides waits that the service asked for. */
const MOST_TRIES = 4;

/** Where access tokens come from. */
export interface AccessTokens {
  /** @param rejected a token that the service has just answered with 401: another one is wanted */
  accessToken(instanceId: string, rejected: string | undefined): Promise<{ text: string }>;
}

/** What calls are sent with. */
export interface SenderParts {
  transport: Transport;
  budget: RateBudget;
  tokens: AccessTokens;
}

/** On whose behalf a call is made, and how if its own options do not say. */
export interface CallFor {
  instanceId: string;
  /** What the budget is kept by. */
  company: string;
  signal?: AbortSignal;
  /** Milliseconds. */
  maxWaitMs: number;
  /** Whether what the call is made for goes on: asked right before each request, as it may have waited for long. */
  isWanted?: (() => Promise<boolean>) | undefined;
}

/**
 * Sends a call until there is an answer to it (Errors):
 *
 * - no permit yet (rate limit, guard, block): waits for it; one that grew too old, as the process stood still: another one
 * - 401: once more with a new token; 429: once more when the service wants it
 * - 5xx, no answer, or one that cannot be read: a few times more, after pauses. A POST may have taken effect by then
 *   and is not sent again, unless it is said to be repeatable or has surely not come to the service.
 *
 * @throws ServiceError; or the reason of a signal that ended the call
 */
export async function sendCall(parts: SenderParts, whose: CallFor, call: PreparedCall): Promise<unknown> {
  const { options } = call;
  const signals = [whose.signal, options.signal].filter((one) => one !== undefined);
  const signal = signals.length > 1 ? AbortSignal.any(signals) : signals[0];
  const progress: Progress = {
    patience: new Patience(options.maxWaitMs ?? whose.maxWaitMs, signal),
    perhapsDone: false,
  };
  try {
    signal?.throwIfAborted();
    return await persist(parts, whose, call, progress, signal);
  } catch (error) {
    signal?.throwIfAborted();
    throw progress.perhapsDone ? inDoubt(toServiceError(error)) : toServiceError(error);
  }
}

interface Progress {
  patience: Patience;
  /** A writing was sent that got no answer to go by. */
  perhapsDone: boolean;
}

async function persist(
  { transport, budget, tokens }: SenderParts,
  { instanceId, company, isWanted }: CallFor,
  call: PreparedCall,
  progress: Progress,
  signal: AbortSignal | undefined,
): Promise<unknown> {
  const { patience } = progress;
  const { method } = call.request;
  const repeatable = call.options.repeatable ?? method !== 'POST';
  let rejected: string | undefined;
  let unsent = 0;
  for (let tries = 1; ; ) {
    const token = await tokens.accessToken(instanceId, rejected);
    const admission = await budget.acquire(company, call.route, call.bucket);
    // Last of all, as both may have taken long: the token may be of another install by then.
    await checkWanted(isWanted, () => giveBack(budget, admission));
    if (admission.permit === undefined) {
      const { waitMs, why } = admission;
      await patience.wait(waitMs, () => noPermit(call, waitMs, why));
      continue;
    }
    try {
      const answer = await transport.send(call.request, admission.permit, token.text, signal);
      return readAnswer(call.contract, answer);
    } catch (error) {
      const failure = toServiceError(error);
      if (failure.permitOver && ++unsent < MOST_PERMITS) continue;
      if (failure.remedy === 'refresh') {
        if (rejected !== undefined) throw rejectedAgain(failure);
        rejected = token.text;
      } else if (failure.status === 429) {
        // The budget knows for how long nothing may go: the wait is there.
        patience.allow(failure.retryAfterMs ?? 0, () => failure);
      } else {
        if (failure.remedy !== 'wait') throw failure;
        if (method !== 'GET' && !failure.unsent) progress.perhapsDone = true;
        if (tries === MOST_TRIES || !(repeatable || failure.unsent)) throw failure;
        const pauseMs = Math.max(failure.retryAfterMs ?? 0, backoffMs(tries, Math.random()));
        await patience.wait(pauseMs, () => failure);
        tries++;
      }
    }
  }
}

/** @throws ServiceError when what the call is made for is over, or the error of asking; after `giveBack` in both cases */
async function checkWanted(isWanted: CallFor['isWanted'], giveBack: () => Promise<void>): Promise<void> {
  let isStill = false;
  try {
    isStill = (await isWanted?.()) !== false;
  } finally {
    if (!isStill) await giveBack();
  }
  if (isStill) return;
  throw new ServiceError('give_up', 'The request is not sent: what it was to be sent for is over.');
}

/** Gives back the permit of a request that is not sent; where Redis is not to be had, its lease ends by itself. */
async function giveBack(budget: RateBudget, { permit }: Admission): Promise<void> {
  if (permit !== undefined) await budget.settle(permit, { unsent: true }).catch(() => undefined);
}

function inDoubt(failure: ServiceError): ServiceError {
  const { remedy, status, retryAfterMs, tier } = failure;
  return new ServiceError(remedy, `${failure.message} The request may have taken effect.`, {
    mayHaveTakenEffect: true,
    cause: failure,
    status,
    retryAfterMs,
    tier,
  });
}

function noPermit({ route, bucket }: PreparedCall, waitMs: number, why: WaitReason): ServiceError {
  const what = {
    limit: 'The rate limit',
    shared: 'The rate limit',
    pace: 'A rate guard',
    probe: 'The rate limit',
    blocked: 'The service',
    guard: 'A rate guard',
  };
  return new ServiceError('wait', `${what[why]} allows no request to ${route} for ${waitMs} ms.`, {
    retryAfterMs: waitMs,
    tier: why === 'guard' ? bucket?.tier : undefined,
  });
}
