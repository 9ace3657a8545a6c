import { setTimeout as sleep } from 'node:timers/promises';
import type { Settings } from '../integration/types.ts';
import type { Logger } from '../runtime/logging.ts';
import type { InstanceStore } from '../store/instances.ts';
import type { ErrorKind } from '../store/states.ts';

export type CompanyEvent =
  /** The service ended the authorization. An administrator of the company has to install the app again. */
  | { type: 'authorization_ended'; error: string }
  /** Errors have kept all pages of a list back for an hour. `since` is ISO 8601. It comes once until a page comes again. */
  | {
      type: 'sync_failing';
      resource: string;
      since: string;
      errorKind: ErrorKind | null;
      error: string | null;
    }
  /** The handler refused a record at its last try. */
  | { type: 'dead_letter'; resource: string; record: string | number; error: string }
  /** The service refused a write of the outbox; or its answer was lost, and it may have arrived. A person decides. */
  | { type: 'write_refused' | 'write_unknown'; operation: string; key: string; error: string }
  /** A run holds so many deletions until the next run agrees or a person confirms them. */
  | { type: 'deletions_held'; resource: string; held: number }
  /** An administrator or an operator disconnected the company, and may have deleted its copy. */
  | { type: 'disconnected'; dataDeleted: boolean; writesDiscarded: number };

/** The argument of an event handler. */
export type AppEvent =
  | (CompanyEvent & {
      instanceId: string;
      /** Null where the service does not name the company. */
      companyId: string | null;
      company: string;
    })
  /** A log line of level `error` or `fatal`. The error is the thrown one, and may hold what the log leaves out. */
  | { type: 'error'; error: Error; message: string };

/**
 * Your event handler. The process that meets an event calls it at most once, and does not wait for it. The log shows its
 * failures. `settings` are the values of `src/integration/settings.ts`.
 */
export type EventHandler = (event: AppEvent, context: { settings: Settings }) => void | Promise<void>;

/** Sends an event of a company to the event handler. */
export type SendCompanyEvent = (instanceId: string, event: CompanyEvent) => void;

/** A closing process waits this long for events under way, in milliseconds. */
const CLOSE_MS = 2_000;

/** Sends events to the fork's event handler. Nothing waits for it. */
export class EventSender {
  /** Without a handler nothing is sent. */
  handler: ((event: AppEvent) => void | Promise<void>) | undefined;
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
      // An error line would become an event again.
      .catch((err) => this.#logger.warn({ err, event: event.type }, 'your event handler failed'))
      .finally(() => this.#underWay.delete(sent));
    this.#underWay.add(sent);
  };

  /** Completes events with the company's names, and sends them. */
  sendFor(instances: InstanceStore): SendCompanyEvent {
    return (instanceId, event) => {
      if (this.handler === undefined) return;
      const complete = async () => {
        const instance = await instances.find(instanceId);
        if (instance === undefined) return;
        this.send({ ...event, instanceId, companyId: instance.company_id, company: instance.name });
      };
      complete().catch((err) =>
        this.#logger.warn({ err, instanceId, event: event.type }, 'an event could not be sent'),
      );
    };
  }

  /** Waits some seconds for events under way. */
  async close(): Promise<void> {
    const all = Promise.allSettled(this.#underWay);
    await Promise.race([all, sleep(CLOSE_MS, undefined, { ref: false })]);
  }
}
