import type { EventHandler } from './changes/app-events.ts';
import type { ChangeHandler } from './changes/change-handler.ts';

/** Excludes classes, which `typeof` calls functions. */
function isCallable(value: unknown): boolean {
  return typeof value === 'function' && !/^class\b/.test(Function.prototype.toString.call(value));
}

/** @throws Error that says what is wrong, and where */
async function loadOwn<Own>(
  what: string,
  file: string,
  name: string,
  load: () => Promise<unknown>,
): Promise<Own | undefined> {
  const path = `src/integration/${file}`;
  const module = await load().catch((cause: unknown) => {
    const where = cause instanceof Error ? cause.stack : String(cause);
    throw new Error(`Your ${what}, ${path}, does not load:\n\n${where}`, { cause });
  });
  const own = (module as Record<string, unknown>)[name];
  if (name in (module as object) && (own === undefined || isCallable(own))) return own as Own | undefined;
  throw new Error(
    `Your ${what}, ${path}, exports no function ${name}. Export a function or undefined under this name.`,
  );
}

/**
 * Loads the integrator's handler. The configuration comes first, as the module may read variables of `.env`.
 *
 * @param load imports the module
 * @throws Error that says what is wrong, and where
 */
export function loadHandler(load: () => Promise<unknown>): Promise<ChangeHandler | undefined> {
  return loadOwn('handler', 'handler.ts', 'onChanges', load);
}

/** Loads the integrator's event handler, in the same way. */
export function loadEventHandler(load: () => Promise<unknown>): Promise<EventHandler | undefined> {
  return loadOwn('event handler', 'events.ts', 'onEvent', load);
}
