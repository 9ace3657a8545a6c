import { Agent, request } from 'undici';

/** What walkers are to do, each through another list. */
export interface WalkOrder {
  walks: { url: string; token: string }[];
  /** Ends after so many pages, all walkers together. */
  pages: number;
}

/** What came of it. */
export interface Walked {
  pages: number;
  /** Bodies alone. */
  bytes: number;
  wallMs: number;
}

/** The address stands in front of the records. */
const NEXT = /^\{"_pagination":\{"next":(?:"([^"\\]+)"|null)\}/;

/** Follows `next` from page to page, from the first again after the last, until enough was walked by all together. */
async function walkAll({ walks, pages }: WalkOrder): Promise<Walked> {
  const dispatcher = new Agent();
  const total: Walked = { pages: 0, bytes: 0, wallMs: 0 };
  const startedAt = performance.now();
  const walk = async ({ url, token }: WalkOrder['walks'][number]) => {
    for (let next: string | undefined; total.pages < pages; ) {
      total.pages += 1;
      const answer = await request(next ?? url, {
        dispatcher,
        headers: { authorization: `Bearer ${token}` },
      });
      const body = Buffer.from(await answer.body.arrayBuffer());
      const found = NEXT.exec(body.toString('latin1', 0, 1_000));
      if (answer.statusCode !== 200 || found === null) throw new Error(body.toString('utf8', 0, 300));
      total.bytes += body.length;
      next = found[1];
    }
  };
  await Promise.all(walks.map(walk));
  await dispatcher.close();
  return { ...total, wallMs: performance.now() - startedAt };
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
