/**
 * The parts of a page that change while it is open, by the names that stand in its data attributes.
 * The page is first rendered from them and then kept up to date with them, so both always say the same.
 */
export interface LiveValues {
  /** `data-text`: the element's text. */
  text: Record<string, string>;
  /** `data-time`: a moment, ISO 8601, or null for none. */
  time: Record<string, string | null>;
  /** `data-attributes`: attributes to set, or to take away when null. */
  attributes: Record<string, Record<string, string | null>>;
  /** `data-show`: whether the element is shown. */
  show: Record<string, boolean>;
}

/** Puts several sets of values into one. */
export function mergeLiveValues(parts: LiveValues[]): LiveValues {
  const merged: LiveValues = { text: {}, time: {}, attributes: {}, show: {} };
  for (const part of parts) {
    Object.assign(merged.text, part.text);
    Object.assign(merged.time, part.time);
    Object.assign(merged.attributes, part.attributes);
    Object.assign(merged.show, part.show);
  }
  return merged;
}
