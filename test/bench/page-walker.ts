import { connectTo } from './page-connection.ts';

/** One list to be walked through by a client of its own. */
export interface Walk {
  /** Full URL of the first page. */
  url: string;
  token: string;
}

/** What the walkers are to do. */
export interface WalkOrder {
  walks: Walk[];
  /** Ends after so many pages, all walkers together. */
  pages: number;
}

/** What came of it. */
export interface Walked {
  pages: number;
  records: number;
  /** Bodies alone. */
  bytes: number;
  wallMs: number;
  /** Time on a processor that all walkers together took, in milliseconds. */
  cpuMs: number;
}

/** So many bytes of a body are looked into for the address of the next page: it stands in front of the records. */
const NEXT_WITHIN_BYTES = 1_000;
/** Every so-many-th page is read to its end as JSON, and must be what it should. */
const CHECKED_EVERY = 500;
const RECORDS_PER_PAGE_MAX = 50;
/** What each record begins with. */
const RECORD = Buffer.from('{"_links":{"self":');

function nextOf(body: Buffer): string | null {
  const found = /^\{"_pagination":\{"next":(?:"([^"\\]+)"|null)\}/.exec(
    body.toString('latin1', 0, NEXT_WITHIN_BYTES),
  );
  if (found === null) throw new Error('a page that does not begin with _pagination');
  return found[1] ?? null;
}

function check(body: Buffer): void {
  const { _results } = JSON.parse(body.toString('utf8')) as { _results: { id: string }[] };
  const ids = new Set(_results.map(({ id }) => id));
  if (ids.size !== _results.length || ids.size > RECORDS_PER_PAGE_MAX)
    throw new Error('a page of wrong records');
}

/** Counts the records of a page by the link that begins each of them. */
function recordsIn(body: Buffer): number {
  let count = 0;
  for (let at = body.indexOf(RECORD); at >= 0; at = body.indexOf(RECORD, at + RECORD.length)) count += 1;
  return count;
}

/** Follows `next` from page to page, from the first again after the last, until enough was walked by all together. */
async function walk({ url, token }: Walk, isEnough: () => boolean, total: Walked): Promise<void> {
  const connection = await connectTo(new URL(url));
  for (let next: string | null = null; !isEnough(); ) {
    total.pages += 1;
    const { head, body } = await connection.get(new URL(next ?? url), token);
    if (!head.startsWith('HTTP/1.1 200')) throw new Error(`${head}\n${body.toString('utf8', 0, 300)}`);
    if (total.pages % CHECKED_EVERY === 0) check(body);
    total.bytes += body.length;
    total.records += recordsIn(body);
    next = nextOf(body);
  }
  connection.end();
}

async function walkAll({ walks, pages }: WalkOrder): Promise<Walked> {
  const total: Walked = { pages: 0, records: 0, bytes: 0, wallMs: 0, cpuMs: 0 };
  const startedAt = performance.now();
  const usedBefore = process.cpuUsage();
  await Promise.all(walks.map((one) => walk(one, () => total.pages >= pages, total)));
  total.wallMs = performance.now() - startedAt;
  const { user, system } = process.cpuUsage(usedBefore);
  total.cpuMs = (user + system) / 1000;
  return total;
}

process.on('message', (order: WalkOrder) => {
  walkAll(order).then(
    (walked) => process.send?.(walked),
    (error: unknown) => {
      process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`);
      process.exit(1);
    },
  );
});
process.on('disconnect', () => process.exit());
