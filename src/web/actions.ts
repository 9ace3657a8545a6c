import express, { type Request, type RequestHandler, type Router } from 'express';
import { idsOfTyped } from '../store/page-items.ts';
import type { InstanceStatus, ListStatusJson } from '../sync/status-types.ts';
import { instanceAddress, pathValue } from './own-instance.ts';
import { noStore } from './security.ts';
import type { WebDependencies } from './web-dependencies.ts';
import { notFound, WebError } from './web-error.ts';

/** Larger than any form of this app, in bytes. */
const MAX_FORM_BYTES = 10 * 1_024;

/** Reads a small form; 413 otherwise. */
export const readForm = express.urlencoded({ extended: false, limit: MAX_FORM_BYTES, parameterLimit: 20 });

type Deps = Pick<WebDependencies, 'control' | 'browsers' | 'actions' | 'resources'>;

/** Who acts, and on what. */
interface Actor extends Pick<Deps, 'control' | 'browsers'> {
  status: InstanceStatus;
  id: string;
  /** The list; undefined for the whole instance. */
  resource: string | undefined;
  /** Undefined for an operator. */
  browserId: string | undefined;
  /** A field of the form, trimmed; empty if it is missing. */
  field: (name: string) => string;
  /** The id of the record or the key of the write in the form, as it came. */
  record: string;
  /** The way back from an error page. */
  links: { address: string; text: string }[];
}

/** A mistake in a form, told at the field. Nothing was done. */
export class FieldError extends WebError {
  readonly field: string;

  /** @param field its name */
  constructor(field: string, title: string, message: string, links: Actor['links']) {
    super(400, title, `${message} Nothing was done.`, { links });
    this.field = field;
  }
}

interface Action {
  /** The operator's button, and what it means. */
  label?: string;
  text?: string;
  /** What the page says afterwards. False if the state that it shows contradicts it. */
  done: (status: InstanceStatus, resource: string | undefined) => string | false;
  /** Where the button stands. */
  for: readonly ('list' | 'instance' | 'operator')[];
  /** Whether the state allows it now. */
  isPossible: (status: InstanceStatus, resource: string | undefined) => boolean;
  /** @returns whether the state allowed it */
  run: (actor: Actor) => Promise<boolean>;
}

const EVERYWHERE = ['list', 'instance', 'operator'] as const;

const isThere: Action['isPossible'] = ({ status }) => status !== 'disconnected';
const isPaused = ({ status, resources }: InstanceStatus, resource?: string) =>
  resource === undefined ? status === 'paused' : resources[resource]?.paused === true;
const isActive: Action['isPossible'] = (status, resource) =>
  status.status === 'active' && !isPaused(status, resource);
const canDeliver: Action['isPossible'] = (status, resource) =>
  isActive(status, resource) && Object.values(status.resources).some(({ handler }) => handler !== null);

const canDecide: Action['isPossible'] = ({ outbox: { pending, refused, unknown } }) =>
  pending + refused + unknown > 0;

function listsOf({ resources }: InstanceStatus, resource: string | undefined): ListStatusJson[] {
  return Object.entries(resources).flatMap(([name, list]) => ((resource ?? name) === name ? [list] : []));
}

/** A name without differences that people do not see. */
function plainName(name: string): string {
  return name.normalize('NFC').replaceAll(/\s+/g, ' ').trim().toLowerCase();
}

/** What administrators and operators can do to an instance, or to one list of it. */
export const ACTIONS = {
  sync: {
    label: 'Sync now',
    text: 'The app reads the lists now instead of at their next time.',
    done: ({ resources }) =>
      Object.values(resources).some(({ state }) => state === 'waiting' || state === 'running') &&
      'A sync is under way.',
    for: EVERYWHERE,
    isPossible: isActive,
    run: ({ control, id, resource }) => control.syncNow(id, resource),
  },
  pause: {
    label: 'Pause',
    text: 'The app requests, copies and delivers nothing until somebody resumes it.',
    done: (status, resource) =>
      isPaused(status, resource) &&
      (resource === undefined
        ? 'Paused. Nothing is copied until you resume.'
        : 'The list is paused. The other lists go on.'),
    for: EVERYWHERE,
    isPossible: (status, resource) =>
      resource === undefined
        ? status.status === 'active'
        : isThere(status, resource) && !isPaused(status, resource),
    run: ({ control, id, resource }) => control.pause(id, resource),
  },
  resume: {
    label: 'Resume',
    text: 'The sync goes on where it stopped.',
    done: (status, resource) => !isPaused(status, resource) && 'Resumed. The sync goes on where it stopped.',
    for: EVERYWHERE,
    isPossible: (status, resource) => isThere(status, resource) && isPaused(status, resource),
    run: ({ control, id, resource }) => control.resume(id, resource),
  },
  retry: {
    label: 'Try again',
    text: 'The handler gets the dead letters again.',
    done: () => 'The handler gets the dead letters again.',
    for: EVERYWHERE,
    isPossible: (status, resource) =>
      canDeliver(status, resource) &&
      listsOf(status, resource).some(({ handler }) => handler?.dead_letters || handler?.last_error),
    run: ({ control, id, resource }) => control.retry(id, resource),
  },
  replay: {
    label: 'Replay',
    text: 'The handler gets every record of the copy again. Do this after you changed the handler.',
    done: () => 'The handler gets the records again.',
    for: EVERYWHERE,
    isPossible: canDeliver,
    run: ({ control, id, resource, record }) => control.replay(id, resource, record || undefined),
  },
  'confirm-deletions': {
    label: 'Confirm deletions',
    text: 'The app deletes the records whose deletion it holds.',
    done: () => 'You confirmed the deletions. The records are deleted from the copy.',
    for: EVERYWHERE,
    isPossible: (status, resource) =>
      (status.status === 'active' || status.status === 'paused') &&
      listsOf(status, resource).some((list) => list.held_deletions > 0),
    run: ({ control, id, resource }) => control.confirmDeletions(id, resource),
  },
  interval: {
    done: () => 'The interval is set.',
    for: ['list'],
    isPossible: isThere,
    run: async ({ control, id, resource = '', field, links }) => {
      const text = field('minutes');
      const minutes = text === '' ? null : /^\d+$/.test(text) ? Number(text) : Number.NaN;
      return control.setInterval(id, resource, minutes).catch((error: unknown) => {
        if (!(error instanceof RangeError)) throw error;
        throw new FieldError('minutes', 'Not an interval', error.message, links);
      });
    },
  },
  erase: {
    done: () => 'The record is erased.',
    for: ['list'],
    isPossible: () => true,
    run: async ({ control, id, resource = '', record, links }) => {
      for (const known of [record, ...idsOfTyped(record)]) {
        if (await control.erase(id, resource, known)) return true;
      }
      throw new WebError(404, 'No such record', 'The copy has no such record, or it is erased already.', {
        links,
      });
    },
  },
  'logout-others': {
    done: () => 'Every other browser is logged out of this company.',
    for: ['instance'],
    isPossible: ({ status, has_copy }) => status !== 'disconnected' || has_copy,
    run: ({ browsers, browserId = '', id }) => browsers.logOutOthers(browserId, id).then(() => true),
  },
  'send-again': {
    done: () => 'The app sends the write again.',
    for: ['instance'],
    isPossible: canDecide,
    run: ({ control, id, record }) => control.resolveWrite(id, record, 'retry'),
  },
  'end-write': {
    done: () => 'The app does not send the write any more.',
    for: ['instance'],
    isPossible: canDecide,
    run: ({ control, id, record }) => control.resolveWrite(id, record, 'discard'),
  },
  disconnect: {
    label: 'Disconnect',
    text: 'The app deletes its keys to the company and stops. To end the permission itself, an administrator removes the app at the service.',
    done: ({ status, has_copy, deleting_copy }) =>
      status === 'disconnected' &&
      `The app deleted its keys and stopped.${deleting_copy ? ' The copied data is being deleted.' : has_copy ? '' : ' The copied data is deleted.'} To end the permission itself, remove the app at the service.`,
    for: ['instance', 'operator'],
    // After a disconnect that kept the copy, a second one may delete it.
    isPossible: ({ status, has_copy }) => status !== 'disconnected' || has_copy,
    run: async ({ control, status, id, browserId, field, links }) => {
      const deleteData = field('delete_data') === 'yes';
      if (status.status === 'disconnected' && !deleteData) return false;
      const typed = plainName(field('company_name'));
      if (!deleteData && typed !== '') {
        const message = 'You typed the name but did not tick “Also delete the copied data”.';
        throw new FieldError('company_name', 'Delete the data, or not?', message, links);
      }
      if (deleteData && typed !== plainName(status.name)) {
        const message = `To delete the data, type the company’s name: ${status.name}.`;
        throw new FieldError('company_name', 'The name does not match', message, links);
      }
      return control.disconnect(id, { deleteData, ...(browserId === undefined ? {} : { browserId }) });
    },
  },
  forget: {
    done: () => false,
    for: ['instance'],
    isPossible: ({ status, has_copy }) => status === 'disconnected' && !has_copy,
    run: ({ browsers, browserId = '', id }) => browsers.forget(browserId, id).then(() => true),
  },
} as const satisfies Record<string, Action>;

type ActionName = keyof typeof ACTIONS;

/** What a page says after an action, by `done` and `list` in its address. */
export function doneMessage(
  { query: { done, list } }: Request,
  status: InstanceStatus,
): { tone: 'good' | 'warn'; text: string } | undefined {
  const nothing = 'The company’s state does not allow that now. Nothing was done.';
  if (done === 'nothing') return { tone: 'warn', text: nothing };
  if (typeof done !== 'string' || !Object.hasOwn(ACTIONS, done)) return undefined;
  const action: Action = ACTIONS[done as ActionName];
  const text = action.done(status, typeof list === 'string' ? list : undefined);
  return text === false ? undefined : { tone: 'good', text };
}

/** The actions that are possible now, for an administrator or an operator. */
export function possibleActions(
  status: InstanceStatus,
  resource?: string,
  whose = 'administrator',
): ActionName[] {
  const names = Object.keys(ACTIONS) as ActionName[];
  return names.filter(
    (name) => isOffered(name, resource, whose) && ACTIONS[name].isPossible(status, resource),
  );
}

function isOffered(name: ActionName, resource: string | undefined, whose: string): boolean {
  const places: Action['for'] = ACTIONS[name].for;
  return (
    places.includes(resource === undefined ? 'instance' : 'list') &&
    (whose !== 'operator' || places.includes('operator'))
  );
}

/** The page below the instance's that a form stands on; empty for the first one, and for nonsense. */
function pathOf(page: string): string {
  return /^[\w-]+(?:\/(?!\.{1,2}$)[\w.~-]+)?$/.test(page) ? `/${page}` : '';
}

/**
 * The routes of all buttons, for administrators (`base` is empty) or operators. Each action is stored in `actions` and
 * logged, then the browser goes back to the page.
 *
 * @param find the browser and the instance of a request; throws WebError 404
 * @param mayAct throws it as well, and is quick
 * @param onMistake answers a form with a mistake in a field; without it, there is a page with the error
 */
export function actionRoutes(
  router: Router,
  base: '' | '/ops',
  { control, browsers, actions, resources }: Deps,
  find: (req: Request) => Promise<{ status: InstanceStatus; browserId: string | undefined }>,
  mayAct: (req: Request) => Promise<unknown>,
  onMistake?: (req: Request, error: FieldError) => Promise<void>,
): void {
  const whose = base === '' ? 'administrator' : 'operator';
  const askedAction = ({ params: { action, resource } }: Request): ActionName => {
    const name = Object.hasOwn(ACTIONS, String(action)) ? (action as ActionName) : undefined;
    const isKnown = resource === undefined || resources.some((one) => one.name === resource);
    if (name === undefined || !isKnown || !isOffered(name, resource as string | undefined, whose))
      throw notFound();
    return name;
  };
  /** Runs before the form is read. */
  const check: RequestHandler = async (req, _res, next) => {
    await mayAct(req);
    askedAction(req);
    next();
  };
  for (const path of [`${base}/instances/:id/:action`, `${base}/instances/:id/:resource/:action`]) {
    router.post(path, noStore, check, readForm, async (req, res) => {
      const name = askedAction(req);
      const { status, browserId } = await find(req);
      const { id } = status;
      const resource = req.params.resource === undefined ? undefined : pathValue(req, 'resource');
      const given = (of: string) => (typeof req.body?.[of] === 'string' ? req.body[of] : '');
      const field = (of: string) => given(of).trim();
      const links = [{ address: base + instanceAddress(id), text: 'Back' }];
      const action: Action = ACTIONS[name];
      const record = given('id');
      const actor = { control, browsers, status, id, resource, browserId, field, record, links };
      const act = async () => action.isPossible(status, resource) && action.run(actor);
      const isDone = await act().catch(async (error: unknown) => {
        if (onMistake === undefined || !(error instanceof FieldError)) throw error;
        await onMistake(req, error);
        return undefined;
      });
      if (isDone === undefined) return;
      const by: string = whose === 'operator' ? res.locals.operator : whose;
      const facts = { instanceId: id, resource: resource ?? null, by };
      const deletesData = name === 'disconnect' && field('delete_data') === 'yes';
      if (isDone) {
        // The id of an erased record is personal data too.
        const noted = { record: name === 'replay' ? record || null : null };
        await actions.add({ ...facts, ...noted, action: deletesData ? 'disconnect and delete data' : name });
      }
      res.locals.log.info({ ...facts, action: name, isDone, deletesData }, 'action');
      const done = { done: isDone ? name : 'nothing', ...(resource === undefined ? {} : { list: resource }) };
      const page = isDone && name === 'forget' ? '/' : base + instanceAddress(id) + pathOf(field('page'));
      res.redirect(303, `${page}?${new URLSearchParams(done)}`);
    });
  }
}
