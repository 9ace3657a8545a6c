import { setTimeout as sleep } from 'node:timers/promises';
import { API, type Operation } from '../contract/api/api.ts';
import type { RouteContract } from '../contract/api/route.ts';
import type { Logger } from '../runtime/logging.ts';
import { redact } from '../runtime/redaction.ts';
import { backoffMs } from '../service/backoff.ts';
import { type Admission, PERMIT_LEASE_MS } from '../service/budget.ts';
import { readObject, ServiceError, toServiceError } from '../service/errors.ts';
import { REQUEST_TIMEOUT_MS } from '../service/http.ts';
import { type ClientParts, prepareCall } from '../service/service-client.ts';
import type { InstanceStore } from '../store/instances.ts';
import type { OutboxStore, Write, WriteOutcome } from '../store/outbox.ts';
import { isOutage } from '../sync/failure.ts';
import type { SendCompanyEvent } from './app-events.ts';

/** Writes of one company under way at the same time, each to another object. */
const AT_ONCE = 8;

/** After so many writes that a guard or the service holds back, the sender pauses. */
const MOST_DENIED = 50;

/** A sender goes back to the queue after this time, in milliseconds. */
const SLICE_MS = 5_000;

/** A sender keeps its slot for a shorter wait than this, in milliseconds. */
const SHORT_WAIT_MS = 1_000;

/** A company waits this long after an error of its token that names no time, in milliseconds. */
const TOKEN_PAUSE_MS = 10_000;

/** A lease outlasts permit, request and the writing of the result, in milliseconds. */
const WRITE_RESULT_MS = 10_000;
const LEASE_MS = PERMIT_LEASE_MS + WRITE_RESULT_MS;
const RESULT_RETRY_MS = 200;

/** The longest part of an answer's id that is kept, in UTF-16 units. */
const LONGEST_ID = 200;

export interface SenderParts extends ClientParts {
  outbox: OutboxStore;
  instances: InstanceStore;
  onEvent?: SendCompanyEvent | undefined;
  onWrite?: (write: { outcome: WriteOutcome['state'] }) => void;
  /** Failing rounds in a row, by instance. */
  failures: Map<string, number>;
}

/** What a sender knows of its company. */
interface Company {
  instanceId: string;
  name: string;
  /** The key of the budget. */
  budget: string;
  logger: Logger;
  /** The last token that the service rejected. */
  rejected: string | undefined;
  /** Another worker sends, too, or somebody paused or disconnected the company. */
  isTaken: boolean;
  /** Whether a write of the last round failed as in an outage, and whether one was done. */
  hasFailed: boolean;
  isWell: boolean;
  /** Writes without a permit since the last pause. */
  denied: number;
}

/**
 * Sends what the outbox of an instance holds, for a time slice. Every try has a permit first, and is committed as begun
 * before its request. So what a killed worker leaves behind may have arrived:
 *
 * | answer | then |
 * | --- | --- |
 * | 2xx; 404 or 410 of a DELETE that may have arrived before | done |
 * | 401, 429, a guard, or nothing was sent | again, after the pause that is due |
 * | 5xx, none, or the worker ended | again after a request's timeout, if it may come twice; else unknown |
 * | any other | refused |
 *
 * Refused and unknown writes wait for a person.
 *
 * @param signal ends the slice after the requests under way
 * @returns when to go on, in milliseconds since 1970; undefined if the sweep finds out
 */
export async function sendWrites(
  parts: SenderParts,
  instanceId: string,
  { logger, signal }: { logger: Logger; signal: AbortSignal },
): Promise<number | undefined> {
  const { outbox, instances, tokens } = parts;
  const instance = await instances.find(instanceId);
  if (instance?.status !== 'active') return undefined;
  const { name, company_id } = instance;
  const whose = { instanceId, name, budget: company_id ?? instanceId };
  const noRoundYet = { rejected: undefined, isTaken: false, hasFailed: false, isWell: false, denied: 0 };
  const company: Company = { ...whose, logger, ...noRoundYet };
  const sliceEnds = performance.now() + SLICE_MS;
  while (!signal.aborted && !company.isTaken) {
    if (performance.now() > sliceEnds) return Date.now();
    const { writes, lost, seen } = await outbox.next(instanceId, {
      // In an outage the others would be unknown, too.
      limit: company.isWell ? AT_ONCE : 1,
      againMs: REQUEST_TIMEOUT_MS,
    });
    for (const write of lost) report(parts, company, write, 'unknown', write.error);
    let waitMs: number | undefined;
    if (writes.length > 0) {
      const token = await tokens.accessToken(instanceId, company.rejected).catch((error) => {
        if (isOutage(error)) throw error;
        return toServiceError(error);
      });
      waitMs =
        'text' in token
          ? await sendRound(parts, company, writes, token.text)
          : (token.retryAfterMs ?? TOKEN_PAUSE_MS);
      if (waitMs === undefined) continue;
    }
    const leftMs = await outbox.schedule(instanceId, seen, waitMs);
    if (leftMs === undefined || leftMs > SHORT_WAIT_MS) return undefined;
    await sleep(leftMs, undefined, { signal }).catch(() => undefined);
  }
  return undefined;
}

/** Sends writes to different objects. @returns how long the company waits before the next round, if it has to */
async function sendRound(
  parts: SenderParts,
  company: Company,
  writes: readonly Write[],
  token: string,
): Promise<number | undefined> {
  const { failures } = parts;
  Object.assign(company, { hasFailed: false, isWell: false });
  const denials = await Promise.all(writes.map((write) => sendOne(parts, company, write, token)));
  if (company.isWell) failures.delete(company.instanceId);
  else if (company.hasFailed) {
    const inRow = (failures.get(company.instanceId) ?? 0) + 1;
    failures.set(company.instanceId, inRow);
    return backoffMs(inRow, Math.random());
  }
  const limit = denials.find((denial) => denial?.why === 'limit');
  if (limit !== undefined) return limit.waitMs;
  // Their times are written down. Many of them may mean that the service blocks the company.
  company.denied += denials.filter((denial) => denial !== undefined).length;
  if (company.denied < MOST_DENIED) return undefined;
  company.denied = 0;
  return SHORT_WAIT_MS;
}

/** @returns why there was no permit, if there was none */
async function sendOne(
  parts: SenderParts,
  company: Company,
  write: Write,
  token: string,
): Promise<(Admission & { permit: undefined }) | undefined> {
  const { api, budget, outbox } = parts;
  const contract: RouteContract | undefined = API[write.operation as Operation];
  const leaseEndsAt = performance.now() + LEASE_MS;
  let call: ReturnType<typeof prepareCall>;
  try {
    if (contract === undefined)
      throw new ServiceError('refused', `This version of the app has no operation ${write.operation}.`);
    call = prepareWrite(parts, contract, write);
  } catch (error) {
    // A fork has changed its contract.
    const begun = await outbox.begin(write, LEASE_MS);
    const outcome = { state: 'refused', error: toServiceError(error).message } as const;
    if (begun === undefined) company.isTaken = true;
    else await conclude(parts, company, begun, outcome, leaseEndsAt);
    return undefined;
  }
  const admission = await budget.acquire(company.budget, call.route, call.bucket);
  if (admission.permit === undefined) {
    if (admission.why !== 'limit') await outbox.postpone(write, admission.waitMs);
    return admission;
  }
  const { permit } = admission;
  const begun = await outbox.begin(write, LEASE_MS).catch(async (error) => {
    await api.release(permit);
    throw error;
  });
  if (begun === undefined) {
    company.isTaken = true;
    await api.release(permit);
    return undefined;
  }
  const outcome = await api.send(call.request, permit, token).then(
    ({ status, body }): WriteOutcome => ({ state: 'done', status, answerId: answerId(body) }),
    (error: unknown) => {
      const failure = toServiceError(error);
      if (failure.kind !== 'refused' && failure.kind !== 'rate_limited') company.hasFailed = true;
      // The token is not good any more: the next round refreshes it.
      if (failure.remedy === 'refresh' && begun.status !== 401) company.rejected = token;
      return outcomeOf(failure, begun, contract);
    },
  );
  if (outcome.state === 'done') company.isWell = true;
  await conclude(parts, company, begun, outcome, leaseEndsAt);
  return undefined;
}

/** Writes a result down, and tries so while the lease lasts: the request may have taken effect. */
async function conclude(
  parts: SenderParts,
  company: Company,
  write: Write,
  outcome: WriteOutcome,
  leaseEndsAt: number,
) {
  let isWritten: boolean | undefined;
  while (isWritten === undefined) {
    isWritten = await parts.outbox.finish(write, outcome).catch(async (error) => {
      if (performance.now() > leaseEndsAt) throw error;
      await sleep(RESULT_RETRY_MS);
      return undefined;
    });
  }
  if (!isWritten) return;
  const { state } = outcome;
  parts.onWrite?.({ outcome: state });
  if (state === 'refused' || state === 'unknown') report(parts, company, write, state, outcome.error);
}

function outcomeOf(failure: ServiceError, write: Write, { method }: RouteContract): WriteOutcome {
  const { status, kind, remedy, unsent, retryAfterMs = 0 } = failure;
  const error = redact(failure.message);
  const pauseMs = Math.max(retryAfterMs, backoffMs(write.attempts, Math.random()));
  const again = { state: 'pending', wasSent: false, status } as const;
  // A second 401 in a row has another reason than the token.
  if (remedy === 'refresh' && write.status !== 401) return { ...again, afterMs: 0, error: null };
  if (remedy === 'refresh') return { ...again, afterMs: pauseMs, error };
  if (status === 429) return { ...again, afterMs: retryAfterMs, error: null };
  if (unsent) return { ...again, afterMs: pauseMs, error };
  if (kind === 'refused') {
    const isGone = method === 'DELETE' && write.was_sent === 1 && (status === 404 || status === 410);
    return isGone ? { state: 'done', status, answerId: null } : { state: 'refused', status, error };
  }
  if (!write.is_repeatable) return { state: 'unknown', status, error };
  // A late request must not overtake the next one.
  return { ...again, wasSent: true, afterMs: Math.max(REQUEST_TIMEOUT_MS, pauseMs), error };
}

function report(
  { onEvent }: SenderParts,
  { instanceId, name, logger }: Company,
  { operation, key }: Write,
  state: 'refused' | 'unknown',
  error: string | null,
): void {
  const text = state === 'refused' ? 'the service refused a write' : 'a write may have arrived, or not';
  logger.warn({ instanceId, company: name, operation, writeKey: key, error }, text);
  const facts = { operation, key: key ?? '', error: error ?? '' };
  onEvent?.(instanceId, { type: state === 'refused' ? 'write_refused' : 'write_unknown', ...facts });
}

function prepareWrite(parts: SenderParts, contract: RouteContract, { path_values, body }: Write) {
  const params = contract.path.includes('/:') ? [JSON.parse(path_values ?? '{}')] : [];
  return prepareCall(contract, [...params, ...(body === null ? [] : [JSON.parse(body)])], parts);
}

/** The id of what a write made, as far as the answer names one. */
function answerId(body: string): string | null {
  const { id, message_uid } = readObject(body);
  const named = id ?? message_uid;
  return typeof named === 'string' || typeof named === 'number' ? String(named).slice(0, LONGEST_ID) : null;
}
