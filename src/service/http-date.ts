const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

const TIME = String.raw`(?<hour>\d\d):(?<minute>\d\d):(?<second>\d\d)`;

/** The three forms that a date in a header may have (RFC 9110, 5.6.7); the last one does not say that it is GMT. */
const FORMS = [
  new RegExp(String.raw`^\w{3}, (?<day>\d\d) (?<month>\w{3}) (?<year>\d{4}) ${TIME} GMT$`),
  new RegExp(String.raw`^\w{6,9}, (?<day>\d\d)-(?<month>\w{3})-(?<year>\d\d) ${TIME} GMT$`),
  new RegExp(String.raw`^\w{3} (?<month>\w{3}) (?<day>[ \d]\d) ${TIME} (?<year>\d{4})$`),
];

/** Without a time of day it is no moment; Date.parse alone would take "try in 5" for a day in May. */
const HAS_TIME = /\d\d:\d\d/;

/** Nobody needs more for a date, and what has no end is not looked through again and again. */
const LONGEST_DATE = 100;

const HAS_ZONE = /(?:Z|UTC?|GMT|[ECMP][SD]T|[+-]\d\d:?\d\d)(?: \(.*\))?$/i;

/**
 * Reads a date out of a header. What is not in one of the forms for headers, such as ISO 8601, is read as far as it can
 * be; where a date does not name its zone, it is GMT, whatever zone this machine is in.
 *
 * @param text the header, if there was one
 * @param now milliseconds since 1970, by which a year of two digits is told
 * @returns milliseconds since 1970; NaN for what is no date
 */
export function parseHttpDate(text: string | null | undefined, now: number = Date.now()): number {
  const date = text?.trim() ?? '';
  if (date.length > LONGEST_DATE) return Number.NaN;
  for (const form of FORMS) {
    const fields = form.exec(date)?.groups;
    if (fields) return momentOf(fields, now);
  }
  if (!HAS_TIME.test(date)) return Number.NaN;
  return Date.parse(HAS_ZONE.test(date) ? date : `${date}Z`);
}

function momentOf(fields: Record<string, string>, now: number): number {
  const month = MONTHS.indexOf(fields.month ?? '');
  const [day, hour, minute, second] = [fields.day, fields.hour, fields.minute, fields.second].map(Number);
  if (month < 0 || !isWithin(day, 1, 31)) return Number.NaN;
  // A minute may end with a leap second.
  if (!isWithin(hour, 0, 23) || !isWithin(minute, 0, 59) || !isWithin(second, 0, 60)) return Number.NaN;
  return Date.UTC(fullYear(fields.year ?? '', now), month, day, hour, minute, second);
}

/** Of two digits, a year that would be more than 50 years ahead is the one a century before. */
function fullYear(digits: string, now: number): number {
  if (digits.length === 4) return Number(digits);
  const thisYear = new Date(now).getUTCFullYear();
  const year = thisYear - (thisYear % 100) + Number(digits);
  return year > thisYear + 50 ? year - 100 : year;
}

function isWithin(value: number | undefined, least: number, most: number): value is number {
  return value !== undefined && value >= least && value <= most;
}
