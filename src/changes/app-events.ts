import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from '../runtime/logging.ts';
import type { InstanceStore } from '../store/instances.ts';
import type { ErrorKind } from '../store/states.ts';

/** What may happen to a company. */
export type CompanyEvent =
  /** The service has ended the authorization: an administrator of the company has to install the app again. */
  | { type: 'authorization_ended'; error: string }
  /** No page of a list has come for an hour because of failures; `since` is ISO 8601. Once, until a page comes again. */
  | {
      type: 'sync_failing';
      resource: string;
      since: string;
      errorKind: ErrorKind | null;
      error: string | null;
    }
  /** The handler did not take a record. */
  | { type: 'dead_letter'; resource: string; record: string | number; error: string }
  /** A run would delete too much: so many deletions wait for the next run to agree, or for a person to confirm them. */
  | { type: 'deletions_held'; resource: string; held: number }
  /** An administrator or an operator has disconnected the company, and maybe deleted its copy. */
  | { type: 'disconnected'; dataDeleted: boolean };

/** What an event handler gets. */
export type AppEvent =
  | (CompanyEvent & {
      instanceId: string;
      /** Null where the service does not tell which company it is. */
      companyId: string | null;
      company: string;
    })
  /** What the log has at `error` or `fatal`: the error as it was thrown, which may hold what the log leaves out. */
  | { type: 'error'; error: Error; message: string };

/**
 * Your event handler. It is called at most once for an event, in the process that meets it, and nothing waits for it: if
 * it fails, the log says so.
 */
export type EventHandler = (event: AppEvent) => void | Promise<void>;

/** Tells what happened to a company. */
export type TellEvent = (instanceId: string, event: CompanyEvent) => void;

/** How long events that are under way are waited for when the process ends, in milliseconds. */
const ENDING_MS = 2_000;

/** Sends events to the fork's handler, beside the work. */
export class EventSender {
  /** Until there is one, nothing is sent. */
  handler: EventHandler | undefined;
  readonly #logger: Logger;
  readonly #underWay = new Set<Promise<void>>();

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  readonly send = (event: AppEvent): void => {
    const { handler } = this;
    if (handler === undefined) return;
    const call = async () => handler(event);
    const sent = call()
      // At `warn`: it must not come round as an event.
      .catch((err) => this.#logger.warn({ err, event: event.type }, 'your event handler failed'))
      .finally(() => this.#underWay.delete(sent));
    this.#underWay.add(sent);
  };

  /** Completes what is told of a company by the names of it, and sends it. */
  tellBy(instances: InstanceStore): TellEvent {
    return (instanceId, event) => {
      if (this.handler === undefined) return;
      const tell = async () => {
        const instance = await instances.find(instanceId);
        if (instance === undefined) return;
        this.send({ ...event, instanceId, companyId: instance.company_id, company: instance.name });
      };
      tell().catch((err) =>
        this.#logger.warn({ err, instanceId, event: event.type }, 'an event could not be told'),
      );
    };
  }

  /** Gives events that are under way some seconds. */
  async close(): Promise<void> {
    const all = Promise.allSettled(this.#underWay);
    await Promise.race([all, sleep(ENDING_MS, undefined, { ref: false })]);
  }
}
