/** What stands in the log for what throws when it is looked at. */
export const UNREADABLE = '[cannot be read]';

/** A field of any object; {@link UNREADABLE} where looking at it throws: anybody may have made it. */
export function readField(value: object, name: PropertyKey): unknown {
  try {
    return Reflect.get(value, name);
  } catch {
    return UNREADABLE;
  }
}

/** Whether a value is an error; one that throws at the question is none. */
export function isError(value: unknown): value is Error {
  try {
    return value instanceof Error;
  } catch {
    return false;
  }
}
