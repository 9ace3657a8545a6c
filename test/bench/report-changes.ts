import { appendFileSync } from 'node:fs';

interface Batch {
  resource: string;
  changes: { id: string; change: string; document: { custom_fields: { revision?: number } } | null }[];
}

/** A handler that appends what it is told of conversations to the file of a bench. */
export async function onChanges({ resource, changes }: Batch): Promise<void> {
  if (resource !== 'conversations') return;
  const at = Date.now();
  const lines = changes.map(({ id, change, document }) => {
    const revision = document?.custom_fields.revision ?? 0;
    return `${JSON.stringify({ at, id, isDeleted: change === 'deleted', revision })}\n`;
  });
  appendFileSync(process.env.BENCH_REPORT ?? '', lines.join(''));
}
